//! Power cuts at every moment, full and failing disks: what was acknowledged is there, and nothing is half there.

mod common;

use common::disk::{Dice, Disk, PowerCut};
use common::{Cluster, assert_same};
use ephor_core::State;
use ephor_store::{History, HistoryJob, LiveStore, OpenOptions, Retention, Store, StoreError};
use std::collections::BTreeMap;
use std::path::Path;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn open(disk: &Disk) -> Result<LiveStore, StoreError> {
    LiveStore::open_on(disk.clone(), Path::new("live.redb"), &OpenOptions::default())
}

/// A disk with a new store on it, and its content. While a store is made it has another name: see `open_or_make`.
fn fresh() -> (Disk, Vec<u8>) {
    let disk = Disk::default();
    drop(open(&disk).unwrap());
    (Disk::with(disk.content()), disk.content())
}

/// A little of everything, and now and then a job large enough to make the file grow.
fn live_on(cluster: &mut Cluster, step: u64) {
    for i in 0..3 {
        let n = step * 3 + i;
        cluster.happen((n * 7 % 20) as u8, n * 31, n * 17, "a\0'\"\n");
    }
    if step % 9 == 0 {
        cluster.submit(&"big".repeat(20_000), step * 4 + 1, 1).unwrap();
    }
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    let (disk, made) = fresh();
    let mut store = open(&disk).unwrap();
    let mut cluster = Cluster::new(State::default());
    // States by the number of their last event, and how many changes the disk had seen when each was acknowledged.
    let mut states = BTreeMap::from([(0, State::default())]);
    let mut acknowledged = vec![(0, 0)];
    let keep = Retention { bytes: 30_000, age: None };
    for step in 0..30 {
        live_on(&mut cluster, step);
        states.insert(cluster.state.meta.events, cluster.state.clone());
        cluster.commit(&mut store).unwrap();
        acknowledged.push((disk.changes(), cluster.state.meta.events));
        store.tidy(&cluster.state, &keep).unwrap();
    }
    assert!(store.reader().events(1, 1).unwrap().first > 1, "nothing was tidied away in this test");

    let mut cut = PowerCut::new(made);
    let mut dice = Dice::new(7);
    for (at, op) in disk.log().iter().enumerate() {
        let surely = acknowledged.iter().rev().find(|(changes, _)| *changes <= at).unwrap().1;
        let at_most = acknowledged.iter().find(|(_, events)| *events > surely).map_or(u64::MAX, |a| a.1);
        for keep in [1, 2, 8] {
            check(cut.cut(&mut dice, keep), &states, surely, at_most, &mut dice, &format!("after {at} changes"));
        }
        cut.go_on(op);
    }
}

fn check(image: Vec<u8>, states: &BTreeMap<u64, State>, surely: u64, at_most: u64, dice: &mut Dice, when: &str) {
    let disk = Disk::with(image.clone());
    let store = open(&disk).unwrap_or_else(|e| panic!("{when}: {e}"));
    let loaded = store.load().unwrap_or_else(|e| panic!("{when}: {e}"));
    assert!((surely..=at_most).contains(&loaded.last_event), "{when}: {} of {surely}", loaded.last_event);
    assert_same(&loaded.state, &states[&loaded.last_event]);
    let report = store.check().unwrap_or_else(|e| panic!("{when}: {e}"));
    assert!(report.is_sound(), "{when}: {report:?}");
    // The power goes again while the store repairs itself.
    let log = disk.log();
    let mut again = PowerCut::new(image);
    log.iter().take(dice.roll(log.len() + 1)).for_each(|op| again.go_on(op));
    let twice = open(&Disk::with(again.cut(dice, 2))).unwrap_or_else(|e| panic!("{when}, twice: {e}"));
    assert_same(&twice.load().unwrap().state, &loaded.state);
}

