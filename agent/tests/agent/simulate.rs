//! Virtual nodes.

use crate::controller::Say;
use crate::world::{World, attempt, terminate};
use ephor_proto::v1;
use std::collections::HashSet;
use v1::agent_message::Body as Heard;
use v1::report::What;

async fn world(scene: &str) -> World {
    let mut world = World::new().await;
    let path = world.path("scene.toml");
    std::fs::write(&path, scene).unwrap();
    let token = world.controller.token();
    world.start(&["--join", &token, "--name", "host", "--simulate", path.to_str().unwrap()]);
    world
}

fn launch(node: &str, job: u64, simulated_ms: Option<i64>) -> v1::Launch {
    v1::Launch { node: node.into(), attempt: attempt(job, 1), simulated_ms, ..v1::Launch::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_virtual_nodes_sleep_and_end() {
    let scene = "[[nodes]]\nprefix='n'\ncount=2\ncpus=8\nmemory_mib=1000\ngpus=4\ngpu_kind='h100'\nfeatures=['x']\n";
    let mut world = world(scene).await;
    let mut session = world.controller.session().await;
    assert_eq!(world.controller.joined(), ["simulate:host"]);
    for name in ["n1", "n2"] {
        let register = session.register().await;
        assert_eq!((register.node.as_str(), register.devices.len()), (name, 4));
        assert_eq!(register.features, ["x"]);
        session.welcome(name, &[]);
    }
    session.say(Say::Launch(launch("n1", 1, Some(20))));
    session.say(Say::Launch(v1::Launch { argv: vec!["sleep".into(), "0.01".into()], ..launch("n2", 2, None) }));
    session.say(Say::Launch(v1::Launch { time_limit: Some(30), ..launch("n1", 3, Some(1_000_000)) }));
    session.say(Say::Launch(launch("n1", 4, Some(1_000_000))));
    session.say(Say::Launch(launch("n1", 4, Some(1_000_000))));
    session.say(Say::Launch(launch("n2", 5, None)));
    terminate(&session, 4, "preempted", 0);
    session.say(Say::Launch(v1::Launch { time_limit: Some(1_000_000), ..launch("n2", 6, Some(2_000_000)) }));
    let shorter = v1::Adjust { node: "n2".into(), attempt: attempt(6, 1), time_limit: Some(40) };
    session.say(Say::Adjust(shorter));
    let mut ends = std::collections::BTreeMap::new();
    while ends.len() < 6 {
        let report = session.report().await;
        if let Some(What::Ended(ended)) = report.what {
            session.acknowledge(report.number);
            let before = ends.insert(report.attempt.unwrap().job, ended.cause);
            assert_eq!(before, None, "each ends once");
        }
    }
    let causes: Vec<_> = ends.values().map(String::as_str).collect();
    assert_eq!(causes, ["exited", "exited", "time-limit", "preempted", "exited", "time-limit"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_nodes_live_in_one_process() {
    const NODES: usize = 10_000;
    let mut world = world("[[nodes]]\nprefix='n'\ncount=10000\ncpus=8\nmemory_mib=1000\n").await;
    let mut session = world.controller.session().await;
    let mut names = HashSet::new();
    for _ in 0..NODES {
        let register = session.register().await;
        session.welcome(&register.node, &[]);
        names.insert(register.node);
    }
    assert_eq!(names.len(), NODES);
    for (job, name) in (1..).zip(&names) {
        session.say(Say::Launch(launch(name, job, Some(50))));
    }
    let mut ended = HashSet::new();
    while ended.len() < NODES {
        match session.hear().await {
            Some(Heard::Report(report)) => {
                session.acknowledge(report.number);
                if let Some(What::Ended(_)) = report.what {
                    assert!(ended.insert(report.attempt.unwrap().job));
                }
            }
            Some(Heard::Heartbeat(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let pid = world.agent_pid();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    assert!(threads <= 4, "{threads} threads for {NODES} nodes");
}
