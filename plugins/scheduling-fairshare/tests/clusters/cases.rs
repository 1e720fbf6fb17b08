//! What the policy does with small clusters: who runs in the end, and who had to go for it.

use crate::double::{Cluster, Held, Queue};
use scheduling_fairshare::Config;

const G: i64 = 1_000;

fn q(quota: i64) -> Queue {
    Queue { parent: None, quota: quota * G, limit: None, weight: 1, priority: 100 }
}

fn weighs(quota: i64, weight: i64) -> Queue {
    Queue { weight, ..q(quota) }
}

fn under(parent: usize, quota: i64) -> Queue {
    Queue { parent: Some(parent), ..q(quota) }
}

/// Whole devices of nodes: pairs of node and device.
fn at(devices: &[(usize, usize)]) -> Option<Held> {
    Some(devices.iter().map(|(node, device)| (*node, *device, G)).collect())
}

fn share(node: usize, device: usize, milli: i64) -> Option<Held> {
    Some(vec![(node, device, milli)])
}

fn config() -> Config {
    Config { consolidation_limit: -1, ..Config::default() }
}

/// Jobs that run in the end, and how many had to go.
fn settled(mut cluster: Cluster) -> (Vec<usize>, usize, Cluster) {
    cluster.settle(&config(), 20);
    (cluster.running(), cluster.evictions, cluster)
}

fn ends(cluster: Cluster, running: &[usize], evictions: usize) -> Cluster {
    let (found, gone, cluster) = settled(cluster);
    assert_eq!((found.as_slice(), gone), (running, evictions), "{:?}", cluster.said);
    cluster
}

const TRAIN: bool = true;
const BUILD: bool = false;

#[test]
fn a_queue_above_its_quota_loses_its_only_job() {
    let cluster = Cluster::new(&[2], &[q(1), q(1)]).job(0, TRAIN, 1, 2 * G, at(&[(0, 0), (0, 1)]));
    ends(cluster.job(1, TRAIN, 1, G, None), &[1], 1);
}

#[test]
fn at_its_share_a_queue_takes_nothing_and_says_why() {
    let cluster = Cluster::new(&[2, 2], &[weighs(2, 2), weighs(1, 1)])
        .job(0, TRAIN, 1, G, at(&[(1, 0)]))
        .job(0, TRAIN, 1, 2 * G, at(&[(0, 0), (0, 1)]))
        .job(1, TRAIN, 1, G, at(&[(1, 1)]))
        .job(1, TRAIN, 1, G, None);
    let cluster = ends(cluster, &[0, 1, 2], 0);
    let said = &cluster.said[0].1;
    assert!(
        said.contains("queue q1 has 1 gpu in use and this job asks for 1; its fair share is 1 (quota 1)"),
        "{said}"
    );
}

#[test]
fn quotas_are_taken_back_even_where_they_pass_the_cluster() {
    let all: Vec<(usize, usize)> = (0..8).map(|device| (0, device)).collect();
    let cluster = Cluster::new(&[8], &[weighs(6, 6), weighs(5, 5)]).job(0, TRAIN, 1, 8 * G, at(&all));
    ends(cluster.job(1, TRAIN, 1, 5 * G, None), &[1], 1);
}

#[test]
fn the_queue_of_lower_priority_gives() {
    let hot = Queue { priority: 101, ..weighs(1, 0) };
    let mut cluster = Cluster::new(&[4], &[q(1), q(1), hot]);
    for (device, queue) in [0, 0, 2, 2].into_iter().enumerate() {
        cluster = cluster.job(queue, TRAIN, 1, G, at(&[(0, device)]));
    }
    ends(cluster.job(1, TRAIN, 1, G, None), &[0, 2, 3, 4], 1);
}

