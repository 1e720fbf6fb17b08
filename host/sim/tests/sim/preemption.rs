//! Preemption through the built-in policy: whoever makes others give way starts when they have, and nobody gives way for
//! nothing.

use crate::common::{Recorder, fold, no_policies, workload};
use ephor_core::{Event, State};
use ephor_model::{JobId, JobState, Queue, ResourceId, Role, Span, Timestamp};
use ephor_policy::{Host, Loaded, Request, Scheduler, Services, bounds, builtin};
use ephor_sim::cluster::SimCluster;
use ephor_sim::driver;
use ephor_sim::policies::Policies;
use ephor_sim::workload::{Estimates, Workload};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

const GRACE_S: i64 = 3;
const QUEUES: [(&str, i64); 3] = [("low", 1), ("main", 2), ("high", 3)];

/// The policy, loaded once; `None` where this build has none.
fn preempting() -> Option<Policies> {
    static LOADED: OnceLock<Option<Arc<Loaded>>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        if no_policies() {
            return None;
        }
        let host = Host::new(Services::default()).unwrap();
        let component = builtin::find("scheduling-backfill").unwrap();
        let config = &format!(r#"{{"preempt": "queue", "preempt_grace_s": {GRACE_S}}}"#);
        let maxima = bounds::site_maxima(Role::Scheduling);
        let request = Request { role: Role::Scheduling, component, config, grants: &[], maxima };
        Some(host.prepare(&request).unwrap().activate(1))
    });
    Some(Policies::native(Scheduler(loaded.clone()?)))
}

/// A log of jobs (submit, run, processors, limit, queue, whether they may run twice).
type Row = (i64, i64, u32, i64, usize, bool);

fn in_queues(rows: &[Row], processors: u32) -> Workload {
    let plain: Vec<_> = rows.iter().map(|(submit, run, width, limit, ..)| (*submit, *run, *width, *limit)).collect();
    let mut workload = workload(&plain, processors, Estimates::Max);
    for (job, row) in workload.jobs.iter_mut().zip(rows) {
        let spec = Arc::make_mut(&mut job.spec);
        spec.queue = QUEUES[row.4].0.into();
        spec.requeue = Some(row.5);
    }
    workload
}

fn cluster(processors: u32) -> SimCluster {
    let queue = |(name, priority): &(&str, i64)| {
        (Queue { name: (*name).into(), priority: *priority, weight: 1, ..Queue::default() }, None)
    };
    SimCluster { queues: QUEUES.iter().map(queue).collect(), ..SimCluster::one_node(processors) }
}

fn queue_priority(state: &State, job: JobId) -> i64 {
    let (entry, _) = state.element(job).unwrap();
    state.queues[&entry.job.queue].priority
}

/// Cores that a job asks for, in thousandths.
fn width(state: &State, job: JobId) -> i64 {
    state.element(job).unwrap().0.job.spec.request.total().get(ResourceId::CPU)
}

/// Walks the log instant by instant.
fn check(recorder: &Recorder, processors: u32) {
    let mut state = State::default();
    let mut claims: BTreeMap<JobId, Timestamp> = BTreeMap::new();
    let log = &recorder.log;
    for (at, stamped) in log.iter().enumerate() {
        state.apply(stamped, &mut Default::default()).unwrap();
        match &stamped.event {
            Event::Promised { job, promise } if promise.claim => {
                claims.insert(*job, promise.start);
            }
            Event::PromiseLifted { job, .. } => assert!(!claims.contains_key(job), "a claim came to nothing"),
            Event::Started { key, .. } => {
                let due = claims.remove(&key.job);
                assert!(due.is_none_or(|due| stamped.at <= due), "job {} is late", key.job);
            }
            Event::Evicted { key, .. } => {
                let mine = queue_priority(&state, key.job);
                let spec = &state.element(key.job).unwrap().0.job.spec;
                assert_eq!(spec.requeue, Some(true), "job {} may not run twice", key.job);
                // In the same group, right behind the evictions, somebody higher claims what is released, or starts on what
                // another claim left to it.
                let group = log[at..].iter().take_while(|other| other.at == stamped.at);
                let higher = group.filter_map(|other| match &other.event {
                    Event::Promised { job, promise } if promise.claim => Some(queue_priority(&fold(log), *job)),
                    Event::Started { key, .. } => Some(queue_priority(&fold(log), key.job)),
                    _ => None,
                });
                assert!(higher.into_iter().any(|other| other > mine), "job {} gives way to nobody", key.job);
            }
            _ => {}
        }
        if log.get(at + 1).is_none_or(|next| next.at > stamped.at) {
            nobody_higher_waits_for_lower(&state, processors);
        }
    }
    assert!(claims.is_empty(), "claims are left: {claims:?}");
}

