//! What requests mean, told by small examples.

use ephor_model::allocation::Allocation;
use ephor_model::id::{JobId, NodeId};
use ephor_model::request::{GpuRequest, MemRequest, Request};
use ephor_model::resource::{Amounts, ResourceId};
use ephor_model::time::{Span, Timestamp};
use ephor_placement::{ClassId, Cluster, Need, NoFit, NodeView, Placing, Work};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1000);
const HOUR: Span = Span(3_600_000);

fn node(name: &str, cores: i64, devices: &[&str]) -> NodeView {
    let capacity = Amounts::new()
        .with(ResourceId::CPU, cores * 1000)
        .with(ResourceId::MEM, 64)
        .with(ResourceId::GPU, devices.len() as i64 * 1000);
    let devices = devices.iter().map(|d| (*d).to_owned()).collect();
    NodeView { name: name.to_owned(), capacity, features: Vec::new(), devices, out: Vec::new(), up: true }
}

/// Nodes `n0`, `n1`, ... with so many cores and such devices.
fn cluster(nodes: &[(i64, &[&str])]) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.advance(NOW);
    for (i, (cores, devices)) in nodes.iter().enumerate() {
        cluster.set_node(NodeId(i as u32), node(&format!("n{i}"), *cores, devices));
    }
    cluster
}

fn class(cluster: &mut Cluster, request: Request) -> ClassId {
    cluster.intern(&Need { request: request.into(), queue_features: Vec::new() })
}

fn start(cluster: &mut Cluster, job: u64, request: Request, limit: Span) -> Result<Arc<Allocation>, NoFit> {
    let class = class(cluster, request);
    cluster.try_start(JobId(job), class, cluster.now(), limit, &Placing::default(), &mut Work::UNLIMITED.clone())
}

fn cores(n: u32) -> Request {
    Request { cpus_per_task: n, ..Request::default() }
}

/// Node and tasks of each part.
fn parts(allocation: &Allocation) -> Vec<(u32, u32)> {
    allocation.parts.iter().map(|p| (p.node.0, p.tasks)).collect()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, NoFit>) -> String {
    result.expect_err("must not fit").to_string()
}

#[test]
fn tasks_go_to_as_few_nodes_as_will_do_and_nodes_in_use_come_first() {
    let mut c = cluster(&[(4, &[]), (8, &[]), (8, &[])]);
    let tasks = |n| Request { tasks: Some(n), ..Request::default() };
    assert_eq!(parts(&start(&mut c, 1, tasks(6), HOUR).unwrap()), [(1, 6)]);
    assert_eq!(parts(&start(&mut c, 2, tasks(2), HOUR).unwrap()), [(1, 2)]);
    assert_eq!(parts(&start(&mut c, 3, tasks(10), HOUR).unwrap()), [(0, 4), (2, 6)]);
    let spread = Request { nodes_min: 2, nodes_max: Some(2), tasks: Some(3), ..Request::default() };
    assert!(refusal(start(&mut c, 4, spread, HOUR)).ends_with("1 node with room now, 2 needed, for 2 of 3 tasks"));
}

#[test]
fn without_a_number_of_tasks_each_node_gets_its_share() {
    let mut c = cluster(&[(2, &[]), (8, &[]), (8, &[])]);
    let request = Request { nodes_min: 2, tasks_per_node: Some(4), mem: MemRequest::PerNode(10), ..Request::default() };
    let allocation = start(&mut c, 1, request, HOUR).unwrap();
    assert_eq!(parts(&allocation), [(1, 4), (2, 4)]);
    assert_eq!(allocation.total(), Amounts::new().with(ResourceId::CPU, 8000).with(ResourceId::MEM, 20));
    assert_eq!(c.free(NodeId(1)).unwrap().get(ResourceId::MEM), 54);
}

