//! The history as its user sees it: appended once, found by everything that is asked for.

mod common;

use common::Cluster;
use ephor_core::State;
use ephor_core::command::{Action, Command, Group, NodeReport, Start, system};
use ephor_model::*;
use ephor_store::history::{ArrayPlace, Cursor, Filter};
use ephor_store::{History, HistoryJob};
use std::sync::Arc;

fn record(id: u64, user: &str, ended: i64) -> HistoryJob {
    let mut cluster = Cluster::new(State::default());
    let first = cluster.submit("job", 1, 2).unwrap();
    let mut job = HistoryJob::from_element(&cluster.state, first).unwrap();
    job.id = JobId(id);
    job.owner.name = user.into();
    job.owner.uid = Uid(1000 + id as u32 % 2);
    job.state = JobState::Completed;
    job.submitted = Timestamp(ended - 100);
    job.started = Some(Timestamp(ended - 50));
    job.ended = Some(Timestamp(ended));
    job
}

fn ids(history: &History, filter: &Filter) -> Vec<u64> {
    let page = history.query(filter).unwrap();
    assert_eq!(page.next, None);
    page.jobs.iter().map(|j| j.id.0).collect()
}

#[test]
fn jobs_are_found_by_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).unwrap();
    let odd = "o'neil\0\n";
    let mut jobs = vec![record(1, "ann", 1000), record(2, odd, 2000), record(3, "ann", 1500), record(4, "anna", 1500)];
    jobs[1].name = odd.into();
    jobs[1].state = JobState::Failed;
    jobs[2].account = "other".into();
    jobs[3].queue = "other".into();
    history.append(&jobs).unwrap();
    let all = Filter::default();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(ids(&history, &all), [2, 4, 3, 1]);
    assert_eq!(ids(&history, &Filter { user: some("ann"), ..all.clone() }), [3, 1]);
    assert_eq!(ids(&history, &Filter { user: some(odd), ..all.clone() }), [2]);
    assert_eq!(ids(&history, &Filter { user: some("1001"), ..all.clone() }), [3, 1]);
    assert_eq!(ids(&history, &Filter { user: some("nobody"), ..all.clone() }), [0; 0]);
    assert_eq!(ids(&history, &Filter { name: some(odd), ..all.clone() }), [2]);
    assert_eq!(ids(&history, &Filter { account: some("other"), ..all.clone() }), [3]);
    assert_eq!(ids(&history, &Filter { queue: some("other"), ..all.clone() }), [4]);
    assert_eq!(ids(&history, &Filter { states: vec![JobState::Failed, JobState::Timeout], ..all.clone() }), [2]);
    assert_eq!(ids(&history, &Filter { since: Some(Timestamp(1500)), ..all.clone() }), [2, 4, 3]);
    assert_eq!(ids(&history, &Filter { until: Some(Timestamp(1450)), ..all.clone() }), [1]);
    let both = Filter { user: some("ann"), since: Some(Timestamp(1001)), until: Some(Timestamp(1451)), ..all.clone() };
    assert_eq!(ids(&history, &both), [3]);

    let first = history.query(&Filter { limit: 3, ..all.clone() }).unwrap();
    assert_eq!(first.jobs.iter().map(|j| j.id.0).collect::<Vec<_>>(), [2, 4, 3]);
    assert_eq!(first.next, Some(Cursor { ended: Timestamp(1500), id: JobId(3) }));
    assert_eq!(ids(&history, &Filter { after: first.next, ..all.clone() }), [1]);
    let of_user = Filter { user: some("ann"), limit: 1, ..all };
    let first = history.query(&of_user).unwrap();
    assert_eq!(ids(&history, &Filter { after: first.next, ..of_user }), [1]);
}

#[test]
fn appending_again_changes_nothing_and_the_last_attempt_counts() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).unwrap();
    let mut job = record(5, "ann", 1000);
    job.attempts = 1;
    history.append(&[job.clone(), job.clone()]).unwrap();
    history.append(&[job.clone()]).unwrap();
    assert_eq!(history.count().unwrap(), 1);
    let mut second = job.clone();
    second.attempts = 2;
    second.ended = Some(Timestamp(3000));
    second.charge = Some(7);
    history.append(&[second.clone()]).unwrap();
    // A late repetition of the first.
    history.append(&[job.clone()]).unwrap();
    assert_eq!(history.get(job.id).unwrap(), Some(second.clone()));
    assert_eq!(history.query(&Filter::default()).unwrap().jobs, [second]);
    assert_eq!(history.query(&Filter { user: Some("ann".into()), ..Filter::default() }).unwrap().jobs.len(), 1);
    // After a restore of an older copy the id was given again.
    let mut other = job.clone();
    other.submitted = Timestamp(950);
    other.owner.name = "bob".into();
    history.append(&[other.clone()]).unwrap();
    assert_eq!(history.query(&Filter::default()).unwrap().jobs, [other]);
    assert!(history.query(&Filter { user: Some("ann".into()), ..Filter::default() }).unwrap().jobs.is_empty());
    assert_eq!(history.get(JobId(6)).unwrap(), None);
}

