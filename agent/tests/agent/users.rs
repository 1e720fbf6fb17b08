//! Whose rights a job has.

use crate::controller::Say;
use crate::world::{World, is_root};
use ephor_proto::v1;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const NOBODY: u32 = 65534;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_as_its_user_and_opens_files_as_its_user() {
    if !is_root() {
        return println!("SKIPPED: switching users needs root");
    }
    let (world, mut session) = World::with_agent(&[]).await;
    let own = world.path("theirs");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |job, text: &str| v1::Launch {
        uid: NOBODY,
        gid: NOBODY,
        work_dir: own.to_str().unwrap().into(),
        ..world.script(job, text)
    };
    session.say(Say::Launch(as_nobody(1, "id -u; id -g; id -G; grep -E 'Uid|CapEff' /proc/self/status; umask")));
    let ended = session.ended(1).await;
    assert_eq!((ended.cause.as_str(), ended.exit_code), ("exited", 0), "{}", ended.message);
    let out = std::fs::read_to_string(own.join("out.1")).unwrap();
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[..3], ["65534", "65534", "65534"]);
    assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["Uid:", "65534", "65534", "65534", "65534"]);
    assert!(lines[4].ends_with("\t0000000000000000"), "no capability is left: {}", lines[4]);
    assert_eq!(lines[5], "0022");
    assert_eq!(std::fs::metadata(own.join("out.1")).unwrap().uid(), NOBODY);

    // What root could write and the user cannot.
    let secret = world.path("secret");
    std::fs::write(&secret, "root's").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&secret, own.join("planted")).unwrap();
    session.say(Say::Launch(v1::Launch { stdout: "planted".into(), ..as_nobody(2, "echo overwritten") }));
    let ended = session.ended(2).await;
    assert!(ended.cause == "launch-failed" && ended.message.contains("planted"), "{ended:?}");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "root's");

    session.say(Say::Launch(v1::Launch { uid: 4_000_000_000, ..as_nobody(3, "") }));
    let ended = session.ended(3).await;
    assert!(ended.cause == "launch-failed" && ended.message.contains("not known on this node"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_users_agent_runs_jobs_of_that_user_alone() {
    let mut world = World::new().await;
    if is_root() {
        world.user = Some(NOBODY);
    }
    let uid = world.user.unwrap_or(nix::unistd::geteuid().as_raw());
    let token = world.controller.token();
    world.start(&["--join", &token]);
    let (mut session, _) = world.controller.welcomed().await;
    session.say(Say::Launch(world.script(1, "id -u; (setsid sleep 1000 &); exit 2")));
    let ended = session.ended(1).await;
    assert_eq!((ended.cause.as_str(), ended.exit_code), ("exited", 2), "{}", ended.message);
    assert_eq!(world.read("out.1"), format!("{uid}\n"));
    session.say(Say::Launch(v1::Launch { uid: uid + 1, ..world.script(2, "id") }));
    let ended = session.ended(2).await;
    assert!(ended.cause == "launch-failed" && ended.message.contains("run it as root"), "{ended:?}");
}