#[test]
fn gpus_are_whole_devices_of_the_kind_asked_for() {
    let mut c = cluster(&[(8, &["a", "h", "h", "a"])]);
    let gpus = |n, kind: Option<&str>| Request {
        gpus: GpuRequest::PerNode(n),
        gpu_types: kind.map(str::to_owned).into_iter().collect(),
        ..Request::default()
    };
    assert_eq!(start(&mut c, 1, gpus(1, Some("h")), HOUR).unwrap().parts[0].devices[..], [1]);
    assert_eq!(start(&mut c, 2, gpus(2, None), HOUR).unwrap().parts[0].devices[..], [0, 2]);
    c.vacate(JobId(1));
    assert_eq!(start(&mut c, 3, gpus(1, Some("h")), HOUR).unwrap().parts[0].devices[..], [1]);
    assert!(matches!(start(&mut c, 4, gpus(1, Some("h")), HOUR), Err(NoFit::NotNow(_))));
    assert!(matches!(start(&mut c, 5, gpus(3, Some("h")), HOUR), Err(NoFit::Never(_))));
    assert_eq!(c.free(NodeId(0)).unwrap().get(ResourceId::GPU), 1000);
}

#[test]
fn a_gpu_of_any_kind_leaves_the_kind_that_is_promised() {
    let mut c = cluster(&[(8, &["a", "h"])]);
    let typed = Request { gpus: GpuRequest::PerNode(1), gpu_types: vec!["a".to_owned()], ..Request::default() };
    let class = class(&mut c, typed);
    let later = NOW + Span(10);
    let slot = c.earliest_start(class, later, HOUR, &Placing::default(), &mut Work(100)).unwrap();
    c.reserve(&slot);
    let any = Request { gpus: GpuRequest::PerNode(1), ..Request::default() };
    assert_eq!(start(&mut c, 1, any.clone(), Span(10)).unwrap().parts[0].devices[..], [0], "ends before the promise");
    c.vacate(JobId(1));
    assert_eq!(start(&mut c, 2, any, Span(11)).unwrap().parts[0].devices[..], [1]);
}

#[test]
fn gpus_in_all_are_spread_over_the_nodes() {
    let mut c = cluster(&[(4, &["a"]), (4, &["a", "a"]), (4, &[]), (1, &["a", "a", "a", "a"])]);
    let request = |nodes_min, tasks, n| Request { nodes_min, tasks, gpus: GpuRequest::Total(n), ..Request::default() };
    let nodes = |c: &mut Cluster, request: Request| {
        let mark = c.savepoint();
        let found =
            start(c, 1, request, HOUR).map(|a| a.parts.iter().map(|p| (p.node.0, p.devices.len())).collect::<Vec<_>>());
        c.rollback(mark);
        found
    };
    assert_eq!(nodes(&mut c, request(1, None, 2)).unwrap(), [(1, 2)]);
    assert_eq!(nodes(&mut c, request(2, None, 3)).unwrap(), [(0, 1), (1, 2)]);
    assert_eq!(nodes(&mut c, request(2, None, 6)).unwrap(), [(1, 2), (3, 4)]);
    // Five tasks and six GPUs: n1 and n3 have both.
    assert_eq!(nodes(&mut c, request(1, Some(5), 6)).unwrap(), [(1, 2), (3, 4)]);
    // Nine tasks need three nodes, and n2 brings no GPU.
    assert_eq!(nodes(&mut c, request(1, Some(9), 7)).unwrap(), [(0, 1), (1, 2), (3, 4)]);
    assert!(matches!(nodes(&mut c, request(1, None, 5)), Err(NoFit::Never(_))));
}

#[test]
fn a_whole_node_is_empty_and_is_taken_with_everything() {
    let mut c = cluster(&[(8, &["a"]), (4, &[])]);
    start(&mut c, 1, cores(1), HOUR).unwrap();
    let whole = Request { exclusive: true, ..Request::default() };
    let allocation = start(&mut c, 2, whole.clone(), HOUR).unwrap();
    assert_eq!(parts(&allocation), [(1, 1)]);
    assert_eq!(allocation.total(), *c.capacity(NodeId(1)).unwrap());
    assert!(start(&mut c, 3, whole.clone(), HOUR).is_err());
    c.vacate(JobId(1));
    assert_eq!(start(&mut c, 4, whole, HOUR).unwrap().parts[0].devices[..], [0]);
    assert!(start(&mut c, 5, cores(1), HOUR).is_err());
}

#[test]
fn nodes_asked_for_by_name_are_taken_and_excluded_ones_are_not() {
    let mut c = cluster(&[(4, &[]), (4, &[]), (4, &[])]);
    let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let listed = Request { nodes_min: 2, node_list: names(&["n2"]), exclude: names(&["n0"]), ..Request::default() };
    assert_eq!(parts(&start(&mut c, 1, listed, HOUR).unwrap()), [(1, 1), (2, 1)]);
    let unknown = Request { node_list: names(&["n9"]), ..Request::default() };
    assert!(
        refusal(start(&mut c, 2, unknown, HOUR)).contains("node n9, asked for by name, is not part of this cluster")
    );
    let both = Request { node_list: names(&["n1"]), exclude: names(&["n1"]), ..Request::default() };
    assert!(refusal(start(&mut c, 3, both, HOUR)).contains("node n1, asked for by name, is not among them"));
}