#[test]
fn a_full_or_failing_disk_closes_the_store_until_it_is_opened_again() {
    for errno in [ENOSPC, EIO] {
        for changes in (0..400).step_by(3) {
            let (disk, _) = fresh();
            disk.fail_after(changes, errno);
            let (mut acknowledged, mut last) = (State::default(), State::default());
            let failed = match open(&disk) {
                Err(error) => Some(error),
                Ok(mut store) => {
                    let mut cluster = Cluster::new(State::default());
                    let mut failed = None;
                    for step in 0..40 {
                        live_on(&mut cluster, step);
                        last = cluster.state.clone();
                        if let Err(error) = cluster.commit(&mut store) {
                            failed = Some(error);
                            break;
                        }
                        acknowledged = last.clone();
                    }
                    if failed.is_some() {
                        // Never on after a failure, whatever is asked.
                        let closed = [
                            cluster.commit(&mut store).err(),
                            store.load().err(),
                            store.reader().events(1, 1).err(),
                            store.checkpoint(&acknowledged).err(),
                        ];
                        // An empty commit asks nothing of the disk, but is refused like the rest.
                        assert!(closed.iter().all(|e| matches!(e, Some(StoreError::Closed { .. }))), "{closed:?}");
                    }
                    failed
                }
            };
            match (failed, errno) {
                (Some(StoreError::Full { .. }), ENOSPC) | (Some(StoreError::Io { .. }), EIO) | (None, _) => {}
                (other, _) => panic!("after {changes} changes: {other:?}"),
            }
            // With room again, everything acknowledged is there; the batch that failed is there whole or not at all.
            let mut store = open(&Disk::with(disk.content())).unwrap();
            let loaded = store.load().unwrap();
            match loaded.last_event == acknowledged.meta.events {
                true => assert_same(&loaded.state, &acknowledged),
                false => assert_same(&loaded.state, &last),
            }
            assert!(store.check().unwrap().is_sound());
            let mut cluster = Cluster::new(loaded.state);
            cluster.commit(&mut store).unwrap();
        }
    }
}

#[test]
fn a_disk_that_cannot_be_read_is_an_error_and_no_empty_cluster() {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let mut cluster = Cluster::new(State::default());
    cluster.commit(&mut store).unwrap();
    drop(store);
    let disk = Disk::with(disk.content());
    disk.fail_reads();
    let error = open(&disk).err();
    assert!(matches!(error, Some(StoreError::Io { .. })), "{error:?}");
}

#[test]
fn what_is_no_store_is_refused() {
    for content in [b"#!/bin/sh\n".repeat(1000), vec![0; 2 << 20], vec![0xff; 100]] {
        let error = open(&Disk::with(content)).err();
        assert!(matches!(error, Some(StoreError::Damaged { .. })), "{error:?}");
    }
}

fn finished(count: u64) -> Vec<HistoryJob> {
    let mut cluster = Cluster::new(State::default());
    let ids: Vec<_> = (0..count).map(|_| cluster.submit("done", 1, 2).unwrap()).collect();
    ids.iter().map(|id| HistoryJob::from_element(&cluster.state, *id).unwrap()).collect()
}

#[test]
fn the_history_keeps_what_was_appended_through_power_cuts_and_failures() {
    let jobs = finished(120);
    let path = Path::new("history.redb");
    let disk = Disk::default();
    drop(History::open_on(disk.clone(), path).unwrap());
    let made = disk.content();
    let disk = Disk::with(made.clone());
    let history = History::open_on(disk.clone(), path).unwrap();
    let mut acknowledged = vec![(0, 0)];
    for (n, some) in jobs.chunks(12).enumerate() {
        history.append(some).unwrap();
        acknowledged.push((disk.changes(), (n + 1) * 12));
    }
    let mut cut = PowerCut::new(made);
    let mut dice = Dice::new(3);
    for (at, op) in disk.log().iter().enumerate() {
        let surely = acknowledged.iter().rev().find(|(changes, _)| *changes <= at).unwrap().1;
        let history = History::open_on(Disk::with(cut.cut(&mut dice, 2)), path).unwrap();
        let found = history.count().unwrap() as usize;
        assert!(found == surely || found == surely + 12, "{found} of {surely} after {at} changes");
        for job in &jobs[..found] {
            assert_eq!(history.get(job.id).unwrap().as_ref(), Some(job));
        }
        assert_eq!(history.query(&Default::default()).unwrap().jobs.len(), found);
        cut.go_on(op);
    }
    let disk = Disk::with(disk.content());
    let history = History::open_on(disk.clone(), path).unwrap();
    disk.fail_after(3, ENOSPC);
    let mut more = jobs[0].clone();
    more.id.0 += 1000;
    let full = history.append(&[more]).err();
    assert!(matches!(full, Some(StoreError::Full { .. })), "{full:?}");
    assert!(matches!(history.append(&jobs), Err(StoreError::Closed { .. })));
    assert!(matches!(history.get(jobs[0].id), Err(StoreError::Closed { .. })));
}
