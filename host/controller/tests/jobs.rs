//! What a client sees of jobs: lists, arrays, reasons, scripts, acting, backup.

mod common;

use common::{Cluster, submission};
use ephor_controller::restore;
use ephor_proto::v1;
use tonic::Code;

fn by_id(job: u64) -> v1::JobQuery {
    v1::JobQuery { jobs: vec![v1::JobRef { job, index: None }], finished: true, ..v1::JobQuery::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_is_one_row_until_something_happens_to_it() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let array = v1::SubmitRequest { array: Some("5-9%2".into()), hold: true, ..submission() };
    let job = user.submit(array).await.unwrap().into_inner().job;
    let list = user.list_jobs(by_id(job)).await.unwrap().into_inner().jobs;
    let shown: Vec<&str> = list.iter().map(|j| j.display_id.as_str()).collect();
    assert_eq!(shown, [format!("{job}_[5-9%2]")]);
    assert_eq!(list[0].reason, "JobHeldUser");
    let act = v1::JobActionRequest {
        action: v1::JobAction::Cancel.into(),
        jobs: vec![v1::JobRef { job, index: Some(7) }, v1::JobRef { job: 999, index: None }],
    };
    let problems = user.act_on_jobs(act).await.unwrap().into_inner().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].job, "999");
    let list = user.list_jobs(by_id(job)).await.unwrap().into_inner().jobs;
    let shown: Vec<(&str, &str)> = list.iter().map(|j| (j.display_id.as_str(), j.state.as_str())).collect();
    assert_eq!(shown, [(format!("{job}_[5-6,8-9%2]").as_str(), "PENDING"), (format!("{job}_7").as_str(), "CANCELLED")]);
    let live = user.list_jobs(v1::JobQuery::default()).await.unwrap().into_inner().jobs;
    assert_eq!(live.len(), 1);
    let one =
        v1::JobQuery { jobs: vec![v1::JobRef { job, index: Some(7) }], finished: true, ..v1::JobQuery::default() };
    assert_eq!(user.list_jobs(one).await.unwrap().into_inner().jobs[0].array_index, Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_bad_questions() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    for name in ["a", "b", "b"] {
        user.submit(v1::SubmitRequest { name: name.into(), hold: true, ..submission() }).await.unwrap();
    }
    let mut count = async |query: v1::JobQuery| user.list_jobs(query).await.map(|l| l.into_inner().jobs.len());
    assert_eq!(count(v1::JobQuery { name: Some("b".into()), ..Default::default() }).await.unwrap(), 2);
    assert_eq!(count(v1::JobQuery { states: vec!["PD".into()], ..Default::default() }).await.unwrap(), 3);
    assert_eq!(count(v1::JobQuery { states: vec!["running".into()], ..Default::default() }).await.unwrap(), 0);
    assert_eq!(count(v1::JobQuery { user: Some("nobody-here".into()), ..Default::default() }).await.unwrap(), 0);
    assert_eq!(count(v1::JobQuery { limit: 2, ..Default::default() }).await.unwrap(), 2);
    let error = count(v1::JobQuery { states: vec!["AJAR".into()], ..Default::default() }).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_submissions_say_what_is_wrong_and_leave_nothing() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let script = |text: &str| v1::SubmitRequest { argv: Vec::new(), script: Some(text.into()), ..submission() };
    for (request, part) in [
        (script("echo"), "#!"),
        (script("#!/bin/sh\r\ntrue\r\n"), "CR LF"),
        (v1::SubmitRequest { queue: "nowhere".into(), ..submission() }, "nowhere"),
        (v1::SubmitRequest { account: "nobody".into(), ..submission() }, "nobody"),
        (v1::SubmitRequest { argv: Vec::new(), ..submission() }, "script or a command"),
        (
            v1::SubmitRequest {
                dependencies: vec![v1::Dependency { kind: "afterok".into(), job: 77 }],
                ..submission()
            },
            "77",
        ),
    ] {
        let error = user.submit(request).await.unwrap_err();
        assert!(error.message().contains(part), "{part}: {}", error.message());
    }
    assert!(user.list_jobs(v1::JobQuery::default()).await.unwrap().into_inner().jobs.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_name_what_holds_a_job_back() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let mut submit = async |request: v1::SubmitRequest| user.submit(request).await.unwrap().into_inner().job;
    let held = submit(v1::SubmitRequest { hold: true, ..submission() }).await;
    let after = v1::Dependency { kind: "afterok".into(), job: held };
    let waiting = submit(v1::SubmitRequest { dependencies: vec![after], ..submission() }).await;
    let later = submit(v1::SubmitRequest { begin: Some(i64::MAX / 4), ..submission() }).await;
    for (job, reason, part) in [
        (held, "JobHeldUser", "ephor job release"),
        (waiting, "Dependency", "afterok of job"),
        (later, "BeginTime", "may not start before"),
    ] {
        let why = cluster.user().explain_job(v1::JobRef { job, index: None }).await.unwrap().into_inner();
        assert_eq!(why.job.unwrap().reason, reason);
        assert!(why.lines.iter().any(|l| l.contains(part)), "{part}: {:?}", why.lines);
    }
    let gone = cluster.user().explain_job(v1::JobRef { job: 99, index: None }).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_kept_and_a_backup_holds_the_state() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let text = b"#!/bin/sh\ntrue\n".to_vec();
    let request = v1::SubmitRequest { argv: Vec::new(), script: Some(text.clone()), ..submission() };
    let job = user.submit(request).await.unwrap().into_inner().job;
    let script = user.job_script(v1::JobRef { job, index: None }).await.unwrap().into_inner().data;
    assert_eq!(script, text);
    let mut pieces = user.backup(v1::Empty {}).await.unwrap().into_inner();
    let mut copy = Vec::new();
    while let Some(piece) = pieces.message().await.unwrap() {
        copy.extend(piece.data);
    }
    let file = cluster.folder.path().join("b");
    std::fs::write(&file, &copy).unwrap();
    let found = restore::check(&file).unwrap();
    assert!(found.live.backup && found.trust);
    std::fs::write(&file, &copy[..copy.len() - 1]).unwrap();
    assert!(restore::check(&file).is_err());
    assert!(!cluster.folder.path().join("data/backup-in-progress").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_licences_are_made_shown_and_kept_to() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let limits = v1::UseLimits {
        submitted: Some(2),
        in_use: vec![v1::Amount { resource: "licence:solver".into(), value: 2 }],
        ..v1::UseLimits::default()
    };
    let account = v1::AccountObject { name: "lab".into(), shares: 1, limits: Some(limits), ..Default::default() };
    let qos = v1::QosObject { name: "high".into(), priority: 5, accounts: vec!["lab".into()], ..Default::default() };
    let set = v1::ObjectSet { accounts: vec![account], qos: vec![qos], ..Default::default() };
    let missing = user.apply(set.clone()).await.unwrap_err();
    assert!(missing.message().contains("'licence:solver'"), "{missing}");
    let licences = vec![v1::LicenceObject { name: "solver".into(), count: 3 }];
    user.apply(v1::ObjectSet { licences, ..set }).await.unwrap();
    // What is exported is what is there.
    let all = user.export(v1::Empty {}).await.unwrap().into_inner();
    let again = user.apply(all).await.unwrap().into_inner();
    assert_eq!((again.created, again.changed), (0, 0));

    let lab = |licences: u32| v1::SubmitRequest {
        account: "lab".into(),
        qos: Some("high".into()),
        hold: true,
        licences: vec![v1::LicenceObject { name: "solver".into(), count: licences }],
        ..submission()
    };
    let refused = user.submit(lab(4)).await.unwrap_err();
    assert!(refused.message().contains("there are 3 in all"), "{refused}");
    let job = user.submit(lab(1)).await.unwrap().into_inner().job;
    user.submit(lab(2)).await.unwrap();
    let refused = user.submit(lab(1)).await.unwrap_err();
    assert!(refused.message().contains("may have 2 jobs waiting or running and has 2"), "{refused}");
    let refused = user.submit(v1::SubmitRequest { qos: Some("high".into()), ..submission() }).await.unwrap_err();
    assert!(refused.message().contains("not for jobs of account 'default'"), "{refused}");
    let refused = user.submit(v1::SubmitRequest { reservation: Some("x".into()), ..submission() }).await.unwrap_err();
    assert!(refused.message().contains("no reservation 'x'"), "{refused}");
    let pools = user.list_pools(v1::Empty {}).await.unwrap().into_inner().pools;
    let submitted = pools.iter().find(|p| p.what == "submitted").unwrap();
    assert_eq!((submitted.whose.as_str(), submitted.used, submitted.most), ("account 'lab'", 2, 2));
    let shown = user.list_jobs(by_id(job)).await.unwrap().into_inner().jobs.remove(0);
    assert_eq!((shown.qos.as_deref(), shown.licences[0].count), (Some("high"), 1));
    let delete = v1::DeleteRequest { kind: "licence".into(), name: "solver".into() };
    assert!(user.delete(delete).await.unwrap_err().message().contains("still asked for by 2 jobs"));
}