/// The first job that waits cannot have room, even if all lower ones gave way that may.
fn nobody_higher_waits_for_lower(state: &State, processors: u32) {
    let waits = |id: &JobId| state.element(*id).is_some_and(|(_, e)| e.state == JobState::Pending);
    let waiting = state.jobs.keys().copied().filter(|id| waits(id) && !state.promises.contains_key(id));
    let first = waiting.min_by_key(|id| (std::cmp::Reverse(queue_priority(state, *id)), *id));
    let Some(first) = first else { return };
    let mine = queue_priority(state, first);
    let now = state.meta.now;
    let may_go = |job: &JobId| {
        let (attempt, spec) = (&state.attempts[job], &state.element(*job).unwrap().0.job.spec);
        let lower = queue_priority(state, *job) < mine && spec.requeue == Some(true);
        // Whoever started in this cycle was not there when it began; whoever ends by then is not told to.
        lower && attempt.started < now && attempt.expected_end > now + Span::seconds(GRACE_S)
    };
    let told = |job: &JobId| state.attempts[job].told_to_end().is_some();
    // Whoever makes nobody give way waits for what others release like anybody else.
    if !state.attempts.keys().any(|job| may_go(job) && !told(job)) {
        return;
    }
    let stay = state.attempts.keys().filter(|job| !told(job) && !may_go(job));
    let stay: i64 = stay.map(|job| width(state, *job)).sum();
    let claimed: i64 = state.promises.keys().map(|job| width(state, *job)).sum();
    let left = i64::from(processors) * 1000 - stay - claimed;
    assert!(width(state, first) > left, "job {first} could take {left} of what lower ones hold");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nobody_gives_way_for_nothing_and_nobody_waits_for_lower_ones(
        rows in proptest::collection::vec(
            (0i64..40, 1i64..30, 1u32..9, 0i64..20, 0usize..3, proptest::bool::weighted(0.8)), 1..25),
        processors in 8u32..14,
    ) {
        let Some(mut policies) = preempting() else { return Ok(()) };
        let mut rows: Vec<Row> = rows;
        rows.sort_by_key(|row| row.0);
        // Limits that are never too short: what ends at its limit is another matter.
        rows.iter_mut().for_each(|row| row.3 += row.1);
        let mut recorder = Recorder::default();
        let workload = in_queues(&rows, processors);
        let outcome = driver::run(&workload, &cluster(processors), &mut policies, &mut recorder).unwrap();
        prop_assert_eq!(recorder.auditor.findings(), &[] as &[String]);
        prop_assert_eq!(outcome.groups_dropped, 0);
        prop_assert!(fold(&recorder.log) == outcome.state);
        prop_assert!(outcome.starts.iter().all(Option::is_some));
        let evicted = recorder.log.iter().filter(|s| matches!(s.event, Event::Evicted { .. })).count();
        prop_assert_eq!(outcome.evictions, evicted as u64);
        check(&recorder, processors);
    }
}

#[test]
fn a_high_job_takes_the_place_of_the_youngest_low_ones() {
    let Some(mut policies) = preempting() else { return };
    // Three low ones fill eight processors; at 20 a high one wants four.
    let rows =
        [(0, 100, 4, 100, 0, true), (1, 100, 2, 100, 0, true), (2, 100, 2, 100, 0, true), (20, 5, 4, 5, 2, true)];
    let mut recorder = Recorder::default();
    let workload = in_queues(&rows, 8);
    let outcome = driver::run(&workload, &cluster(8), &mut policies, &mut recorder).unwrap();
    assert_eq!(outcome.evictions, 2);
    assert_eq!(outcome.starts[3], Some(Timestamp((20 + GRACE_S) * 1000)));
    let evicted: Vec<u64> = recorder
        .log
        .iter()
        .filter_map(|s| match &s.event {
            Event::Evicted { key, eviction } => {
                assert_eq!(&*eviction.why, "it made way for job 4, whose queue has a higher priority");
                Some(key.job.0)
            }
            _ => None,
        })
        .collect();
    assert_eq!(evicted, [3, 2]);
    check(&recorder, 8);
    // They run again, and to their end.
    let completed = outcome.state.jobs.values().filter(|e| e.unfinished == 0).count();
    assert_eq!(completed, 4);
}