#[test]
fn wishes_put_nodes_in_order() {
    let mut c = cluster(&[(4, &[]), (8, &[]), (6, &[])]);
    start(&mut c, 1, cores(5), HOUR).unwrap();
    let one = class(&mut c, cores(1));
    let mut first = |how: &Placing| {
        let mark = c.savepoint();
        let allocation = c.try_start(JobId(9), one, NOW, HOUR, how, &mut Work(100)).map(|a| a.parts[0].node.0);
        c.rollback(mark);
        allocation.ok()
    };
    let (n0, n2) = (NodeId(0), NodeId(2));
    assert_eq!(first(&Placing::default()), Some(1));
    assert_eq!(first(&Placing { spread: vec![ResourceId::CPU], ..Placing::default() }), Some(2));
    assert_eq!(first(&Placing { pack: vec![ResourceId::CPU], ..Placing::default() }), Some(1));
    assert_eq!(first(&Placing { rank: vec![n2, n0], ..Placing::default() }), Some(2));
    assert_eq!(first(&Placing { only: Some(vec![n2, n0]), ..Placing::default() }), Some(0));
    assert_eq!(first(&Placing { only: Some(Vec::new()), ..Placing::default() }), None);
}

#[test]
fn a_job_that_should_have_ended_still_holds_what_it_has() {
    let mut c = cluster(&[(4, &[])]);
    start(&mut c, 1, cores(4), Span(5)).unwrap();
    let one = class(&mut c, cores(1));
    let earliest = |c: &mut Cluster, from| c.earliest_start(one, from, HOUR, &Placing::default(), &mut Work(100));
    assert_eq!(earliest(&mut c, NOW).unwrap().start, NOW + Span(5));
    c.advance(NOW + Span(50));
    assert_eq!(earliest(&mut c, NOW).unwrap().start, NOW + Span(51));
    assert!(start(&mut c, 2, cores(1), HOUR).is_err());
    c.extend(JobId(1), NOW + Span(90));
    assert_eq!(earliest(&mut c, NOW).unwrap().start, NOW + Span(90));
}

#[test]
fn a_short_job_goes_before_a_promise_and_a_long_one_beside_it() {
    let mut c = cluster(&[(10, &[])]);
    start(&mut c, 1, cores(6), Span(100)).unwrap();
    let head = class(&mut c, cores(8));
    let slot = c.earliest_start(head, NOW, HOUR, &Placing::default(), &mut Work(100)).unwrap();
    assert_eq!(slot.start, NOW + Span(100));
    let promise = c.reserve(&slot);
    assert!(start(&mut c, 2, cores(3), Span(101)).is_err(), "would take from the promise");
    start(&mut c, 3, cores(2), Span(101)).unwrap();
    start(&mut c, 4, cores(2), Span(100)).unwrap();
    assert!(c.lift(promise));
}

#[test]
fn facts_that_come_while_a_plan_is_made_outlive_it() {
    let mut c = cluster(&[(10, &[])]);
    let mark = c.savepoint();
    let allocation = start(&mut c, 1, cores(2), HOUR).unwrap();
    start(&mut c, 2, cores(3), HOUR).unwrap();
    c.occupy(JobId(1), &allocation, NOW + HOUR);
    c.occupy(JobId(3), &allocation, NOW + HOUR);
    c.rollback(mark);
    assert!(c.is_running(JobId(1)) && !c.is_running(JobId(2)) && c.is_running(JobId(3)));
    assert_eq!(c.free(NodeId(0)).unwrap().get(ResourceId::CPU), 6000);
    c.vacate(JobId(1));
    c.vacate(JobId(1));
    c.vacate(JobId(3));
    assert_eq!(c.free(NodeId(0)), c.capacity(NodeId(0)).cloned());
}

