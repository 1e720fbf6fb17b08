//! The policy against EASY as the textbook has it: shadow time and extra processors, whole schedules compared.

use ephor_sdk::scheduling::Scheduling;
use ephor_sdk::testing::FakeCycle;
use proptest::prelude::*;
use scheduling_backfill::{Backfill, Config};

const CORES: u32 = 16;

#[derive(Clone, Copy, Debug)]
struct Job {
    submit: i64,
    cores: u32,
    run: i64,
    /// At least `run`.
    estimate: i64,
}

/// A running job: its end, its expected end, its cores.
type Running = (i64, i64, u32);

/// Start times under a policy that says, for a time, the running and the waiting jobs, which of these start.
fn simulate(jobs: &[Job], pass: impl Fn(i64, &[Running], &[Job]) -> Vec<usize>) -> Vec<i64> {
    let mut starts = vec![-1; jobs.len()];
    let (mut queue, mut running): (Vec<usize>, Vec<Running>) = (Vec::new(), Vec::new());
    let mut arrived = 0;
    loop {
        let end = running.iter().map(|r| r.0).min();
        let arrival = jobs.get(arrived).map(|job| job.submit);
        let Some(now) = end.into_iter().chain(arrival).min() else { return starts };
        running.retain(|r| r.0 > now);
        while arrived < jobs.len() && jobs[arrived].submit == now {
            queue.push(arrived);
            arrived += 1;
        }
        let waiting: Vec<Job> = queue.iter().map(|&job| jobs[job]).collect();
        let started = pass(now, &running, &waiting);
        for &at in &started {
            let job = jobs[queue[at]];
            starts[queue[at]] = now;
            running.push((now + job.run, now + job.estimate, job.cores));
        }
        let mut at = 0;
        queue.retain(|_| {
            at += 1;
            !started.contains(&(at - 1))
        });
    }
}

fn policy(window: u32) -> impl Fn(i64, &[Running], &[Job]) -> Vec<usize> {
    move |now, running, waiting| {
        let mut cycle = FakeCycle::new(now, CORES);
        for (_, expected, cores) in running {
            cycle = cycle.running(*cores, *expected);
        }
        for job in waiting {
            cycle = cycle.pending(job.cores, job.estimate);
        }
        Backfill::schedule(&cycle, &Config { window, ..Config::default() });
        cycle.started().into_iter().map(|row| row as usize).collect()
    }
}

fn textbook(now: i64, running: &[Running], waiting: &[Job]) -> Vec<usize> {
    let mut ends: Vec<(i64, u32)> = running.iter().map(|r| (r.1, r.2)).collect();
    let mut free = CORES - ends.iter().map(|e| e.1).sum::<u32>();
    let mut started = Vec::new();
    let mut head = 0;
    while head < waiting.len() && waiting[head].cores <= free {
        free -= waiting[head].cores;
        ends.push((now + waiting[head].estimate, waiting[head].cores));
        started.push(head);
        head += 1;
    }
    if head == waiting.len() {
        return started;
    }
    ends.sort_unstable();
    let (mut shadow, mut at_shadow) = (now, free);
    for (end, cores) in ends {
        if at_shadow >= waiting[head].cores && end > shadow {
            break;
        }
        (shadow, at_shadow) = (end, at_shadow + cores);
    }
    let mut extra = at_shadow - waiting[head].cores;
    for (at, job) in waiting.iter().enumerate().skip(head + 1) {
        let ends_in_time = now + job.estimate <= shadow;
        if job.cores <= free && (ends_in_time || job.cores <= extra) {
            free -= job.cores;
            if !ends_in_time {
                extra -= job.cores;
            }
            started.push(at);
        }
    }
    started
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (0_i64..20, 1..=CORES, 1_i64..60, 0_i64..60);
    prop::collection::vec(job, 1..60).prop_map(|gaps| {
        let mut submit = 0;
        gaps.into_iter()
            .map(|(gap, cores, run, over)| {
                submit += gap / 4;
                Job { submit, cores, run, estimate: run + over }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whole_schedules_are_equal(jobs in jobs(), window in prop_oneof![Just(1_u32), Just(3), Just(4_096)]) {
        prop_assert_eq!(simulate(&jobs, policy(window)), simulate(&jobs, textbook));
    }
}
