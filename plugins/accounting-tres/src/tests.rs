//! Prices and fading.

use ephor_sdk::testing::FakeBatch;
use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000;

fn batch(rows: &[[i64; 5]]) -> FakeBatch {
    let names = ["elapsed", "held.cpu", "held.mem", "held.gpu", "held.node"];
    let mut batch = FakeBatch::new(0, rows.len());
    for (at, name) in names.into_iter().enumerate() {
        let column: Vec<i64> = rows.iter().map(|row| row[at]).collect();
        batch = batch.column(name, &column);
    }
    batch
}

#[test]
fn one_core_for_one_second_costs_a_thousand_units() {
    let jobs = batch(&[[SECOND, 1_000, 0, 0, 0], [90 * SECOND, 2_500, 9, 9, 9], [0, 1_000, 0, 0, 0]]);
    assert_eq!(Tres::charge(&jobs, &Config::default()), [1_000, 225_000, 0]);
}

#[test]
fn prices_add_up_or_the_highest_counts() {
    let weights =
        Config { cpu_weight: 1_000, mem_weight: 500, gpu_weight: 8_000, node_weight: 10, ..Config::default() };
    let jobs = batch(&[[10 * SECOND, 4_000, 3 * 1_024, 500, 2]]);
    assert_eq!(Tres::charge(&jobs, &weights), [10 * (4_000 + 1_500 + 4_000 + 20)]);
    let max = Config { combine: Combine::Max, ..weights };
    assert_eq!(Tres::charge(&jobs, &max), [40_000]);
}

#[test]
fn columns_without_weight_are_not_fetched() {
    let jobs = FakeBatch::new(0, 1).column("elapsed", &[SECOND]).column("held.gpu", &[2_000]);
    let config = Config { cpu_weight: 0, gpu_weight: 3, ..Config::default() };
    assert_eq!(Tres::charge(&jobs, &config), [6]);
}

#[test]
fn the_half_life_makes_the_fading() {
    let week = Tres::decay(&Config::default());
    assert_eq!((week.period, week.factor), (300_000, 4_293_490_841));
    let never = Tres::decay(&Config { half_life_hours: 0, ..Config::default() });
    assert_eq!((never.period, never.factor), (0, 1 << 32));
}

#[test]
fn nothing_is_bounded() {
    assert!(Tres::allowances(0, &Config::default()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_price_is_never_negative_and_parts_cost_what_the_whole_costs(
        amounts in prop::array::uniform4(any::<i64>()),
        weights in prop::array::uniform4(0..1_000_000_000_u32),
        elapsed in any::<i64>(),
    ) {
        for combine in [Combine::Sum, Combine::Max] {
            let whole = price(amounts, weights, elapsed, combine);
            prop_assert!(whole >= 0);
            let half = elapsed / 2;
            let parts = price(amounts, weights, half, combine).saturating_add(price(amounts, weights, elapsed - half, combine));
            // Each price is rounded down once.
            prop_assert!(elapsed < 0 || (0..=1).contains(&whole.saturating_sub(parts)), "{whole} {parts}");
        }
    }
}

#[test]
fn the_schema_and_the_code_have_the_same_defaults() {
    let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
    assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
}