#[test]
fn a_plan_that_was_handed_over_stays() {
    let mut c = cluster(&[(10, &[])]);
    let mark = c.savepoint();
    start(&mut c, 1, cores(2), HOUR).unwrap();
    c.forget_undo();
    c.rollback(mark);
    assert!(c.is_running(JobId(1)));
    assert!(refusal(start(&mut c, 1, cores(2), HOUR)).contains("already running"));
}

#[test]
fn nodes_come_and_go_with_what_runs_there() {
    let mut c = cluster(&[(4, &["a"])]);
    let gpu = Request { gpus: GpuRequest::PerNode(1), ..Request::default() };
    let allocation = start(&mut c, 1, gpu, HOUR).unwrap();
    c.remove_node(NodeId(0));
    assert_eq!((c.node_count(), c.free(NodeId(0))), (0, None));
    assert!(matches!(start(&mut c, 2, cores(1), HOUR), Err(NoFit::Never(_))));
    c.set_node(NodeId(0), node("n0", 8, &["a", "b"]));
    let expected = Amounts::new().with(ResourceId::CPU, 7000).with(ResourceId::MEM, 64).with(ResourceId::GPU, 1000);
    assert_eq!(c.free(NodeId(0)), Some(expected.clone()));
    // The same when the job is heard of before its node.
    let mut late = Cluster::new();
    late.occupy(JobId(1), &allocation, NOW + HOUR);
    assert_eq!(late.node_count(), 0);
    late.set_node(NodeId(0), node("n0", 8, &["a", "b"]));
    assert_eq!(late.free(NodeId(0)), Some(expected));
    late.vacate(JobId(1));
    assert_eq!(late.free(NodeId(0)), late.capacity(NodeId(0)).cloned());
}

#[test]
fn facts_may_take_more_than_there_is() {
    let mut c = cluster(&[(2, &["a"])]);
    let whole = Request { exclusive: true, ..Request::default() };
    let allocation = start(&mut c, 1, whole, HOUR).unwrap();
    c.occupy(JobId(2), &allocation, NOW + HOUR);
    assert_eq!(c.free(NodeId(0)).unwrap().get(ResourceId::CPU), -2000);
    c.vacate(JobId(2));
    assert!(start(&mut c, 3, cores(1), HOUR).is_err());
    c.vacate(JobId(1));
    assert!(start(&mut c, 3, cores(2), HOUR).is_ok());
}

#[test]
fn what_can_never_run_is_told_with_the_numbers() {
    let mut c = cluster(&[(8, &["h"]), (4, &[]), (4, &[])]);
    let mut drained = node("n3", 16, &[]);
    drained.up = false;
    c.set_node(NodeId(3), drained);
    let mut ever = |request| {
        let class = class(&mut c, request);
        c.ever(class).map_err(|why| why.to_string())
    };
    assert_eq!(ever(cores(16)), Ok(()), "a drained node counts");
    assert_eq!(
        ever(cores(17)).unwrap_err(),
        "asks for 1 node, 17 cores; 4 nodes; 4 have too little: asks 17 cores, most is 16 cores; \
         0 nodes with room when empty, 1 needed"
    );
    let gpus =
        Request { nodes_min: 2, gpus: GpuRequest::PerNode(1), gpu_types: vec!["h".to_owned()], ..Request::default() };
    assert_eq!(
        ever(gpus).unwrap_err(),
        "asks for 2 nodes, 1 core on each, 1 GPU of type h on each node; 4 nodes; 3 have no GPU of type h; \
         1 node with room when empty, 2 needed"
    );
    let tasks = Request { tasks: Some(40), ..Request::default() };
    assert!(ever(tasks).unwrap_err().ends_with("4 nodes with room when empty, 1 needed, for 32 of 40 tasks"));
    let few = Request { nodes_min: 3, tasks: Some(2), ..Request::default() };
    assert_eq!(ever(few).unwrap_err(), "the request has 2 tasks for at least 3 nodes; each node takes one or more");
}

#[test]
fn the_explanation_counts_nodes_condition_by_condition() {
    let mut c = cluster(&[(8, &["h"]), (8, &["h"]), (8, &[]), (2, &["h"])]);
    let mut drained = node("n4", 8, &["h"]);
    drained.up = false;
    c.set_node(NodeId(4), drained);
    start(&mut c, 1, cores(7), HOUR).unwrap();
    let request = Request {
        nodes_min: 2,
        cpus_per_task: 4,
        gpus: GpuRequest::PerNode(1),
        gpu_types: vec!["h".to_owned()],
        ..Request::default()
    };
    let class = class(&mut c, request);
    assert_eq!(
        c.explain(class),
        [
            "asks for 2 nodes, 4 cores on each, 1 GPU of type h on each node",
            "5 nodes",
            "1 is down or drained",
            "1 has too little: asks 4 cores, most is 2 cores",
            "1 has no GPU of type h",
            "1 has too little free: asks 4 cores, most is 1 core",
            "1 node with room now, 2 needed",
        ]
    );
}

