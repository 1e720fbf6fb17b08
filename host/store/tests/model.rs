//! Law 3 as a property: whatever happens, whenever it is committed, a store that is opened again holds the state.

mod common;

use common::disk::Disk;
use common::{Cluster, assert_same};
use ephor_core::State;
use ephor_store::{LiveStore, OpenOptions, Retention, Store};
use proptest::prelude::*;
use std::path::Path;

#[derive(Clone, Debug)]
enum Step {
    Happen(u8, u64, u64, String),
    Commit,
    Reopen,
    Tidy,
    Checkpoint,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (any::<u8>(), 0..1000u64, 0..1000u64, any::<String>()).prop_map(|(w, a, b, n)| Step::Happen(w, a, b, n)),
        6 => Just(Step::Commit),
        1 => Just(Step::Reopen),
        4 => Just(Step::Tidy),
        1 => Just(Step::Checkpoint),
    ]
}

fn open(disk: &Disk) -> LiveStore {
    LiveStore::open_on(disk.clone(), Path::new("live.redb"), &OpenOptions::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_store_holds_what_the_state_holds(steps in prop::collection::vec(step(), 1..160)) {
        let mut disk = Disk::default();
        let mut store = open(&disk);
        let mut cluster = Cluster::new(State::default());
        cluster.commit(&mut store).unwrap();
        let keep = Retention { bytes: 3_000, age: None };
        for step in steps {
            match step {
                Step::Happen(what, a, b, name) => cluster.happen(what, a, b, &name),
                Step::Commit => cluster.commit(&mut store).unwrap(),
                Step::Reopen => {
                    cluster.commit(&mut store).unwrap();
                    // As after a crash: the disk as it is, without a clean end.
                    disk = Disk::with(disk.content());
                    store = open(&disk);
                    let loaded = store.load().unwrap();
                    assert_same(&loaded.state, &cluster.state);
                    assert_same(&cluster.state, &loaded.state);
                    cluster.state = loaded.state;
                }
                Step::Tidy => {
                    cluster.commit(&mut store).unwrap();
                    store.tidy(&cluster.state, &keep).unwrap();
                }
                Step::Checkpoint => {
                    cluster.commit(&mut store).unwrap();
                    store.checkpoint(&cluster.state).unwrap();
                }
            }
        }
        cluster.commit(&mut store).unwrap();
        assert_same(&store.load().unwrap().state, &cluster.state);
        let report = store.check().unwrap();
        prop_assert!(report.is_sound(), "{report:?}");
    }
}
