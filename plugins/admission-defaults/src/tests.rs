//! What is filled in, and what is refused with which words.

use ephor_sdk::testing::{FakeDraft, FakeSite, JobValues, queue};

use super::*;

const HOUR: Duration = 60 * MINUTE;

fn alice() -> Identity {
    Identity { uid: 1000, gid: 1000, name: "alice".to_owned(), roles: Vec::new() }
}

fn site() -> FakeSite {
    let batch = QueueInfo {
        is_default: true,
        default_time: Some(2 * HOUR),
        max_time: Some(24 * HOUR),
        max_nodes: Some(4),
        default_mem_per_cpu: Some(2_048),
        ..queue("batch")
    };
    let closed = QueueInfo { takes: false, ..queue("closed") };
    FakeSite {
        queues: vec![batch, queue("long"), closed],
        accounts: [(1000, vec!["physics".to_owned(), "shared".to_owned()])].into(),
        live_jobs: [(1000, 10)].into(),
    }
}

fn submit(values: JobValues, site: &FakeSite, config: &Config) -> (Verdict, JobValues) {
    let job = FakeDraft::new(values);
    let verdict = Defaults::admit(0, &alice(), Intent::Submit, &job, site, config);
    (verdict, job.values())
}

fn admitted(values: JobValues, site: &FakeSite) -> JobValues {
    match submit(values, site, &Config::default()) {
        (Verdict::Admit(lines), values) => {
            assert!(lines.is_empty(), "{lines:?}");
            values
        }
        (Verdict::Refuse(why), _) => panic!("refused: {why}"),
    }
}

fn refused(values: JobValues, config: &Config) -> String {
    match submit(values, &site(), config) {
        (Verdict::Refuse(why), _) => why,
        (Verdict::Admit(_), values) => panic!("admitted: {values:?}"),
    }
}

fn job() -> JobValues {
    JobValues::default()
}

#[test]
fn the_queue_fills_what_it_has_a_default_for() {
    let values = admitted(job(), &site());
    assert_eq!((values.queue.as_str(), values.account.as_str()), ("batch", "physics"));
    assert_eq!((values.time_limit, values.memory), (Some(2 * HOUR), Memory::PerCpu(2_048)));
    assert_eq!(values.requeue, Some(true));
}

#[test]
fn what_the_user_said_stays() {
    let mine = JobValues {
        queue: "long".to_owned(),
        account: "shared".to_owned(),
        time_limit: Some(5 * MINUTE),
        memory: Memory::PerNode(100),
        requeue: Some(false),
        ..job()
    };
    assert_eq!(admitted(mine.clone(), &site()), mine);
}

#[test]
fn without_defaults_of_the_queue_the_site_fills() {
    let values = admitted(JobValues { queue: "long".to_owned(), ..job() }, &site());
    assert_eq!((values.time_limit, values.memory), (Some(HOUR), Memory::Unset));
    let config = Config { default_mem_per_cpu_mib: 512, default_time_minutes: 7, requeue: false, ..Config::default() };
    let (_, values) = submit(JobValues { queue: "long".to_owned(), ..job() }, &site(), &config);
    assert_eq!((values.time_limit, values.memory), (Some(7 * MINUTE), Memory::PerCpu(512)));
    assert_eq!(values.requeue, Some(false));
}

#[test]
fn the_maximum_of_the_queue_is_the_default_where_it_has_none() {
    let mut site = site();
    site.queues[0].default_time = None;
    assert_eq!(admitted(job(), &site).time_limit, Some(24 * HOUR));
}

#[test]
fn the_only_queue_is_taken_and_of_many_one_must_be_named() {
    let mut site = site();
    site.queues[0].is_default = false;
    match submit(job(), &site, &Config::default()).0 {
        Verdict::Refuse(why) => assert!(why.contains("batch, long, closed"), "{why}"),
        Verdict::Admit(_) => panic!("admitted"),
    }
    site.queues.truncate(1);
    assert_eq!(admitted(job(), &site).queue, "batch");
    site.queues.clear();
    match submit(job(), &site, &Config::default()).0 {
        Verdict::Refuse(why) => assert!(why.contains("ephor queue create"), "{why}"),
        Verdict::Admit(_) => panic!("admitted"),
    }
}

