//! Agent, shim or controller gone, and back.

use crate::controller::Say;
use crate::wait::until;
use crate::world::{World, alive, attempt, first_line};
use ephor_proto::v1;
use nix::sys::signal::{Signal, kill};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_takes_its_attempts_over_again() {
    let (mut world, mut session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.script(1, "echo up; while ! [ -e go ]; do :; done; exit 4")));
    session.say(Say::Launch(world.script(2, "echo up; while ! [ -e go2 ]; do :; done; exit 5")));
    session.began(1).await;
    first_line(&world.path("out.1")).await;
    first_line(&world.path("out.2")).await;
    world.stop(Signal::SIGKILL);
    // One ends while nobody looks.
    std::fs::write(world.path("go"), "").unwrap();
    until("its status", || world.entry("1.1").join("status").exists()).await;
    world.start(&[]);
    let (mut session, register) = world.controller.welcomed().await;
    assert!(register.running.contains(&attempt(2, 1).unwrap()), "{register:?}");
    assert_eq!(session.ended(1).await.exit_code, 4);
    std::fs::write(world.path("go2"), "").unwrap();
    assert_eq!(session.ended(2).await.exit_code, 5);
    until("no entry is left", || world.spool_is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_agent_leaves_its_attempts_running() {
    let (mut world, session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.script(1, "echo $$; exec sleep 1000")));
    let pid = first_line(&world.path("out.1")).await;
    assert!(world.stop(Signal::SIGTERM).success());
    assert!(alive(&pid));
    assert!(world.log().contains("1 running attempts go on"), "{}", world.log());
    world.start(&[]);
    let (mut session, _) = world.controller.welcomed().await;
    crate::world::terminate(&session, 1, "cancelled", 1000);
    assert_eq!(session.ended(1).await.cause, "cancelled");
    assert!(!alive(&pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_wait_for_the_controller() {
    let (mut world, session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.script(1, "while ! [ -e go ]; do :; done; exit 6")));
    until("its shim", || world.shim("1.1").is_some()).await;
    // Gone, and the next one listens to no reports either.
    drop(session);
    let lost = world.controller.session().await;
    std::fs::write(world.path("go"), "").unwrap();
    until("its status", || world.entry("1.1").join("status").exists()).await;
    drop(lost);
    let (mut session, _) = world.controller.welcomed().await;
    // Unacknowledged, it comes again with the same number in the next session.
    let first = loop {
        let report = session.report().await;
        if matches!(report.what, Some(v1::report::What::Ended(_))) {
            break report;
        }
    };
    drop(session);
    let (mut session, _) = world.controller.welcomed().await;
    loop {
        let report = session.report().await;
        if matches!(report.what, Some(v1::report::What::Ended(_))) {
            assert_eq!(report, first);
            break;
        }
    }
    session.acknowledge(first.number);
    until("the entry is gone", || !world.entry("1.1").exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_epoch_is_refused_for_good() {
    let mut world = World::new().await;
    let token = world.controller.token();
    world.start(&["--join", &token]);
    let mut session = world.controller.session().await;
    session.register().await;
    session.epoch = 9;
    session.welcome("n1", &[]);
    session.say(Say::Launch(world.script(1, "exit 0")));
    session.ended(1).await;
    // The same controller falls behind: nothing of it is obeyed, and the stream is left.
    session.epoch = 8;
    session.say(Say::Launch(world.script(2, "echo started")));
    while session.hear().await.is_some() {}
    world.stop(Signal::SIGTERM);
    world.start(&[]);
    let mut session = world.controller.session().await;
    assert_eq!(session.register().await.epoch, 9);
    session.epoch = 8;
    session.welcome("n1", &[]);
    while session.hear().await.is_some() {}
    until("the refusal in the log", || world.log().matches("refused a message of epoch 8").count() >= 2).await;
    assert!(!world.path("out.2").exists());
    let mut session = world.controller.session().await;
    session.register().await;
    session.epoch = 10;
    session.welcome("n1", &[]);
    session.say(Say::Launch(world.script(2, "echo started")));
    session.ended(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_controller_does_not_know_is_ended() {
    let (mut world, mut session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.script(1, "echo $$; exec sleep 1000")));
    session.say(Say::Launch(world.script(2, "exit 0")));
    let pid = first_line(&world.path("out.1")).await;
    session.began(1).await;
    drop(session);
    let mut session = world.controller.session().await;
    let register = session.register().await;
    let unknown: Vec<_> = (1..=2).filter_map(|job| attempt(job, 1)).collect();
    assert!(register.running.contains(&unknown[0]));
    session.welcome("n1", &unknown);
    until("no entry is left", || world.spool_is_empty()).await;
    assert!(!alive(&pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_whose_shim_was_killed_is_cleared_up_and_reported() {
    for way in ["walk", "auto"] {
        let (world, mut session) = World::with_agent(&["--confine", way]).await;
        session.say(Say::Launch(world.script(1, "sleep 1000 & sleep 1000 & echo $$ $!; wait")));
        let pids = first_line(&world.path("out.1")).await;
        kill(world.shim("1.1").unwrap(), Signal::SIGKILL).unwrap();
        let ended = session.ended(1).await;
        assert_eq!(ended.cause, "node-failed", "{way}: {}", ended.message);
        until("its processes are gone", || pids.split(' ').all(|pid| !alive(pid))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_before_its_shim_could_start_starts_it_later_once() {
    let (mut world, session) = World::with_agent(&[]).await;
    let launch = world.script(1, "echo run >> runs; while ! [ -e go ]; do :; done");
    session.say(Say::Launch(launch));
    first_line(&world.path("runs")).await;
    world.stop(Signal::SIGKILL);
    // What such a crash leaves: an entry that nobody claimed.
    let source = world.entry("1.1");
    let target = world.entry("2.1");
    std::fs::create_dir(&target).unwrap();
    for file in ["launch", "script"] {
        std::fs::copy(source.join(file), target.join(file)).unwrap();
    }
    world.start(&[]);
    let (mut session, _) = world.controller.welcomed().await;
    until("a second run", || world.read("runs").lines().count() == 2).await;
    // A shim that comes late finds the attempt taken.
    let shim = std::path::Path::new(env!("CARGO_BIN_EXE_ephor-shim"));
    let late = std::process::Command::new(shim).arg(&target).status().unwrap();
    assert_eq!(late.code(), Some(ephor_agent::shim::HELD_BY_ANOTHER));
    std::fs::write(world.path("go"), "").unwrap();
    let (mut one, mut two) = (false, false);
    while !(one && two) {
        let report = session.report().await;
        session.acknowledge(report.number);
        if let Some(v1::report::What::Ended(ended)) = &report.what {
            assert_eq!((ended.cause.as_str(), ended.exit_code), ("exited", 0));
            let job = report.attempt.unwrap().job;
            (one, two) = (one || job == 1, two || job == 2);
        }
    }
    assert_eq!(world.read("runs"), "run\nrun\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_an_earlier_boot_are_forgotten() {
    let (mut world, session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.script(1, "exit 0")));
    until("its status", || world.entry("1.1").join("status").exists()).await;
    world.stop(Signal::SIGKILL);
    std::fs::write(world.data().join("boot_id"), "an earlier one").unwrap();
    world.start(&[]);
    let mut session = world.controller.session().await;
    assert_eq!(session.register().await.running, []);
    assert!(!world.entry("1.1").exists());
}
