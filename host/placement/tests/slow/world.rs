//! Random nodes, requests and histories. Small, so that things often nearly fit.

use ephor_model::constraint::Constraint;
use ephor_model::id::NodeId;
use ephor_model::request::{GpuRequest, MemRequest, Request, Topology};
use ephor_model::resource::ResourceId;
use ephor_model::time::Span;
use ephor_placement::{Need, NodeView, Placing};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Something that happens. Numbers that pick one of several are taken modulo how many there are.
#[derive(Clone, Debug)]
pub enum Event {
    Start {
        class: usize,
        limit: Span,
        how: Placing,
    },
    Earliest {
        class: usize,
        later: i64,
        /// No later than so long after that.
        by: Option<i64>,
        limit: Span,
        how: Placing,
        reserve: bool,
    },
    /// The plan lets a running job end at another time.
    Retime(usize, i64),
    Lift(usize),
    Savepoint,
    Rollback(usize),
    /// The plan becomes fact; then the time moves on.
    Advance(i64),
    /// As above, and then something happens.
    Vacate(usize),
    Extend(usize, i64),
    Turn(usize),
    Change(usize, NodeView),
    Leave(usize),
}

/// A cluster, the needs of its jobs, and what happens.
#[derive(Clone, Debug)]
pub struct World {
    pub nodes: Vec<NodeView>,
    pub needs: Vec<Need>,
    pub events: Vec<Event>,
}

/// Worlds whose nodes stay as they are, or change too.
pub fn world(nodes_change: bool) -> impl Strategy<Value = World> {
    let nodes = prop::collection::vec(node(), 1..6).prop_map(|mut nodes| {
        (0..nodes.len()).for_each(|i| nodes[i].name = name(i));
        nodes
    });
    let needs = prop::collection::vec(need(), 1..5);
    let events = prop::collection::vec(event(nodes_change), 1..25);
    (nodes, needs, events).prop_map(|(nodes, needs, events)| World { nodes, needs, events })
}

pub fn name(index: usize) -> String {
    format!("n{index}")
}

fn node() -> impl Strategy<Value = NodeView> {
    let devices = prop_oneof![
        2 => Just(Vec::new()),
        3 => prop::collection::vec(select(vec!["a", "b"]).prop_map(str::to_owned), 1..5),
    ];
    (0_i64..9, 0_i64..9, devices, features(), prop::bool::weighted(0.9)).prop_map(
        |(cores, mem, devices, features, up)| {
            let capacity = [
                (ResourceId::CPU, cores * 1000),
                (ResourceId::MEM, mem),
                (ResourceId::GPU, devices.len() as i64 * 1000),
            ];
            NodeView {
                name: String::new(),
                capacity: capacity.into_iter().collect(),
                features,
                devices,
                out: Vec::new(),
                up,
            }
        },
    )
}

fn features() -> impl Strategy<Value = Vec<String>> {
    let racks = prop::option::weighted(0.6, select(vec!["rack=1", "rack=2"]).prop_map(str::to_owned));
    (subsequence(vec!["x".to_owned(), "y".to_owned(), "z".to_owned()], 0..=3), racks).prop_map(
        |(mut features, rack)| {
            features.extend(rack);
            features.sort();
            features
        },
    )
}

fn constraint() -> impl Strategy<Value = Option<Constraint>> {
    let texts = vec![
        "x|y",
        "(x&y)|z",
        "[x|y]",
        "[x|(y&z)]",
        "[z|y|x]",
        "x*1",
        "x*2",
        "[x*1&y*1]",
        "[(x|y)*1&x*1]",
        "[x*2&z*1]",
    ];
    prop_oneof![3 => Just(None), 2 => select(texts).prop_map(|text| Constraint::parse(text).expect("a constraint").1)]
}

fn topology() -> impl Strategy<Value = Option<Topology>> {
    let topology = (select(vec!["rack", "y"]), any::<bool>());
    let topology = topology.prop_map(|(level, required)| Topology { level: level.to_owned(), required });
    prop_oneof![3 => Just(None), 1 => topology.prop_map(Some)]
}

fn few_features() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![4 => Just(Vec::new()), 1 => features()]
}

fn few_names() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![6 => Just(Vec::new()), 1 => subsequence((0..6).map(name).collect::<Vec<_>>(), 0..3)]
}

