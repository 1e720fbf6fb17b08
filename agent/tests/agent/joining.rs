//! Joining, configuration, and refusing to start.

use crate::controller::Controller;
use crate::wait::until;
use crate::world::World;
use ephor_agent::token::Token;
use std::os::unix::fs::PermissionsExt;

fn failure(world: &World, options: &[&str]) -> String {
    let output = world.run(options);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_needed_once() {
    let mut world = World::new().await;
    assert!(failure(&world, &[]).contains("ephor node token n1"));
    let token = world.controller.token();
    world.start(&["--join", &token, "--feature", "big", "--feature", "avx", "--cpus", "3", "--memory", "777"]);
    let (_session, register) = world.controller.welcomed().await;
    assert_eq!(world.controller.joined(), ["n1"]);
    assert_eq!((register.node.as_str(), register.epoch), ("n1", 0));
    assert_eq!(register.features, ["avx", "big"]);
    let amounts: Vec<_> = register.capacity.iter().map(|a| (a.resource.as_str(), a.value)).collect();
    assert_eq!(amounts, [("cpu", 3000), ("mem", 777)]);
    assert_eq!(register.boot_id, std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim());
    let key = std::fs::metadata(world.data().join("identity/key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);

    until("the epoch on disk", || world.data().join("epoch").exists()).await;
    assert!(world.stop(nix::sys::signal::Signal::SIGINT).success(), "Ctrl-C is no error");
    world.start(&[]);
    let (_session, again) = world.controller.welcomed().await;
    assert_eq!((again.node.as_str(), again.epoch), ("n1", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_or_used_token_leaves_nothing_behind() {
    let world = World::new().await;
    let used = world.controller.token();
    let other = World::new().await;
    // Uses it up from another folder.
    let token = Token::parse(&used).unwrap();
    let joining = ephor_agent::identity::Joining { token: &token, node: "n2", simulate: false, address: None };
    std::fs::create_dir(other.data()).unwrap();
    let identity = ephor_agent::identity::Identity::join(&other.data(), &joining).await.unwrap();
    assert_eq!(identity.node, "n2");

    let error = failure(&world, &["--join", &used]);
    assert!(error.contains("was used") && error.contains("ephor node token"), "{error}");
    assert!(failure(&world, &["--join", "EPHOR1.???"]).contains("not a join token"));
    let hollow = Token { authority: "trust me".into(), ..token.clone() };
    assert!(failure(&world, &["--join", &hollow.to_string()]).contains("not a certificate"));
    let stranger = Token { authority: crate::controller::Authority::new().pem, ..token.clone() };
    let error = failure(&world, &["--join", &stranger.to_string()]);
    assert!(error.contains("cannot join") && error.contains("certificate"), "{error}");
    let nobody = Token { address: "127.0.0.1:1".into(), ..token };
    assert!(failure(&world, &["--join", &nobody.to_string()]).contains("cannot join at 127.0.0.1:1"));
    assert!(!world.data().join("identity").exists() && !world.data().join("identity.new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_belongs_to_one_agent_and_one_controller() {
    let (world, _session) = World::with_agent(&[]).await;
    assert!(failure(&world, &[]).contains("another agent uses"));
    let mut world = world;
    world.stop(nix::sys::signal::Signal::SIGTERM);
    let foreign = Controller::start().await.token();
    assert!(failure(&world, &["--join", &foreign]).contains("another controller"));
    let scene = world.path("scene.toml");
    std::fs::write(&scene, "[[nodes]]\nnames=['a']\ncpus=1\nmemory_mib=1\n").unwrap();
    assert!(failure(&world, &["--simulate", scene.to_str().unwrap()]).contains("without --simulate"));
    std::fs::write(world.data().join("epoch"), "many").unwrap();
    assert!(failure(&world, &[]).contains("holds no number"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_checked() {
    let world = World::new().await;
    let config = world.path("agent.toml");
    let check = |text: &str| {
        std::fs::write(&config, text).unwrap();
        world.run(&["--config", config.to_str().unwrap(), "config", "check"])
    };
    let good = check("cpus = 2\nfeatures = ['x']\n");
    assert!(good.status.success());
    let shown = String::from_utf8(good.stdout).unwrap();
    assert!(shown.contains("name = \"n1\"") && shown.contains("cpus = 2") && shown.contains("agent.sock"), "{shown}");
    for (text, why) in [
        ("cpu = 2", "unknown field `cpu`"),
        ("cpus = 'two'", "invalid type"),
        ("simulate = '/nowhere.toml'", "no such file"),
        ("[[gpu]]\nkind = 'h100'", "missing field"),
    ] {
        let bad = check(text);
        let error = String::from_utf8(bad.stderr).unwrap();
        assert!(bad.status.code() == Some(1) && error.contains(why), "{text}: {error}");
    }
    assert!(!world.data().exists(), "a check makes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_logged_and_tried_again() {
    let mut world = World::new().await;
    let token = world.controller.token();
    world.start(&["--join", &token]);
    let mut session = world.controller.session().await;
    session.register().await;
    session.say(crate::controller::Say::Refused(ephor_proto::v1::Refused { reason: "n1 is somebody else".into() }));
    until("the refusal in the log", || world.log().contains("n1 is somebody else")).await;
    world.controller.welcomed().await;
}