#[test]
fn arrays_come_whole_and_dependants_learn_how_they_ended() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).unwrap();
    let element = |id: u64, index: u32, state: JobState| HistoryJob {
        array: Some(ArrayPlace { array: JobId(10), index }),
        state,
        ..record(id, "ann", 1000)
    };
    let done = JobState::Completed;
    history.append(&[record(9, "ann", 10), element(10, 0, done), element(11, 2, done), element(12, 4, done)]).unwrap();
    history.append(&[record(13, "ann", 10)]).unwrap();
    let found = history.get_array(JobId(10), JobId(10), 100).unwrap();
    assert_eq!(found.iter().map(HistoryJob::display_id).collect::<Vec<_>>(), ["10_0", "10_2", "10_4"]);
    assert_eq!(history.get_array(JobId(10), JobId(11), 1).unwrap()[0].id, JobId(11));
    assert_eq!(history.get_array(JobId(9), JobId(9), 100).unwrap().len(), 1);
    assert_eq!(history.outcome(JobId(10)).unwrap(), Some(done));
    history.append(&[element(12, 4, JobState::Timeout)]).unwrap();
    assert_eq!(history.outcome(JobId(10)).unwrap(), Some(JobState::Timeout));
    assert_eq!(history.outcome(JobId(11)).unwrap(), Some(done));
    assert_eq!(history.outcome(JobId(9)).unwrap(), Some(done));
    assert_eq!(history.outcome(JobId(14)).unwrap(), None);
}

#[test]
fn a_record_tells_the_life_of_its_job() {
    let mut cluster = Cluster::new(State::default());
    let id = cluster.submit("it's", 1, 2).unwrap();
    let waiting = HistoryJob::from_element(&cluster.state, id).unwrap();
    assert_eq!((waiting.state, waiting.started, waiting.nodes.len()), (JobState::Pending, None, 0));
    assert_eq!(waiting.command, r"(script) 'it'\''s'");
    assert_eq!((waiting.queue.as_str(), waiting.account.as_str()), ("main", "physics"));

    let amounts = Amounts::new().with(ResourceId::CPU, 2000);
    let part = AllocationPart { node: NodeId(1), tasks: 1, amounts: amounts.clone(), devices: Default::default() };
    let allocation = Arc::new(Allocation { parts: [part].into_iter().collect() });
    cluster
        .execute(Command::Plan {
            groups: vec![Group { starts: vec![Start { job: id, allocation }], ..Group::default() }],
        })
        .unwrap();
    let key = AttemptKey { job: id, number: 1 };
    cluster.execute(Command::NodeReport(NodeReport::Began { key })).unwrap();
    let running = HistoryJob::from_element(&cluster.state, id).unwrap();
    assert_eq!((running.state, running.attempts), (JobState::Running, 1));
    assert_eq!((running.nodes.as_slice(), &running.allocated), (["n1".to_owned()].as_slice(), &amounts));

    let usage = Usage { cpu_ms: 5, peak_mem_mib: 6, held: Amounts::new() };
    let exit = Exit { code: 3, signal: 0 };
    let cause = EndCause::Exited;
    cluster.execute(Command::NodeReport(NodeReport::Ended { key, exit, cause, message: "m".into(), usage })).unwrap();
    cluster.execute(Command::Charge(vec![(key, 11)])).unwrap();
    let ended = HistoryJob::from_element(&cluster.state, id).unwrap();
    assert_eq!((ended.state, ended.reason, ended.exit), (JobState::Failed, ReasonCode::NonZeroExitCode, exit));
    assert_eq!((ended.detail.as_deref(), ended.charge, ended.usage.cpu_ms), (Some("m"), Some(11), 5));
    assert_eq!(ended.nodes, ["n1"]);
    assert!(ended.started < ended.ended);
    cluster.execute(Command::Act { action: Action::Requeue, job: id, whole: false, by: system() }).unwrap();
    let again = HistoryJob::from_element(&cluster.state, id).unwrap();
    assert_eq!((again.state, again.attempts, again.ended, again.nodes.len()), (JobState::Pending, 1, None, 0));
    assert!(HistoryJob::from_element(&cluster.state, JobId(99)).is_none());
}
