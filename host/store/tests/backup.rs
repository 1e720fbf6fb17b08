//! Copies of a live store, what restoring them asks for, and what a check of a damaged one says.

mod common;

use common::{Cluster, assert_same};
use ephor_core::State;
use ephor_core::command::Command;
use ephor_model::Epoch;
use ephor_store::{History, HistoryJob, LiveStore, OpenOptions, Store, StoreError, verify};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn open(folder: &Path, recover: bool) -> Result<LiveStore, StoreError> {
    LiveStore::open(folder, &OpenOptions { recover, ..OpenOptions::default() })
}

fn happen(cluster: &mut Cluster, step: u64) {
    for i in 0..4 {
        let n = step * 4 + i;
        cluster.happen((n * 7 % 20) as u8, n * 31, n * 17, "job");
    }
}

#[test]
fn a_copy_of_a_live_store_is_one_moment_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), false).unwrap();
    let mut cluster = Cluster::new(State::default());
    cluster.commit(&mut store).unwrap();
    let reader = store.reader();
    let to = folder.path().join("copy.redb");
    let done = AtomicBool::new(false);
    let mut states = Vec::new();
    std::thread::scope(|scope| {
        let copying = scope.spawn(|| {
            let copied = reader.backup(&to);
            done.store(true, Ordering::Release);
            copied
        });
        let mut step = 0;
        // At least some commits, and as many as the copy takes.
        while step < 10 || !done.load(Ordering::Acquire) {
            states.push(cluster.state.clone());
            happen(&mut cluster, step);
            cluster.commit(&mut store).unwrap();
            step += 1;
        }
        states.push(cluster.state.clone());
        copying.join().unwrap().unwrap();
    });
    let report = verify(&to).unwrap();
    assert!(report.is_sound() && report.backup, "{report:?}");
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(reader.backup(&to), Err(StoreError::Exists { .. })));
    assert!(!folder.path().join("copy.redb.partial").exists());

    // Restoring: the file in an empty folder, and a word that one knows what it means.
    let restored = tempfile::tempdir().unwrap();
    fs::copy(&to, restored.path().join("live.redb")).unwrap();
    let refused = open(restored.path(), false).err();
    assert!(matches!(refused, Some(StoreError::IsBackup { .. })), "{refused:?}");
    let store = open(restored.path(), true).unwrap();
    let loaded = store.load().unwrap();
    let original = states.iter().find(|s| s.meta.events == loaded.last_event).unwrap();
    assert_same(&loaded.state, original);
    assert_eq!(loaded.recover_at, Some(Epoch(loaded.epoch.0 + 1000)));
    drop(store);
    // Nobody has reigned yet, so the word is asked for again.
    assert!(matches!(open(restored.path(), false), Err(StoreError::IsBackup { .. })));
    let mut store = open(restored.path(), true).unwrap();
    let mut cluster = Cluster::resume(loaded.state);
    let at_least = loaded.recover_at.unwrap();
    cluster.execute(Command::BeginEpoch { at_least: at_least.0 });
    cluster.commit(&mut store).unwrap();
    drop(store);
    let loaded = open(restored.path(), false).unwrap().load().unwrap();
    assert_eq!((loaded.epoch, loaded.recover_at), (at_least, None));
    assert_same(&loaded.state, &cluster.state);
}

#[test]
fn a_backup_that_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), false).unwrap();
    let to = folder.path().join("not there").join("copy.redb");
    assert!(matches!(store.reader().backup(&to), Err(StoreError::Io { .. })));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn the_history_is_copied_too() {
    let folder = tempfile::tempdir().unwrap();
    let _store = open(folder.path(), false).unwrap();
    let history = History::open(folder.path()).unwrap();
    let mut cluster = Cluster::new(State::default());
    let id = cluster.submit("job", 1, 2).unwrap();
    let job = HistoryJob::from_element(&cluster.state, id).unwrap();
    history.append(std::slice::from_ref(&job)).unwrap();
    let restored = tempfile::tempdir().unwrap();
    history.backup(&restored.path().join("history.redb")).unwrap();
    let copy = History::open(restored.path()).unwrap();
    assert_eq!(copy.get(id).unwrap(), Some(job.clone()));
    assert_eq!(copy.query(&Default::default()).unwrap().jobs, [job]);
}

#[test]
fn a_check_finds_damage_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), false).unwrap();
    let mut cluster = Cluster::new(State::default());
    for step in 0..20 {
        happen(&mut cluster, step);
        cluster.commit(&mut store).unwrap();
        if step == 10 {
            store.checkpoint(&cluster.state).unwrap();
        }
    }
    let path = folder.path().join("copy.redb");
    store.reader().backup(&path).unwrap();
    let sound = fs::read(&path).unwrap();
    let mut found = 0;
    for at in (0..sound.len()).step_by(211) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        match verify(&path) {
            // A byte that nothing uses.
            Ok(report) if report.is_sound() => assert_eq!(report.last_event, cluster.state.meta.events),
            _ => found += 1,
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "a check changed the file");
    }
    assert!(found > sound.len() / 211 / 10, "only {found} damages were found");
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    assert!(verify(&path).is_err());
    fs::write(&path, b"").unwrap();
    assert!(matches!(verify(&path), Err(StoreError::Damaged { .. })));
}