fn need() -> impl Strategy<Value = Need> {
    let counts =
        (1_u32..4, prop::option::of(1_u32..5), prop::option::of(1_u32..9), prop::option::of(1_u32..4), 1_u32..4);
    let counts = prop_oneof![1 => Just((1, None, None, None, 1)), 3 => counts];
    let mem = prop_oneof![
        3 => Just(MemRequest::Unset),
        1 => (0_u64..6).prop_map(MemRequest::PerNode),
        1 => (0_u64..3).prop_map(MemRequest::PerCpu),
    ];
    let gpus = prop_oneof![
        3 => Just(GpuRequest::None),
        1 => (1_u32..4).prop_map(GpuRequest::PerNode),
        1 => (1_u32..3).prop_map(GpuRequest::PerTask),
        1 => (1_u32..7).prop_map(GpuRequest::Total),
        3 => (1_u32..10).prop_map(|tenths| GpuRequest::Share(tenths * 100)),
    ];
    let kind = subsequence(vec!["a".to_owned(), "b".to_owned()], 0..3);
    let names = (few_names(), few_names());
    let together = (constraint(), topology());
    (counts, mem, gpus, kind, few_features(), few_features(), names, prop::bool::weighted(0.15), together).prop_map(
        |(counts, mem, gpus, gpu_types, features, queue_features, (node_list, exclude), exclusive, together)| {
            let (nodes_min, nodes_max, tasks, tasks_per_node, cpus_per_task) = counts;
            let request = Request {
                nodes_min,
                nodes_max,
                tasks,
                tasks_per_node,
                cpus_per_task,
                mem,
                gpus,
                gpu_types,
                features,
                node_list,
                exclude,
                exclusive,
                cpu_milli: None,
                constraint: together.0,
                topology: together.1,
            };
            Need { request: request.into(), queue_features }
        },
    )
}

fn limit() -> impl Strategy<Value = Span> {
    prop_oneof![8 => (0_i64..12).prop_map(Span), 1 => Just(Span(i64::MAX))]
}

fn placing() -> impl Strategy<Value = Placing> {
    let resources = || {
        let all = vec![ResourceId::CPU, ResourceId::MEM, ResourceId::GPU];
        prop_oneof![4 => Just(Vec::new()), 1 => subsequence(all, 1..3)]
    };
    let ids = || subsequence((0..7).map(NodeId).collect::<Vec<_>>(), 1..5).prop_shuffle();
    let rank = prop_oneof![4 => Just(Vec::new()), 1 => ids()];
    let only = prop_oneof![6 => Just(None), 1 => ids().prop_map(Some)];
    let level = || prop_oneof![6 => Just(None), 1 => Just(Some("rack".to_owned()))];
    (resources(), resources(), rank, only, level(), level()).prop_map(
        |(pack, spread, rank, only, require_level, prefer_level)| Placing {
            may_claim: false,
            pack,
            spread,
            rank,
            only,
            require_level,
            prefer_level,
        },
    )
}

fn event(nodes_change: bool) -> BoxedStrategy<Event> {
    let start = (any::<usize>(), limit(), placing()).prop_map(|(class, limit, how)| Event::Start { class, limit, how });
    let by = prop_oneof![2 => Just(None), 1 => (0_i64..6).prop_map(Some)];
    let earliest = (any::<usize>(), -2_i64..6, by, limit(), placing(), any::<bool>())
        .prop_map(|(class, later, by, limit, how, reserve)| Event::Earliest { class, later, by, limit, how, reserve });
    let steady = prop_oneof![
        8 => start,
        6 => earliest,
        2 => any::<usize>().prop_map(Event::Lift),
        2 => (any::<usize>(), 0_i64..9).prop_map(|(job, later)| Event::Retime(job, later)),
        2 => Just(Event::Savepoint),
        2 => any::<usize>().prop_map(Event::Rollback),
        2 => (0_i64..5).prop_map(Event::Advance),
        2 => any::<usize>().prop_map(Event::Vacate),
        1 => (any::<usize>(), -3_i64..9).prop_map(|(job, later)| Event::Extend(job, later)),
    ];
    if !nodes_change {
        return steady.boxed();
    }
    prop_oneof![
        12 => steady,
        1 => any::<usize>().prop_map(Event::Turn),
        1 => (any::<usize>(), node()).prop_map(|(index, view)| Event::Change(index, view)),
        1 => any::<usize>().prop_map(Event::Leave),
    ]
    .boxed()
}

/// How many random cases to run: `PROPTEST_CASES`, or that many.
pub fn cases(usual: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
