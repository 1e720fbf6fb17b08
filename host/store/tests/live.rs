//! The live store as its user sees it: commit, load, refuse, read, tidy.

mod common;

use common::{Cluster, assert_same, blob, digest};
use ephor_core::State;
use ephor_core::command::Command;
use ephor_model::{Digest, Epoch, JobId};
use ephor_store::{CommitBatch, History, LiveStore, OpenOptions, Retention, Store, StoreError, Tidied, verify};
use std::path::Path;

fn open(folder: &Path) -> LiveStore {
    LiveStore::open(folder, &OpenOptions::default()).unwrap()
}

fn history(cluster: &mut Cluster, store: &mut LiveStore, steps: u64) {
    for step in 0..steps {
        for i in 0..5 {
            let n = step * 5 + i;
            cluster.happen((n * 7 % 20) as u8, n * 31, n * 17, "job");
        }
        cluster.commit(store).unwrap();
    }
}

#[test]
fn what_was_committed_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let fresh = store.load().unwrap();
    assert_eq!((fresh.state, fresh.last_event, fresh.epoch, fresh.recover_at), (State::default(), 0, Epoch(0), None));
    let mut cluster = Cluster::new(State::default());
    let odd = "a\0'\"\n\u{202e}; DROP TABLE jobs;--";
    let id = cluster.submit(odd, 1, 2).unwrap();
    cluster.commit(&mut store).unwrap();
    history(&mut cluster, &mut store, 40);
    drop(store);
    let store = open(folder.path());
    let loaded = store.load().unwrap();
    assert_same(&loaded.state, &cluster.state);
    assert_eq!((loaded.last_event, loaded.epoch), (cluster.state.meta.events, cluster.state.meta.epoch));
    if let Some((entry, _)) = loaded.state.find(id) {
        assert_eq!(entry.job.spec.name, odd);
    }
    drop(store);
    let report = verify(&folder.path().join("live.redb")).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.last_event, report.folded), (loaded.last_event, loaded.last_event));
}

#[test]
fn events_are_read_from_any_number_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut cluster = Cluster::new(State::default());
    cluster.commit(&mut store).unwrap();
    history(&mut cluster, &mut store, 20);
    let reader = store.reader();
    let all = reader.events(1, usize::MAX).unwrap();
    assert_eq!((all.first, all.events.len() as u64), (1, cluster.state.meta.events));
    for from in 1..=cluster.state.meta.events {
        let run = reader.events(from, 3).unwrap();
        assert_eq!(run.first, from);
        assert!(!run.events.is_empty());
        let start = from as usize - 1;
        assert_eq!(run.events, all.events[start..start + run.events.len()]);
    }
    assert!(reader.events(cluster.state.meta.events + 1, 10).unwrap().events.is_empty());
}

#[test]
fn refusals_write_nothing_and_leave_the_store_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut cluster = Cluster::new(State::default());
    cluster.execute(Command::BeginEpoch { at_least: 7 });
    cluster.commit(&mut store).unwrap();
    let before = store.load().unwrap();

    cluster.submit("job", 1, 2).unwrap();
    let full = CommitBatch::of(&cluster.state, &cluster.batch, cluster.blobs.clone());
    let old = store.commit(Epoch(6), &full);
    assert!(matches!(old, Err(StoreError::Fenced { stored: Epoch(7), given: Epoch(6) })), "{old:?}");
    let ahead = CommitBatch { first_event: full.first_event + 1, ..full };
    let gap = store.commit(Epoch(7), &ahead);
    assert!(matches!(gap, Err(StoreError::Gap { .. })), "{gap:?}");
    let bare = CommitBatch::of(&cluster.state, &cluster.batch, Vec::new());
    let missing = store.commit(Epoch(7), &bare);
    assert!(matches!(missing, Err(StoreError::MissingBlob(_))), "{missing:?}");

    assert_same(&store.load().unwrap().state, &before.state);
    cluster.commit(&mut store).unwrap();
    assert_same(&store.load().unwrap().state, &cluster.state);
}