#[test]
fn a_user_without_a_default_account_gets_the_sites() {
    let mut site = site();
    site.accounts.clear();
    assert_eq!(admitted(job(), &site).account, "default");
    assert_eq!(admitted(JobValues { account: "default".to_owned(), ..job() }, &site).account, "default");
}

#[test]
fn refusals_name_the_limit_the_numbers_and_what_would_work() {
    let config = Config { max_live_jobs_per_user: 12, ..Config::default() };
    let cases: [(JobValues, &[&str]); 7] = [
        (JobValues { queue: "fast".to_owned(), ..job() }, &["fast", "batch, long, closed"]),
        (JobValues { queue: "closed".to_owned(), ..job() }, &["closed to new jobs", "open are: batch, long"]),
        (JobValues { account: "chemistry".to_owned(), ..job() }, &["alice", "chemistry", "physics"]),
        (JobValues { time_limit: Some(25 * HOUR), ..job() }, &["1-01:00:00", "1-00:00:00", "batch"]),
        (JobValues { nodes_min: 5, ..job() }, &["5 nodes", "at most 4"]),
        (JobValues { elements: 3, ..job() }, &["10 unfinished", "3 more", "12", "room for 2"]),
        (JobValues { never_runs: Some("no node has 9 GPUs".to_owned()), ..job() }, &["9 GPUs", "node list"]),
    ];
    for (values, words) in cases {
        let why = refused(values, &config);
        for word in words {
            assert!(why.contains(word), "{word:?} is not in {why:?}");
        }
    }
}

#[test]
fn too_many_nodes_at_most_are_lowered_and_the_user_is_told() {
    let wide = JobValues { nodes_min: 2, nodes_max: Some(9), ..job() };
    let (verdict, values) = submit(wide, &site(), &Config::default());
    assert_eq!((values.nodes_min, values.nodes_max), (2, Some(4)));
    assert!(matches!(verdict, Verdict::Admit(lines) if lines.len() == 1 && lines[0].contains("instead of 9")));
}

#[test]
fn the_last_place_is_given_away() {
    let config = Config { max_live_jobs_per_user: 12, ..Config::default() };
    assert!(matches!(submit(JobValues { elements: 2, ..job() }, &site(), &config).0, Verdict::Admit(_)));
}

#[test]
fn a_job_in_a_queue_that_closed_may_still_be_changed() {
    let inside = JobValues { queue: "closed".to_owned(), time_limit: Some(HOUR), ..job() };
    let mut draft = FakeDraft::new(inside.clone());
    draft.current = Some(inside.clone());
    let modify = |draft: &FakeDraft| Defaults::admit(0, &alice(), Intent::Modify, draft, &site(), &Config::default());
    assert!(matches!(modify(&draft), Verdict::Admit(_)));
    draft.current = Some(JobValues { queue: "batch".to_owned(), ..inside });
    assert!(matches!(modify(&draft), Verdict::Refuse(_)), "but none may be moved there");
}

#[test]
fn an_account_stays_with_a_job_that_is_changed_and_is_else_its_owners() {
    let inside = JobValues { account: "chemistry".to_owned(), ..job() };
    let mut draft = FakeDraft::new(inside.clone());
    let modify = |draft: &FakeDraft| Defaults::admit(0, &alice(), Intent::Modify, draft, &site(), &Config::default());
    draft.current = Some(inside);
    assert!(matches!(modify(&draft), Verdict::Admit(_)));
    draft.current = Some(job());
    assert!(matches!(modify(&draft), Verdict::Refuse(_)));
    // Somebody changes the job of another, who has no account of their own here.
    let mut draft = FakeDraft::new(JobValues { account: "physics".to_owned(), owner: 4711, ..job() });
    draft.current = Some(job());
    assert!(matches!(modify(&draft), Verdict::Refuse(why) if why.contains("4711")));
}

#[test]
fn a_read_only_draft_is_refused_rather_than_half_filled() {
    let mut draft = FakeDraft::new(job());
    draft.read_only = true;
    let verdict = Defaults::admit(0, &alice(), Intent::Submit, &draft, &site(), &Config::default());
    assert!(matches!(verdict, Verdict::Refuse(_)));
    assert_eq!(draft.values(), job());
}

#[test]
fn the_schema_and_the_code_have_the_same_defaults() {
    let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
    assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
}
