//! The auditor finds what is wrong with a log: each rule broken once.

use crate::common::native::Easy;
use crate::common::{run, workload};
use ephor_core::{Event, Stamped};
use ephor_model::{Allocation, AttemptKey, Device, JobId, NodeId, ResourceId, Timestamp};
use ephor_sim::auditor::Auditor;
use ephor_sim::policies::Policies;
use ephor_sim::workload::Estimates;
use std::sync::Arc;

/// A good log: two jobs of one processor each, one after the other, on a node of two.
fn good() -> Vec<Stamped> {
    let workload = workload(&[(0, 10, 1, 10), (5, 10, 1, 10)], 2, Estimates::Max);
    run(&workload, 2, &mut Policies::native(Easy)).1.log
}

fn findings(log: &[Stamped]) -> Vec<String> {
    let mut auditor = Auditor::default();
    auditor.observe(log);
    assert_eq!(auditor.count(), auditor.findings().len() as u64);
    auditor.findings().to_vec()
}

/// What is found after the `nth` start (from 0) was changed.
fn with_start(nth: usize, change: impl Fn(&mut Timestamp, &mut AttemptKey, &mut Allocation)) -> String {
    let mut log = good();
    let start = log.iter_mut().filter(|s| matches!(s.event, Event::Started { .. })).nth(nth).unwrap();
    if let Event::Started { key, allocation, .. } = &mut start.event {
        change(&mut start.at, key, Arc::make_mut(allocation));
    }
    findings(&log).join("\n")
}

fn at(log: &[Stamped], matching: impl Fn(&Event) -> bool) -> usize {
    log.iter().position(|s| matching(&s.event)).unwrap()
}

#[test]
fn a_good_log_is_good() {
    assert_eq!(findings(&good()), [] as [String; 0]);
}

#[test]
fn more_than_there_is() {
    let found = with_start(1, |_, _, a| a.parts[0].amounts.set(ResourceId::CPU, 1001));
    assert!(found.contains("2001 given of 2000"), "{found}");
    let found = with_start(0, |_, _, a| a.parts[0].amounts.set(ResourceId::MEM, 1));
    assert!(found.contains("1 given of 0"), "{found}");
    let found = with_start(0, |_, _, a| a.parts[0].amounts.set(ResourceId::CPU, -5));
    assert!(found.contains("-5 of resource 0"), "{found}");
}

#[test]
fn less_than_was_asked_for() {
    let found = with_start(0, |_, _, a| a.parts[0].amounts.set(ResourceId::CPU, 999));
    assert!(found.contains("gets 999 of the 1000 millicores"), "{found}");
}

#[test]
fn a_node_that_is_not_there_or_takes_no_jobs() {
    assert!(with_start(0, |_, _, a| a.parts[0].node = NodeId(7)).contains("not part of the cluster"));
    let mut log = good();
    let place = at(&log, |e| matches!(e, Event::Started { .. }));
    let drained = Event::NodeDrained { node: NodeId(0), reason: "x".into(), by: "y".into() };
    let node = log.iter().find_map(|s| match &s.event {
        Event::NodeRegistered { node, .. } => Some(*node),
        _ => None,
    });
    assert_eq!(node, Some(NodeId(0)));
    log.insert(place, Stamped { at: log[place].at, event: drained });
    assert!(findings(&log)[0].contains("takes no jobs"));
    log[place].event = Event::NodeDown { node: NodeId(0), reason: "x".into() };
    assert!(findings(&log)[0].contains("takes no jobs"));
}

#[test]
fn a_device_twice() {
    let mut log = good();
    for stamped in &mut log {
        match &mut stamped.event {
            Event::NodeRegistered { spec, .. } => {
                let device =
                    Device { kind: "h100".into(), uuid: "a".into(), mem_mib: 1, numa: -1, ..Device::default() };
                Arc::make_mut(spec).devices = vec![device];
            }
            Event::Started { allocation, .. } => Arc::make_mut(allocation).parts[0].devices = vec![0].into(),
            _ => {}
        }
    }
    assert_eq!(findings(&log).len(), 1);
    assert!(findings(&log)[0].contains("1000 of device 0, 1000 of which job 1 holds"));
    assert!(with_start(0, |_, _, a| a.parts[0].devices = vec![3].into()).contains("no device 3"));
}

#[test]
fn more_of_a_device_than_all_of_it() {
    let shared = |second: i64| {
        let mut log = good();
        let mut parts = [600, second].into_iter();
        for stamped in &mut log {
            match &mut stamped.event {
                Event::NodeRegistered { spec, .. } => {
                    let device =
                        Device { kind: "h100".into(), uuid: "a".into(), mem_mib: 1, numa: -1, ..Device::default() };
                    let spec = Arc::make_mut(spec);
                    spec.devices = vec![device];
                    spec.capacity.set(ResourceId::GPU, 1000);
                }
                Event::Started { allocation, .. } => {
                    let part = &mut Arc::make_mut(allocation).parts[0];
                    part.devices = vec![0].into();
                    part.amounts.set(ResourceId::GPU, parts.next().unwrap());
                }
                _ => {}
            }
        }
        findings(&log).join("\n")
    };
    assert_eq!(shared(400), "");
    assert!(shared(401).contains("401 of device 0, 600 of which job 1 holds"));
}

#[test]
fn an_attempt_twice_or_out_of_turn() {
    let mut log = good();
    let place = at(&log, |e| matches!(e, Event::Started { .. }));
    log.insert(place + 1, log[place].clone());
    let found = findings(&log).join("\n");
    assert!(found.contains("attempt 1.1 starts where number 2 is next"), "{found}");
    assert!(found.contains("starts while 1.1 of the same job lives"), "{found}");
    assert!(with_start(0, |_, key, _| key.number = 3).contains("attempt 1.3 starts where number 1 is next"));
    assert!(with_start(0, |_, key, _| key.job = JobId(9)).contains("never submitted"));
}

#[test]
fn too_early() {
    let mut log = good();
    let submitted = log.iter().filter(|s| matches!(s.event, Event::Submitted { .. })).nth(1).unwrap().at;
    assert_eq!(submitted, Timestamp(5000));
    let found = with_start(1, |at, _, _| *at = Timestamp(4999));
    assert!(found.contains("time went back from 5000"), "{found}");
    assert!(found.contains("starts before its job was there"), "{found}");
    let first = at(&log, |e| matches!(e, Event::Submitted { .. }));
    if let Event::Submitted { job } = &mut log[first].event {
        let job = Arc::make_mut(job);
        Arc::make_mut(&mut job.spec).begin = Some(Timestamp(1));
    }
    assert!(findings(&log)[0].contains("may begin"));
}

#[test]
fn ends_without_a_life() {
    let mut log = good();
    let end = at(&log, |e| matches!(e, Event::Ended { .. }));
    log.insert(end, log[end].clone());
    assert!(findings(&log)[0].contains("attempt 1.1, which does not live"));
    let mut log = good();
    let start = at(&log, |e| matches!(e, Event::Began { .. }));
    let cancelled = Event::CancelledPending { job: JobId(1), by: "x".into() };
    log.insert(start, Stamped { at: log[start].at, event: cancelled });
    assert!(findings(&log)[0].contains("as if it did not run"));
}

#[test]
fn an_id_twice() {
    let mut log = good();
    let first = at(&log, |e| matches!(e, Event::Submitted { .. }));
    log.insert(first, log[first].clone());
    assert!(findings(&log)[0].contains("the id 1 is given twice"));
}