#[test]
fn equal_blobs_are_kept_once_and_go_with_the_last_job() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let reader = store.reader();
    let mut cluster = Cluster::new(State::default());
    let ids: Vec<JobId> = (0..50).map(|_| cluster.submit("job", 1, 2).unwrap()).collect();
    // One that no row names is not kept.
    cluster.blobs.push((Digest([9; 32]), vec![1]));
    cluster.commit(&mut store).unwrap();
    let (script, environment) = (blob(1), blob(2));
    assert_eq!(reader.blob(&digest(&script)).unwrap(), Some(script.clone()));
    assert_eq!(reader.blob(&digest(&environment)).unwrap(), Some(environment));
    assert_eq!(reader.blob(&Digest([9; 32])).unwrap(), None);

    let end = |cluster: &mut Cluster, store: &mut LiveStore, ids: &[JobId]| {
        for id in ids {
            let by = ephor_core::command::system();
            cluster.execute(Command::Act { action: ephor_core::command::Action::Cancel, job: *id, whole: true, by });
        }
        cluster.execute(Command::Forget(ids.to_vec()));
        cluster.commit(store).unwrap();
    };
    end(&mut cluster, &mut store, &ids[1..]);
    assert!(reader.blob(&digest(&script)).unwrap().is_some());
    end(&mut cluster, &mut store, &ids[..1]);
    assert_eq!(reader.blob(&digest(&script)).unwrap(), None);
    drop((store, reader));
    let report = verify(&folder.path().join("live.redb")).unwrap();
    assert!(report.is_sound() && report.blobs == 0, "{report:?}");
}

#[test]
fn a_folder_serves_one_controller_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    match LiveStore::open(folder.path(), &OpenOptions::default()) {
        Err(e @ StoreError::Busy { pid: Some(pid), .. }) => {
            assert_eq!(pid, std::process::id());
            assert!(e.to_string().contains(&format!("process {pid}")), "{e}");
        }
        other => panic!("{other:?}"),
    }
    let busy = verify(store.path());
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    drop(store);
    open(folder.path());
}

#[test]
fn a_file_that_lost_its_content_is_no_new_cluster() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let file = folder.path().join("live.redb");
    assert!(!folder.path().join("live.redb.new").exists());
    let store = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"").unwrap();
    let empty = LiveStore::open(folder.path(), &OpenOptions::default()).err();
    assert!(matches!(empty, Some(StoreError::Damaged { .. })), "{empty:?}");
    // What a start that was cut off left is taken over.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(folder.path().join("live.redb.new"), &store[..100]).unwrap();
    open(folder.path());
}

#[test]
fn files_of_other_versions_say_so() {
    const META: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("meta");
    for (format, text) in [(2u32, "has format 2 and this version knows up to 1"), (0, "has format 0")] {
        let folder = tempfile::tempdir().unwrap();
        drop((open(folder.path()), History::open(folder.path()).unwrap()));
        for name in ["live.redb", "history.redb"] {
            let db = redb::Database::open(folder.path().join(name)).unwrap();
            let txn = db.begin_write().unwrap();
            txn.open_table(META).unwrap().insert("format", format.to_le_bytes().as_slice()).unwrap();
            txn.commit().unwrap();
        }
        let errors = [
            LiveStore::open(folder.path(), &OpenOptions::default()).unwrap_err(),
            verify(&folder.path().join("live.redb")).unwrap_err(),
            History::open(folder.path()).unwrap_err(),
        ];
        for error in errors {
            let expected = match format {
                2 => matches!(error, StoreError::Newer { .. }),
                _ => matches!(error, StoreError::Older { .. }),
            };
            assert!(expected && error.to_string().contains(text), "{error}");
        }
    }
}

#[test]
fn old_events_go_after_a_checkpoint_and_the_rest_still_folds() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut cluster = Cluster::new(State::default());
    cluster.commit(&mut store).unwrap();
    let keep = Retention { bytes: 20_000, age: None };
    let mut checkpoints = 0;
    for round in 0..30 {
        history(&mut cluster, &mut store, 10);
        let mut steps = 0;
        while store.tidy(&cluster.state, &keep).unwrap() == Tidied::MoreToDo {
            steps += 1;
            assert!(steps < 100, "tidying does not end");
            // What happens between two steps belongs to the events, not to the checkpoint.
            cluster.happen(0, round, steps, "between");
            cluster.commit(&mut store).unwrap();
        }
        checkpoints += usize::from(steps > 0);
        let kept = store.reader().events(1, usize::MAX).unwrap();
        assert_eq!(kept.first + kept.events.len() as u64 - 1, cluster.state.meta.events);
        if round % 10 == 9 {
            drop(store);
            let report = verify(&folder.path().join("live.redb")).unwrap();
            assert!(report.is_sound(), "{report:?}");
            assert!(report.checkpoint > 0 && report.folded < report.last_event);
            store = open(folder.path());
            assert_same(&store.load().unwrap().state, &cluster.state);
        }
    }
    assert!(checkpoints > 3);
    assert!(store.reader().events(1, 1).unwrap().first > 1);
    // By age: everything but what is newest goes.
    let young = Retention { bytes: u64::MAX, age: Some(ephor_model::Span(10_000)) };
    while store.tidy(&cluster.state, &young).unwrap() == Tidied::MoreToDo {}
    let kept = store.reader().events(1, usize::MAX).unwrap();
    let oldest = kept.events.first().unwrap().at;
    assert!((cluster.state.meta.now - oldest).0 < 100_000, "{} events", kept.events.len());
}
