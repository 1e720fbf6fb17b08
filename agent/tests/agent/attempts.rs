//! What becomes of one attempt: output, exit, failures to start, limits, orders to end it.

use crate::controller::Say;
use crate::wait::until;
use crate::world::{World, alive, attempt, first_line, terminate};
use ephor_proto::v1;
use v1::report::What;

#[tokio::test(flavor = "multi_thread")]
async fn a_script_runs_in_its_folder_with_its_arguments_and_environment() {
    let (world, mut session) = World::with_agent(&[]).await;
    let text = "echo \"$0|$1|$2|$A|$EPHOR_NODE|$PATH\"; pwd; cat; echo oops >&2; ulimit -n; exit 7";
    std::fs::write(world.path("in"), "from stdin\n").unwrap();
    let mut launch = world.script(5, text);
    launch.argv = vec!["one".into(), "two words".into()];
    launch.environment.push("A=b c".into());
    launch.stdin = Some("in".into());
    launch.stderr = Some("err.%j".into());
    session.say(Say::Launch(launch));
    let ended = session.ended(5).await;
    assert_eq!((ended.cause.as_str(), ended.exit_code, ended.exit_signal), ("exited", 7, 0));
    assert!(ended.peak_mem_mib > 0 && ended.at > 0 && ended.message.is_empty());
    let out = world.read("out.5");
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].ends_with("script|one|two words|b c|n1|/usr/bin:/bin"), "{out}");
    assert_eq!(lines[1], world.folder.path().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(lines[2], "from stdin");
    let (soft, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    assert_eq!(lines[3], soft.to_string(), "jobs have the limit of open files that the agent was started with");
    assert_eq!(world.read("err.5"), "oops\n");
    until("the entry is gone", || !world.entry("5.1").exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_found_in_the_path_and_its_signal_is_reported() {
    let (world, mut session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.program(1, &["sh", "-c", "kill -9 $$"])));
    let ended = session.ended(1).await;
    assert_eq!((ended.cause.as_str(), ended.exit_code, ended.exit_signal), ("exited", 0, 9));
    let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    session.say(Say::Launch(world.program(2, &["sh", "-c", burn])));
    let ended = session.ended(2).await;
    assert!(ended.cpu_ms > 0 && ended.exit_code == 0, "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_emptied_at_the_first_attempt_and_appended_to_later() {
    let (world, mut session) = World::with_agent(&[]).await;
    let both = "echo out; echo err >&2";
    std::fs::write(world.path("out.1"), "old\n").unwrap();
    // The same file by two names is one file.
    session.say(Say::Launch(v1::Launch { stderr: Some("out.%j".into()), ..world.script(1, both) }));
    session.ended(1).await;
    assert_eq!(world.read("out.1"), "out\nerr\n");
    session.say(Say::Launch(v1::Launch { attempt: attempt(1, 2), ..world.script(1, "echo again") }));
    session.ended(1).await;
    assert_eq!(world.read("out.1"), "out\nerr\nagain\n");
    std::fs::write(world.path("out.2"), "old\n").unwrap();
    session.say(Say::Launch(v1::Launch { append: true, ..world.script(2, both) }));
    session.ended(2).await;
    assert_eq!(world.read("out.2"), "old\nout\nerr\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_says_why() {
    let (world, mut session) = World::with_agent(&[]).await;
    let raw = |text: &str| v1::Launch { script: Some(text.into()), ..world.script(0, "") };
    let cases = [
        (v1::Launch { work_dir: "/no/such".into(), ..world.script(0, "") }, "working folder /no/such"),
        (v1::Launch { stdout: "/no/such/out".into(), ..world.script(0, "") }, "output file /no/such/out"),
        (v1::Launch { stderr: Some("/proc/x".into()), ..world.script(0, "") }, "error file /proc/x"),
        (v1::Launch { stdin: Some("absent".into()), ..world.script(0, "") }, "input file absent"),
        (raw("#!/no/such/interpreter\n"), "interpreter named in its first line"),
        (raw("echo no first line\n"), "does not name an interpreter"),
        (world.program(0, &["no-such-program"]), "cannot run no-such-program"),
        (world.program(0, &["/etc/passwd"]), "cannot run /etc/passwd"),
        (world.program(0, &[]), "nothing to run"),
        (v1::Launch { devices: vec![0], ..world.script(0, "") }, "GPU 0 is not on this node"),
    ];
    for (job, (launch, why)) in (1..).zip(cases) {
        session.say(Say::Launch(v1::Launch { attempt: attempt(job, 1), ..launch }));
        let ended = session.ended(job).await;
        assert_eq!(ended.cause, "launch-failed", "{why}");
        assert!(ended.message.contains(why), "{} should tell of {why}", ended.message);
    }
    until("no entry is left", || world.spool_is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_time_limit_counts_from_the_start_of_what_runs() {
    let (world, mut session) = World::with_agent(&[]).await;
    let adjust = |job, time_limit| Say::Adjust(v1::Adjust { node: "n1".into(), attempt: attempt(job, 1), time_limit });
    // Shortened from an hour, before its shim can be there.
    session.say(Say::Launch(v1::Launch { time_limit: Some(3_600_000), ..world.script(1, "exec sleep 1000") }));
    session.say(adjust(1, Some(100)));
    assert_eq!(session.ended(1).await.cause, "time-limit");
    // Lifted before it strikes, and set again.
    session.say(Say::Launch(v1::Launch {
        time_limit: Some(2_000),
        ..world.script(2, "echo up; sleep 2.5; echo on; exec sleep 1000")
    }));
    assert_eq!(first_line(&world.path("out.2")).await, "up");
    session.say(adjust(2, None));
    until("it goes on", || world.read("out.2").contains("on")).await;
    session.say(adjust(2, Some(2_600)));
    assert_eq!(session.ended(2).await.cause, "time-limit");
    // Of what is not there nothing is said.
    session.say(adjust(9, Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_ends_even_what_ignores_sigterm() {
    let (world, mut session) = World::with_agent(&[]).await;
    let stubborn = "trap '' TERM; echo $$ > pid; while :; do sleep 1000; done";
    session.say(Say::Launch(v1::Launch { time_limit: Some(300), grace: 200, ..world.script(1, stubborn) }));
    let ended = session.ended(1).await;
    assert_eq!((ended.cause.as_str(), ended.exit_signal), ("time-limit", 9));
    assert!(!alive(world.read("pid").trim()));
    let polite = "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 1000 & wait; done";
    session.say(Say::Launch(v1::Launch { time_limit: Some(300), grace: 60_000, ..world.script(2, polite) }));
    let ended = session.ended(2).await;
    assert_eq!((ended.cause.as_str(), ended.exit_code, ended.exit_signal), ("time-limit", 3, 0));
    assert_eq!(world.read("out.2"), "ready\nsaved\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_ends_an_attempt_with_its_cause() {
    let (world, mut session) = World::with_agent(&[]).await;
    for (job, cause) in [(1, "cancelled"), (2, "preempted"), (3, "requeued")] {
        session.say(Say::Launch(world.script(job, "echo up; exec sleep 1000")));
        first_line(&world.path(&format!("out.{job}"))).await;
        terminate(&session, job, cause, 30_000);
        let ended = session.ended(job).await;
        assert_eq!((ended.cause.as_str(), ended.exit_signal), (cause, 15));
    }
    // Right behind the launch, before its shim can be there.
    session.say(Say::Launch(world.script(4, "exec sleep 1000")));
    terminate(&session, 4, "cancelled", 0);
    assert_eq!(session.ended(4).await.cause, "cancelled");
    // One that the node never had.
    terminate(&session, 5, "cancelled", 0);
    let ended = session.ended(5).await;
    assert!(ended.cause == "cancelled" && ended.message.contains("does not hold"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_grace_overtakes_a_longer_one() {
    let (world, mut session) = World::with_agent(&[]).await;
    session.say(Say::Launch(world.script(1, "trap '' TERM; echo up; while :; do sleep 1000; done")));
    first_line(&world.path("out.1")).await;
    terminate(&session, 1, "preempted", 3_600_000);
    terminate(&session, 1, "cancelled", 1);
    let ended = session.ended(1).await;
    assert_eq!(ended.exit_signal, 9);
    assert!(["preempted", "cancelled"].contains(&ended.cause.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_attempt_leaves_behind_is_killed() {
    for way in ["walk", "auto"] {
        let (world, mut session) = World::with_agent(&["--confine", way]).await;
        // Forked twice, in a session of its own, deaf to polite words, and its children too.
        let daemon = "(setsid sh -c 'trap \"\" TERM; sleep 1000 & echo $$ $! > daemon; while :; do wait; done' &)\n\
                      while ! [ -s daemon ]; do :; done; exit 0";
        session.say(Say::Launch(world.script(1, daemon)));
        let ended = session.ended(1).await;
        assert_eq!((ended.cause.as_str(), ended.exit_code), ("exited", 0), "{way}");
        for pid in world.read("daemon").split_whitespace() {
            assert!(!alive(pid), "{way}: process {pid} is left");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_is_obeyed_once() {
    let (world, mut session) = World::with_agent(&[]).await;
    let launch = world.script(1, "echo run >> runs; while ! [ -e go ]; do :; done");
    session.say(Say::Launch(launch.clone()));
    session.say(Say::Launch(launch.clone()));
    first_line(&world.path("runs")).await;
    session.say(Say::Launch(launch.clone()));
    std::fs::write(world.path("go"), "").unwrap();
    // Every launch of one that runs was answered with its begin; the end is not acknowledged.
    let ended = loop {
        let report = session.report().await;
        match report.what {
            Some(What::Ended(_)) => break report,
            _ => session.acknowledge(report.number),
        }
    };
    session.say(Say::Launch(launch));
    let again = session.report().await;
    assert_eq!(again, ended, "one that ended is answered with its end");
    session.acknowledge(ended.number);
    until("the entry is gone", || !world.entry("1.1").exists()).await;
    assert_eq!(world.read("runs"), "run\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_sees_its_gpus() {
    let mut world = World::new().await;
    let config = world.path("agent.toml");
    let gpu = |uuid: &str| format!("[[gpu]]\nkind = 'h100'\nuuid = '{uuid}'\nmem_mib = 80000\n");
    std::fs::write(&config, gpu("GPU-a") + &gpu("GPU-b")).unwrap();
    let token = world.controller.token();
    world.start(&["--join", &token, "--config", config.to_str().unwrap()]);
    let (mut session, register) = world.controller.welcomed().await;
    assert_eq!(register.devices.iter().map(|d| d.uuid.as_str()).collect::<Vec<_>>(), ["GPU-a", "GPU-b"]);
    assert!(register.capacity.iter().any(|a| a.resource == "gpu" && a.value == 2000));
    let show = "echo \"$CUDA_VISIBLE_DEVICES.\"";
    session.say(Say::Launch(v1::Launch { devices: vec![1], ..world.script(1, show) }));
    session.ended(1).await;
    session.say(Say::Launch(v1::Launch {
        environment: vec!["CUDA_VISIBLE_DEVICES=GPU-a".into()],
        ..world.script(2, show)
    }));
    session.ended(2).await;
    assert_eq!((world.read("out.1"), world.read("out.2")), ("GPU-b.\n".into(), ".\n".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_come_as_asked() {
    let (_world, mut session) = World::with_agent(&[]).await;
    for _ in 0..3 {
        let Some(v1::agent_message::Body::Heartbeat(beat)) = session.hear().await else { panic!("no heartbeat") };
        assert!(beat.clock > 1_600_000_000_000);
    }
}
