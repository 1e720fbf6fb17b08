//! Damaged and random bytes: the loader answers, and never panics.

mod common;

use common::*;
use ephor_model::Role;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), component in any::<bool>()) {
        let magic: &[u8] = if component { b"\0asm\x0d\0\x01\0" } else { b"\0asm" };
        for bytes in [bytes.clone(), [magic, &bytes].concat()] {
            prop_assert!(prepare(Role::Scheduling, &bytes, "").is_err());
        }
    }
}

proptest! {
    // Each case that is still valid is compiled.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_components_are_refused_or_run(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let Some(mut bytes) = plugin("scheduling-fifo") else { return Ok(()) };
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(prepared) = prepare(Role::Scheduling, &bytes, "{}") {
            let loaded = prepared.activate(1);
            let (cycle, _) = loaded.scheduling().unwrap().schedule(cycle(&cluster(10)));
            drop(cycle.abandon());
        }
    }
}