#[test]
fn a_budget_that_ends_changes_nothing() {
    let mut c = cluster(&[(4, &[]), (4, &[]), (4, &[])]);
    let class = class(&mut c, Request { nodes_min: 3, ..Request::default() });
    let before = format!("{c:?}");
    let mut enough = Work(100);
    let mark = c.savepoint();
    assert!(c.try_start(JobId(1), class, NOW, HOUR, &Placing::default(), &mut enough).is_ok());
    c.rollback(mark);
    let needed = 100 - enough.0;
    for units in 0..needed {
        let mut work = Work(units);
        let tried = c.try_start(JobId(1), class, NOW, HOUR, &Placing::default(), &mut work);
        assert_eq!((tried, work), (Err(NoFit::Budget), Work(0)));
        assert_eq!(format!("{c:?}"), before);
    }
    let mut work = Work(needed);
    assert!(c.try_start(JobId(1), class, NOW, HOUR, &Placing::default(), &mut work).is_ok());
    assert_eq!(work, Work(0));
}

#[test]
fn what_is_not_known_is_refused_in_words() {
    let mut c = cluster(&[(4, &[])]);
    let unknown = ClassId(7);
    let tried = c.try_start(JobId(1), unknown, NOW, HOUR, &Placing::default(), &mut Work(9));
    assert!(refusal(tried).contains("class 7 is not known here"));
    assert!(c.ever(unknown).is_err());
    assert_eq!(c.explain(unknown).len(), 1);
}

#[test]
fn promises_are_facts_that_no_savepoint_takes_back() {
    let mut c = cluster(&[(4, &[])]);
    let class = class(&mut c, cores(3));
    let work = || Work::UNLIMITED;
    let mark = c.savepoint();
    let slot = c.earliest_start(class, NOW + HOUR, HOUR, &Placing::default(), &mut work()).unwrap();
    let kept = c.promise(&slot.allocation, slot.start, slot.start + HOUR);
    c.rollback(mark);
    c.forget_undo();
    assert!(!c.is_free(&slot));
    // It ends just before the promise, or comes behind it.
    assert!(c.try_start(JobId(1), class, NOW, HOUR, &Placing::default(), &mut work()).is_ok());
    assert!(c.try_start(JobId(2), class, NOW, Span(HOUR.0 + 1), &Placing::default(), &mut work()).is_err());
    let behind = c.earliest_start(class, NOW, HOUR, &Placing::default(), &mut work()).unwrap();
    assert_eq!(behind.start, NOW + HOUR + HOUR);
    c.vacate(JobId(1));
    c.withdraw(kept);
    c.withdraw(kept);
    assert!(c.is_free(&slot));
}

#[test]
fn a_slot_that_begins_now_is_started_as_it_was_found_and_taken_back_exactly() {
    let mut c = cluster(&[(4, &["a"]), (4, &["b"])]);
    let request = Request { gpus: GpuRequest::PerNode(1), nodes_min: 2, ..cores(2) };
    let class = class(&mut c, request);
    let before = format!("{c:?}");
    let mark = c.savepoint();
    let slot = c.earliest_start(class, NOW, HOUR, &Placing::default(), &mut Work::UNLIMITED.clone()).unwrap();
    c.start_in(JobId(1), &slot);
    assert!(c.is_running(JobId(1)));
    assert_eq!(c.free(NodeId(1)).unwrap().get(ResourceId::GPU), 0);
    c.rollback(mark);
    assert_eq!(format!("{c:?}"), before);
}

#[test]
fn what_is_promised_of_a_shared_device_is_not_held_by_anybody() {
    // A promise whose time had come before its room was released was counted as running on the device.
    let mut c = cluster(&[(16, &["h"])]);
    let share = |milli| Request { gpus: GpuRequest::Share(milli), ..Request::default() };
    let running = start(&mut c, 1, share(200), HOUR).unwrap();
    c.promise(&running, NOW, Timestamp(NOW.0 + 10));
    assert_eq!(c.free_devices(NodeId(0)), [800]);
}

