//! What holds of every small cluster: it comes to rest, quotas are reached, and nobody goes in vain.

use crate::double::{Cluster, Held, Queue};
use proptest::prelude::*;
use scheduling_fairshare::Config;

const G: i64 = 1_000;

fn config() -> Config {
    Config { consolidation_limit: -1, ..Config::default() }
}

/// Four queues in two levels, of which the first two stand above the others.
fn queues() -> impl Strategy<Value = Vec<Queue>> {
    let one = (0_i64..4, 0_i64..3, 99_i64..102);
    proptest::collection::vec(one, 5).prop_map(|all| {
        let parent = |at: usize| (at >= 2).then_some(at % 2);
        let queue = |(at, (quota, weight, priority)): (usize, (i64, i64, i64))| Queue {
            parent: parent(at),
            quota: quota * G * if at < 2 { 2 } else { 1 },
            limit: None,
            weight,
            priority,
        };
        all.into_iter().enumerate().map(queue).collect()
    })
}

/// Jobs of the lower queues, of which the first that fit run.
fn jobs() -> impl Strategy<Value = Vec<(usize, bool, usize, i64)>> {
    let each = prop_oneof![Just(G), Just(2 * G), Just(500), Just(700)];
    let one = (2_usize..5, any::<bool>(), 1_usize..3, each);
    proptest::collection::vec(one, 1..14).prop_map(|mut all| {
        all.iter_mut().for_each(|job| {
            if job.3 % G != 0 {
                job.2 = 1
            }
        });
        all
    })
}

fn cluster(nodes: &[usize], queues: &[Queue], jobs: &[(usize, bool, usize, i64)]) -> Cluster {
    let all = Cluster::new(nodes, queues);
    jobs.iter().fold(all, |all, (queue, train, pods, each)| all.job(*queue, *train, *pods, *each, None))
}

/// Whether a job could still be where it was.
fn has_room(cluster: &Cluster, job: usize, was: &Held) -> bool {
    let others = cluster.jobs.iter().enumerate().filter(|(at, _)| *at != job);
    let held: Held = others.filter_map(|(_, other)| other.held.as_ref()).flatten().copied().collect();
    was.iter().all(|(node, device, milli)| {
        let used = held.iter().filter(|held| (held.0, held.1) == (*node, *device)).map(|held| held.2);
        used.sum::<i64>() + milli <= G
    })
}

/// So many cases, or as many as `PROPTEST_CASES` says.
fn cases(usual: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn every_load_comes_to_rest_and_nobody_goes_in_vain(
        nodes in proptest::collection::vec(1_usize..5, 1..4), queues in queues(), first in jobs(), later in jobs(),
    ) {
        let mut all = cluster(&nodes, &queues, &first);
        all.settle(&config(), 3 * first.len() + 3);
        let count = all.jobs.len();
        for (queue, train, pods, each) in &later {
            all = all.job(*queue, *train, *pods, *each, None);
        }
        for _ in 0..3 * (count + later.len()) {
            let before = all.clone();
            if !all.cycle(&config()) {
                return Ok(());
            }
            for (at, (was, is)) in before.jobs.iter().zip(&all.jobs).enumerate() {
                let Some(held) = was.held.as_ref().filter(|_| was.held != is.held) else { continue };
                prop_assert!(!has_room(&all, at, held), "{was:?} went in vain: {is:?}");
            }
        }
        prop_assert!(!all.cycle(&config()), "it does not come to rest");
    }

    #[test]
    fn an_owner_gets_its_quota_whatever_the_others_do(
        quotas in proptest::collection::vec(0_i64..5, 2..6), marks in proptest::collection::vec((0_i64..4, 99_i64..102), 9),
        owner in 0_usize..6, extra in 0_usize..3, sizes in proptest::collection::vec(1_i64..3, 24),
    ) {
        // Two queues above, in turns, each with the quotas of those below it.
        let owner = 2 + owner % quotas.len();
        let total: i64 = quotas.iter().sum::<i64>() + extra as i64;
        prop_assume!(total > 0);
        let below = |above: usize| quotas.iter().skip(above).step_by(2).sum();
        let all = [below(0), below(1)].into_iter().chain(quotas.iter().copied()).zip(&marks).enumerate();
        let queue = |(at, (quota, (weight, priority))): (usize, (i64, &(i64, i64)))| Queue {
            parent: (at >= 2).then_some(at % 2), quota: quota * G, limit: None, weight: *weight, priority: *priority,
        };
        let queues: Vec<Queue> = all.map(queue).collect();
        let mut all = Cluster::new(&vec![2; (total as usize).div_ceil(2)], &queues);
        for (at, size) in sizes.iter().enumerate() {
            let other = 2 + at % quotas.len();
            if other != owner {
                all = all.job(other, true, 1, size * G, None);
            }
        }
        all.settle(&config(), 200);
        for _ in 0..queues[owner].quota / G {
            all = all.job(owner, true, 1, G, None);
        }
        all.settle(&config(), 200);
        prop_assert_eq!(all.holds(owner), queues[owner].quota);
    }

    #[test]
    fn the_same_cluster_comes_to_the_same(queues in queues(), all in jobs()) {
        let come = || {
            let mut all = cluster(&[2, 3], &queues, &all);
            all.settle(&config(), 60);
            (all.running(), all.evictions, all.said)
        };
        prop_assert_eq!(come(), come());
    }
}
