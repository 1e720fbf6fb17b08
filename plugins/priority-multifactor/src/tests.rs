//! Factors, and that they add up.

use ephor_sdk::testing::FakeBatch;
use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000;

fn batch(now: i64, rows: &[[i64; 8]]) -> FakeBatch {
    let names = ["eligible", "cpus", "mem", "gpus", "nodes", "queue-priority", "usage", "nice"];
    let mut batch = FakeBatch::new(now, rows.len());
    for (at, name) in names.into_iter().enumerate() {
        let column: Vec<i64> = rows.iter().map(|row| row[at]).collect();
        batch = batch.column(name, &column);
    }
    batch
}

fn totals(batch: FakeBatch) -> FakeBatch {
    let totals = [
        ("cpus", 64_000),
        ("mem", 256_000),
        ("gpus", 8_000),
        ("nodes", 4),
        ("max-queue-priority", 10),
        ("usage", 1_000),
    ];
    totals.into_iter().fold(batch, |batch, (name, value)| batch.total(name, value))
}

fn only(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config { age_weight: 0, queue_weight: 0, usage_weight: 0, nice_weight: 0, ..Config::default() };
    change(&mut config);
    config
}

#[test]
fn age_grows_to_its_weight_and_no_further() {
    let config = only(|c| (c.age_weight, c.max_age_hours) = (1_000, 10));
    let row = |eligible| [eligible, 0, 0, 0, 0, 0, 0, 0];
    let jobs = totals(batch(20 * HOUR, &[row(20 * HOUR), row(15 * HOUR), row(0), row(21 * HOUR)]));
    assert_eq!(Multifactor::prioritize(&jobs, &config), [0, 500, 1_000, 0]);
}

#[test]
fn size_is_the_largest_share_and_either_end_may_be_favoured() {
    let rows = [[0, 16_000, 0, 4_000, 1, 0, 0, 0], [0, 64_000, 1, 0, 4, 0, 0, 0], [0; 8]];
    let jobs = totals(batch(0, &rows));
    let large = only(|c| c.size_weight = 100);
    let small = only(|c| (c.size_weight, c.favour) = (100, Favour::Small));
    assert_eq!(Multifactor::prioritize(&jobs, &large), [50, 100, 0]);
    assert_eq!(Multifactor::prioritize(&jobs, &small), [50, 0, 100]);
    let how = &Multifactor::explain(&jobs, 0, &large)[0].how;
    assert!(how.contains("4000 of 8000 gpus"), "{how}");
}

#[test]
fn queue_usage_and_nice() {
    let jobs = totals(batch(0, &[[0, 0, 0, 0, 0, 5, 250, -3], [0, 0, 0, 0, 0, 10, 1_000, 7]]));
    assert_eq!(Multifactor::prioritize(&jobs, &only(|c| c.queue_weight = 1_000)), [500, 1_000]);
    assert_eq!(Multifactor::prioritize(&jobs, &only(|c| c.usage_weight = 1_000)), [750, 0]);
    assert_eq!(Multifactor::prioritize(&jobs, &only(|c| c.nice_weight = 2)), [6, -14]);
}

#[test]
fn a_cluster_without_use_or_queue_priorities_is_no_division_by_zero() {
    let jobs = batch(0, &[[0; 8]]).total("usage", 0).total("max-queue-priority", 0);
    let config = Config { usage_weight: 7, queue_weight: 9, ..Config::default() };
    assert_eq!(Multifactor::prioritize(&jobs, &config), [7]);
}

#[test]
fn factors_without_weight_are_neither_fetched_nor_shown() {
    let jobs = FakeBatch::new(0, 2).column("nice", &[1, 2]);
    let config = only(|c| c.nice_weight = 1);
    assert_eq!(Multifactor::prioritize(&jobs, &config), [-1, -2]);
    let factors = Multifactor::explain(&jobs, 1, &config);
    assert_eq!(factors.iter().map(|f| (f.name.as_str(), f.value)).collect::<Vec<_>>(), [("nice", -2)]);
    assert!(Multifactor::explain(&jobs, 2, &config).is_empty(), "no such row");
}

fn config() -> impl Strategy<Value = Config> {
    let weight = || prop_oneof![Just(0_u32), 1..2_000_u32, Just(1_000_000_000)];
    let favour = prop_oneof![Just(Favour::Large), Just(Favour::Small)];
    (weight(), 0..1_000_u32, weight(), favour, weight(), weight(), weight()).prop_map(
        |(age_weight, max_age_hours, size_weight, favour, queue_weight, usage_weight, nice_weight)| Config {
            age_weight,
            max_age_hours,
            size_weight,
            favour,
            queue_weight,
            usage_weight,
            nice_weight,
        },
    )
}

fn value() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -5..100_000_i64]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_explain_says_adds_up(
        config in config(),
        now in value(),
        rows in prop::collection::vec(prop::array::uniform8(value()), 1..8),
        totals in prop::array::uniform6(value()),
    ) {
        let names = ["cpus", "mem", "gpus", "nodes", "max-queue-priority", "usage"];
        let jobs = names.into_iter().zip(totals).fold(batch(now, &rows), |batch, (name, v)| batch.total(name, v));
        let priorities = Multifactor::prioritize(&jobs, &config);
        prop_assert_eq!(priorities.len(), rows.len());
        for (row, priority) in priorities.iter().enumerate() {
            let factors = Multifactor::explain(&jobs, row as u32, &config);
            let sum: i128 = factors.iter().map(|factor| i128::from(factor.value)).sum();
            prop_assert_eq!(sum, i128::from(*priority));
        }
    }
}

#[test]
fn the_schema_and_the_code_have_the_same_defaults() {
    let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
    assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
}