#[test]
fn up_to_the_fair_share_and_no_further() {
    let cluster = Cluster::new(&[8], &[q(1), q(1)])
        .job(0, TRAIN, 1, G, at(&[(0, 0)]))
        .job(0, TRAIN, 1, 3 * G, at(&[(0, 1), (0, 2), (0, 3)]))
        .job(0, TRAIN, 1, 4 * G, at(&[(0, 4), (0, 5), (0, 6), (0, 7)]))
        .job(1, TRAIN, 1, 4 * G, None)
        .job(1, TRAIN, 1, 4 * G, None);
    ends(cluster, &[0, 1, 3], 1);
}

#[test]
fn jobs_that_give_way_to_nobody_stay_and_the_others_go() {
    let cluster = Cluster::new(&[2], &[q(1), q(1), under(0, 1), under(1, 1)])
        .job(2, TRAIN, 1, G, at(&[(0, 0)]))
        .job(2, BUILD, 1, G, at(&[(0, 1)]))
        .job(3, TRAIN, 1, G, None);
    ends(cluster, &[1, 2], 1);
}

#[test]
fn victims_keep_the_queues_level() {
    let hot = Queue { priority: 101, ..under(0, 0) };
    let mut cluster = Cluster::new(&[8], &[q(1), Queue { weight: 2, ..under(0, 1) }, under(0, 1), hot]);
    for device in 0..8 {
        cluster = cluster.job(if device < 5 { 1 } else { 2 }, TRAIN, 1, G, at(&[(0, device)]));
    }
    ends(cluster.job(3, TRAIN, 1, 3 * G, None), &[0, 1, 2, 5, 6, 8], 3);
}

#[test]
fn a_job_that_may_not_is_held_and_does_not_block_the_next() {
    let cluster = Cluster::new(&[2], &[weighs(0, 0), weighs(1, 1)])
        .job(0, TRAIN, 1, 2 * G, at(&[(0, 0), (0, 1)]))
        .job(1, BUILD, 1, 2 * G, None)
        .job(1, BUILD, 1, G, None);
    let cluster = ends(cluster, &[2], 1);
    let said = &cluster.said.iter().find(|(job, _)| *job == 1).unwrap().1;
    assert!(said.starts_with("NonPreemptibleOverQuota: queue q1 has "), "{said}");
}

#[test]
fn inside_both_shares_nobody_moves() {
    let cluster = Cluster::new(&[3, 3], &[q(1), q(1), under(0, 1), under(1, 1)])
        .job(2, TRAIN, 1, 2 * G, at(&[(0, 0), (0, 1)]))
        .job(2, BUILD, 1, G, at(&[(1, 0)]))
        .job(3, TRAIN, 1, 2 * G, at(&[(1, 1), (1, 2)]))
        .job(3, TRAIN, 1, G, at(&[(0, 2)]))
        .job(3, TRAIN, 1, G, None);
    ends(cluster, &[0, 1, 2, 3], 0);
}

#[test]
fn victims_that_fit_elsewhere_move_and_the_others_go() {
    for (each, running) in [(500, &[0, 1, 2][..]), (700, &[0, 2])] {
        let cluster = Cluster::new(&[1, 1], &[weighs(0, 0), weighs(0, 0), weighs(2, 0)])
            .job(0, TRAIN, 1, each, share(0, 0, each))
            .job(1, TRAIN, 1, each, share(1, 0, each))
            .job(2, TRAIN, 1, G, None);
        let cluster = ends(cluster, running, 1);
        assert_eq!((cluster.on(0), cluster.on(2)), (vec![0], vec![1]));
    }
}

#[test]
fn the_more_urgent_takes_the_place_of_the_less() {
    let cluster = Cluster::new(&[2], &[q(1)]).job(0, TRAIN, 2, G, at(&[(0, 0), (0, 1)]));
    ends(cluster.job(0, BUILD, 1, G, None), &[1], 1);
}