#[test]
fn parts_of_gpus_share_a_device_and_the_fullest_that_fits_is_taken() {
    let mut c = cluster(&[(16, &["a", "h", "h"])]);
    let share = |milli, kinds: &[&str]| Request {
        gpus: GpuRequest::Share(milli),
        gpu_types: kinds.iter().map(|k| (*k).to_owned()).collect(),
        ..Request::default()
    };
    let device = |allocation: Arc<Allocation>| allocation.parts[0].devices[0];
    assert_eq!(device(start(&mut c, 1, share(600, &["h"]), HOUR).unwrap()), 1);
    assert_eq!(device(start(&mut c, 2, share(700, &["h", "x"]), HOUR).unwrap()), 2, "the first has too little left");
    assert_eq!(device(start(&mut c, 3, share(300, &[]), HOUR).unwrap()), 2, "the fullest of those that fit");
    assert_eq!(device(start(&mut c, 4, share(300, &[]), HOUR).unwrap()), 1);
    assert_eq!(c.free_devices(NodeId(0)), [1000, 100, 0]);
    assert_eq!(c.free(NodeId(0)).unwrap().get(ResourceId::GPU), 1100);
    let whole = Request { gpus: GpuRequest::PerNode(1), ..Request::default() };
    assert_eq!(device(start(&mut c, 5, whole, HOUR).unwrap()), 0);
    let why = refusal(start(&mut c, 6, share(200, &["h", "x"]), HOUR));
    assert!(why.contains("0.2 of a GPU of type h or x"), "{why}");
    let asked = class(&mut c, share(200, &["h", "x"]));
    let lines = c.explain(asked).join("; ");
    assert!(lines.contains("1 has too little free: asks 0.2 GPUs of type h or x, most is 0.1 GPUs"), "{lines}");
    let slot = c.earliest_start(asked, NOW, HOUR, &Placing::default(), &mut Work(100)).unwrap();
    assert_eq!(slot.start, NOW + HOUR);
    assert!(matches!(start(&mut c, 7, share(200, &["x"]), HOUR), Err(NoFit::Never(_))));
}

#[test]
fn a_part_of_a_gpu_outlasts_the_others_only_where_nobody_else_is_promised_the_device() {
    let mut c = cluster(&[(16, &["a"])]);
    let share = |milli| Request { gpus: GpuRequest::Share(milli), ..Request::default() };
    start(&mut c, 1, share(500), HOUR).unwrap();
    let whole = class(&mut c, Request { gpus: GpuRequest::PerNode(1), ..Request::default() });
    let slot = c.earliest_start(whole, NOW, HOUR, &Placing::default(), &mut Work(100)).unwrap();
    assert_eq!(slot.start, NOW + HOUR);
    c.reserve(&slot);
    assert!(matches!(start(&mut c, 2, share(500), Span(HOUR.0 + 1)), Err(NoFit::NotNow(_))));
    assert!(start(&mut c, 3, share(500), HOUR).is_ok());
}

/// The index passed over nodes without the GPUs asked for, a look at each node did not; so the room of a rack, and with it
/// the choice among racks, hung on how its nodes were found.
#[test]
fn a_node_without_the_gpus_is_no_room_however_it_is_found() {
    let mut c = Cluster::new();
    c.advance(NOW);
    for (i, (rack, devices)) in
        [("rack=1", &["a", "a", "a"][..]), ("rack=2", &["a"]), ("rack=2", &[])].iter().enumerate()
    {
        let view = NodeView { features: vec![(*rack).to_owned()], ..node(&format!("n{i}"), 1, devices) };
        c.set_node(NodeId(i as u32), view);
    }
    let one = class(&mut c, Request { gpus: GpuRequest::Total(1), ..Request::default() });
    for only in [None, Some((0..3).map(NodeId).collect())] {
        let how = Placing { prefer_level: Some("rack".to_owned()), only, ..Placing::default() };
        let mark = c.savepoint();
        let placed = c.try_start(JobId(1), one, NOW, HOUR, &how, &mut Work::UNLIMITED.clone()).unwrap();
        assert_eq!(parts(&placed), [(1, 1)], "the rack with least room, found {how:?}");
        c.rollback(mark);
    }
}
