//! Jobs of higher queues make lower ones give way, against a fake cycle.

use ephor_sdk::scheduling::Scheduling;
use ephor_sdk::testing::FakeCycle;
use scheduling_backfill::{Backfill, Config, Preempt, PreemptMode, Reservations};

/// Priorities of the queues, by row.
const QUEUES: [i64; 3] = [1, 5, 9];

/// What runs: cores, queue priority and start of each; one that ends by itself only at 10,000 s.
fn cluster(cores: u32, running: &[(u32, i64, i64)]) -> FakeCycle {
    let cycle = FakeCycle::new(1_000_000, cores);
    let cycle = running.iter().fold(cycle, |cycle, (cores, _, _)| cycle.running(*cores, 10_000_000));
    let column = |of: fn(&(u32, i64, i64)) -> i64| running.iter().map(of).collect::<Vec<_>>();
    cycle
        .with_column("attempts", "priority", &column(|r| r.1))
        .with_column("attempts", "qos-priority", &column(|r| r.1))
        .with_column("attempts", "expected-end", &vec![10_000_000; running.len()])
        .with_column("attempts", "started", &column(|r| r.2))
        .with_column("attempts", "preemptible", &vec![1; running.len()])
        .with_column("attempts", "releasing-since", &vec![-1; running.len()])
        .with_column("queues", "priority", &QUEUES)
}

/// Who waits: cores and queue.
fn waiting(cycle: FakeCycle, jobs: &[(u32, i64)]) -> FakeCycle {
    let cycle = jobs.iter().fold(cycle, |cycle, (cores, _)| cycle.pending(*cores, 1_000_000));
    let queues: Vec<i64> = jobs.iter().map(|(_, queue)| *queue).collect();
    let qos: Vec<i64> = queues.iter().map(|queue| QUEUES[*queue as usize]).collect();
    let ids: Vec<i64> = (1..=jobs.len() as i64).collect();
    cycle
        .with_column("jobs", "queue", &queues)
        .with_column("jobs", "qos-priority", &qos)
        .with_column("jobs", "class", &ids)
        .with_column("jobs", "id", &ids)
}

fn by_queue() -> Config {
    Config { preempt: Preempt::Queue, preempt_grace_s: 10, ..Config::default() }
}

fn run(cycle: FakeCycle, config: Config) -> FakeCycle {
    Backfill::schedule(&cycle, &config);
    cycle
}

#[test]
fn the_lowest_give_way_first_and_of_those_the_youngest() {
    let running = [(4, 5, 100), (4, 1, 100), (4, 1, 200), (4, 1, 50)];
    let cycle = run(waiting(cluster(16, &running), &[(8, 2)]), by_queue());
    assert_eq!(cycle.evicted(), [2, 1]);
    assert_eq!(cycle.claims(), [(0, 1_010_000)]);
    let all = run(waiting(cluster(16, &running), &[(16, 2)]), by_queue());
    let mut evicted = all.evicted();
    evicted.sort_unstable();
    assert_eq!(evicted, [0, 1, 2, 3]);
}

#[test]
fn nobody_gives_way_in_vain() {
    // Sixteen cores can never come free, since eight are held by an equal.
    let held = [(8, 9, 100), (4, 1, 100), (4, 1, 200)];
    let cycle = run(waiting(cluster(16, &held), &[(12, 2)]), by_queue());
    assert_eq!((cycle.evicted(), cycle.claims()), (vec![], vec![]));
    assert_eq!(cycle.promises().len(), 1, "it is promised its start like any other");
    // The young small one would go first, and alone the old large one is enough.
    let mixed = [(8, 1, 100), (2, 1, 900)];
    let cycle = run(waiting(cluster(10, &mixed), &[(8, 2)]), by_queue());
    assert_eq!(cycle.evicted(), [0]);
}

#[test]
fn whoever_is_on_its_way_out_is_claimed_before_anybody_else_has_to_go() {
    let running = [(4, 1, 100), (4, 1, 900)];
    let cycle = waiting(cluster(8, &running), &[(4, 2), (4, 2), (4, 2)]);
    let cycle = run(cycle, by_queue());
    assert_eq!(cycle.evicted(), [1, 0]);
    assert_eq!(cycle.claims(), [(0, 1_010_000), (1, 1_010_000)]);
}

#[test]
fn equals_lower_ones_and_those_who_just_began_are_left_alone() {
    let running = [(8, 5, 999_000)];
    assert!(run(waiting(cluster(8, &running), &[(8, 1)]), by_queue()).evicted().is_empty());
    assert!(run(waiting(cluster(8, &running), &[(8, 0)]), by_queue()).evicted().is_empty());
    let patient = Config { preempt_after_s: 60, ..by_queue() };
    assert!(run(waiting(cluster(8, &running), &[(8, 2)]), patient).evicted().is_empty());
    assert!(
        run(waiting(cluster(8, &running), &[(8, 2)]), Config::default()).evicted().is_empty(),
        "the site did not ask"
    );
}

#[test]
fn those_who_may_not_run_twice_are_spared_unless_the_site_says_otherwise() {
    let once = || waiting(cluster(8, &[(8, 1, 0)]).with_column("attempts", "preemptible", &[0]), &[(8, 2)]);
    assert!(run(once(), by_queue()).evicted().is_empty());
    for preempt_mode in [PreemptMode::RequeueOrCancel, PreemptMode::Cancel] {
        assert_eq!(run(once(), Config { preempt_mode, ..by_queue() }).evicted(), [0]);
    }
}

#[test]
fn a_higher_qos_goes_first_even_from_behind_and_starts_nothing_out_of_turn() {
    let by_qos = Config { preempt: Preempt::Qos, ..by_queue() };
    // The first waits for its equal; the second, of a higher QOS, makes the lowest give way.
    let running = [(8, 5, 0), (4, 1, 0)];
    let cycle = run(waiting(cluster(12, &running), &[(12, 1), (4, 2)]), by_qos);
    assert_eq!((cycle.evicted(), cycle.claims()), (vec![1], vec![(1, 1_010_000)]));
    assert!(cycle.started().is_empty());
}

#[test]
fn with_promises_for_all_too() {
    let all = Config { reservations: Reservations::All, ..by_queue() };
    let cycle = run(waiting(cluster(8, &[(8, 1, 0)]), &[(8, 2), (4, 0)]), all);
    assert_eq!((cycle.evicted(), cycle.claims()), (vec![0], vec![(0, 1_010_000)]));
    assert_eq!(cycle.promised_at_the_end(), [(1, 2_010_000)]);
}

#[test]
fn without_work_nobody_gives_way() {
    for units in 0..40 {
        let cycle = waiting(cluster(8, &[(4, 1, 0), (4, 1, 0)]), &[(8, 2)]).with_budget(units);
        let cycle = run(cycle, by_queue());
        assert_eq!(cycle.evicted().is_empty(), cycle.claims().is_empty(), "{units} units");
    }
}