#[test]
fn nobody_goes_for_what_cannot_run() {
    let with = |nodes: &[usize], quota, asks: i64| {
        let mut cluster = Cluster::new(nodes, &[q(quota)]);
        let devices = nodes.iter().enumerate().flat_map(|(node, gpus)| (0..*gpus).map(move |device| (node, device)));
        for device in devices {
            cluster = cluster.job(0, TRAIN, 1, G, at(&[device]));
        }
        ends(cluster.job(0, BUILD, 1, asks * G, None), &[0, 1, 2, 3], 0);
    };
    with(&[4], 3, 4);
    with(&[2, 2], 4, 4);
}

#[test]
fn no_more_go_than_the_place_needs() {
    // The order of victims goes over many nodes; one node's worth is enough.
    let mut cluster = Cluster::new(&[4, 4, 4, 4], &[q(4), q(4)]);
    for job in 0..16 {
        cluster = cluster.job(0, TRAIN, 1, G, at(&[(job % 4, job / 4)]));
    }
    let running: Vec<usize> = (0..17).filter(|job| job % 4 != 3).collect();
    let cluster = ends(cluster.job(1, TRAIN, 1, 4 * G, None), &running, 4);
    assert_eq!(cluster.on(16), [3]);
}

#[test]
fn jobs_move_together_for_a_larger_one() {
    let halves = |class| {
        Cluster::new(&[2, 2], &[q(1)]).job(0, class, 1, G, at(&[(0, 0)])).job(0, class, 1, G, at(&[(1, 0)])).job(
            0,
            TRAIN,
            1,
            2 * G,
            None,
        )
    };
    let cluster = ends(halves(TRAIN), &[0, 1, 2], 1);
    assert_eq!((cluster.on(0), cluster.on(1), cluster.on(2)), (vec![0], vec![0], vec![1]));
    ends(halves(BUILD), &[0, 1], 0);
    let mut none = halves(TRAIN);
    none.settle(&Config { consolidation_limit: 0, ..config() }, 5);
    assert_eq!(none.running(), [0, 1]);
}

#[test]
fn parts_of_gpus_move_together() {
    let cluster = Cluster::new(&[2], &[q(1)])
        .job(0, TRAIN, 1, 500, share(0, 0, 500))
        .job(0, TRAIN, 1, 500, share(0, 1, 500))
        .job(0, TRAIN, 1, 700, None);
    let cluster = ends(cluster, &[0, 1, 2], 1);
    assert_eq!(cluster.jobs[2].held, share(0, 1, 700));
}

#[test]
fn who_ran_too_short_or_waited_too_short_changes_nothing() {
    let cluster = || {
        let mut cluster = Cluster::new(&[2], &[q(1), q(1)]).job(0, TRAIN, 1, 2 * G, at(&[(0, 0), (0, 1)]));
        cluster.jobs[0].started = cluster.now;
        cluster.job(1, TRAIN, 1, G, None)
    };
    let mut kept = cluster();
    kept.settle(&Config { reclaim_min_runtime_s: 60, ..config() }, 5);
    assert_eq!(kept.running(), [0]);
    kept.now += 60_000;
    kept.settle(&Config { reclaim_min_runtime_s: 60, ..config() }, 5);
    assert_eq!(kept.running(), [1]);
    let mut early = cluster();
    (early.now, early.jobs[0].started) = (5_000, 0);
    early.settle(&Config { preemption_delay_s: 60, ..config() }, 1);
    assert_eq!(early.running(), [0]);
    assert!(early.said[0].1.starts_with("PreemptionDelayNotElapsed"), "{:?}", early.said);
}

#[test]
fn a_search_without_work_says_that_it_is_not_known() {
    let mut cluster = Cluster::new(&[2], &[q(1), q(1)]).job(0, TRAIN, 1, 2 * G, at(&[(0, 0), (0, 1)]));
    cluster = cluster.job(1, TRAIN, 1, G, None);
    let short = Config { work_per_job: 1, ..config() };
    cluster.settle(&short, 3);
    assert_eq!(cluster.running(), [0]);
    assert!(cluster.said[0].1.contains("is not known"), "{:?}", cluster.said);
}
