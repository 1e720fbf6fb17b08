//! Queues that share a cluster over time: past use fades as the accounting policy says, who used little gets ahead of who
//! used much, and delays end by themselves.

use crate::common::{Recorder, fold, no_policies, workload};
use ephor_core::Stamped;
use ephor_model::{Amounts, Queue, ResourceId, Timestamp};
use ephor_sim::cluster::SimCluster;
use ephor_sim::driver;
use ephor_sim::policies::Policies;
use ephor_sim::settings::Settings;
use ephor_sim::simulate::Choice;
use ephor_sim::workload::{Estimates, Workload};
use std::sync::Arc;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const CORES: u32 = 10;

/// A job: queue, submit, run, cores.
type Row = (&'static str, i64, i64, u32);

fn in_queues(rows: &[Row]) -> Workload {
    let plain: Vec<_> = rows.iter().map(|(_, submit, run, cores)| (*submit, *run, *cores, *run)).collect();
    let mut workload = workload(&plain, CORES, Estimates::Max);
    for (job, row) in workload.jobs.iter_mut().zip(rows) {
        let spec = Arc::make_mut(&mut job.spec);
        // No queue is promised anything: what does not give way may hold nothing.
        (spec.queue, spec.requeue) = (row.0.into(), Some(true));
    }
    workload
}

/// Two queues; so many cores are promised to the second.
fn cluster(quota: i64) -> SimCluster {
    let queue = |name: &str, cores: i64| {
        let quota = Amounts::new().with(ResourceId::CPU, cores * 1_000);
        (Queue { name: name.into(), weight: 1, quota, ..Queue::default() }, None)
    };
    SimCluster { queues: vec![queue("busy", 0), queue("idle", quota)], ..SimCluster::one_node(CORES) }
}

/// The policies with these settings; `None` where this build has none.
fn policies(settings: &[&str]) -> Option<Policies> {
    if no_policies() {
        return None;
    }
    let mut set = Settings::default();
    settings.iter().for_each(|text| set.set(text).unwrap());
    let choice =
        Choice { scheduling: "fairshare".into(), accounting: Some("tres".into()), settings: set, ..Choice::default() };
    Some(Policies::load(&choice).unwrap().0)
}

/// What a queue held in the mean, at a moment at which something happened.
fn mean_use(log: &[Stamped], queue: &str, at: i64) -> f64 {
    let now = Timestamp(at * 1_000);
    let until = log.partition_point(|stamped| stamped.at <= now);
    let state = fold(&log[..until]);
    let (id, _) = state.queue_by_name(queue).unwrap();
    state.mean_use(id, now).get(ResourceId::CPU) as f64 / 1_000.0
}

#[test]
fn the_half_life_is_right_to_a_percent() {
    let half_life = 36.0 * HOUR as f64;
    let Some(mut policies) = policies(&["accounting.half_life_hours=36", r#"resources=["cpu"]"#]) else { return };
    // Eight cores for two days, then nothing but a short job now and then, by the other queue, at which one looks.
    let looks = [2 * DAY, 3 * DAY, 5 * DAY + HOUR, 9 * DAY, 14 * DAY];
    let mut rows: Vec<Row> = vec![("busy", 0, 2 * DAY, 8)];
    rows.extend(looks.iter().map(|at| ("idle", *at, 60, 1)));
    let mut recorder = Recorder::default();
    driver::run(&in_queues(&rows), &cluster(0), &mut policies, &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    for at in looks {
        // The integral of 2^(-age / half-life) over a stretch of the past, but for a factor.
        let weight = |from: i64, to: i64| {
            let part = |age: i64| 0.5_f64.powf(age as f64 / half_life);
            part(at - to) - part(at - from)
        };
        let wanted = 8.0 * weight(0, 2 * DAY) / weight(0, at);
        let found = mean_use(&recorder.log, "busy", at);
        // Amounts are whole thousandths.
        assert!((found - wanted).abs() < 0.01 * wanted + 0.001, "after {at} s it is {found}, not {wanted}");
    }
}

#[test]
fn who_used_nothing_for_a_week_gets_ahead_of_who_used_twice_its_share() {
    // One queue alone for a week, then both want everything.
    let mut rows: Vec<Row> = vec![("busy", 0, 7 * DAY, CORES)];
    rows.extend((0..2 * CORES).map(|n| (["busy", "idle"][n as usize % 2], 7 * DAY, DAY, 1)));
    for (k, busy, idle) in [("k_thousandths=0", 5, 5), ("k_thousandths=1000", 0, 10), ("k_thousandths=600", 2, 8)] {
        let Some(mut policies) = policies(&[k, r#"resources=["cpu"]"#]) else { return };
        let workload = in_queues(&rows);
        let outcome = driver::run(&workload, &cluster(0), &mut policies, &mut ()).unwrap();
        let first = |queue: &str| {
            let of_queue = workload.jobs.iter().zip(&outcome.starts).filter(|(job, _)| *job.spec.queue == *queue);
            of_queue.filter(|(_, start)| **start == Some(Timestamp(7 * DAY * 1_000))).count()
        };
        assert_eq!((first("busy"), first("idle")), (busy, idle), "{k}");
    }
}

#[test]
fn who_has_waited_long_enough_takes_back_what_is_its_own_though_nothing_happens() {
    let settings = ["preemption_delay_s=600", "grace_s=30", r#"resources=["cpu"]"#];
    let Some(mut policies) = policies(&settings) else { return };
    // One queue holds everything for a day; the other wants what it was promised.
    let mut rows: Vec<Row> = (0..CORES).map(|_| ("busy", 0, DAY, 1)).collect();
    rows.push(("idle", 100, HOUR, 5));
    let mut recorder = Recorder::default();
    let outcome = driver::run(&in_queues(&rows), &cluster(5), &mut policies, &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    assert_eq!(outcome.starts.last(), Some(&Some(Timestamp((100 + 600 + 30) * 1_000))));
    assert_eq!(outcome.evictions, 5);
}

#[test]
fn searches_from_time_to_time_are_put_off_by_nobody_who_comes() {
    let settings = ["search_every_s=300", "grace_s=30", r#"resources=["cpu"]"#];
    let Some(mut policies) = policies(&settings) else { return };
    let mut rows: Vec<Row> = (0..CORES).map(|_| ("busy", 0, DAY, 1)).collect();
    rows.push(("idle", 301, HOUR, 5));
    // Somebody comes every ten seconds and waits.
    rows.extend((0..60).map(|n| ("busy", 310 + n * 10, HOUR, 1)));
    let mut recorder = Recorder::default();
    let outcome = driver::run(&in_queues(&rows), &cluster(5), &mut policies, &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    // At the next full period it takes back what is its own.
    assert_eq!(outcome.starts[usize::try_from(CORES).unwrap()], Some(Timestamp((600 + 30) * 1_000)));
}
