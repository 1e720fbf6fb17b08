//! Measures the running product and prints one JSON object a line: `make bench`, or `make bench ONLY=name`.
//!
//! Nothing here asserts a duration: figures are for people, and for comparison within one run.

mod array;
mod cycle;
mod disk;
mod fair;
mod figure;
mod finish;
mod live;
mod policies;
mod restart;
mod submits;
mod trace;

use figure::Figure;

/// A cycle makes and drops thousands of small things; the system's allocator takes a fifth of its time for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A benchmark: the names of its figures begin with this name.
type Bench = (&'static str, fn() -> anyhow::Result<Vec<Figure>>);

const ALL: &[Bench] = &[
    ("submit_1_client", || submits::run("submit_1_client", 1, 1, 1_000)),
    ("submit_8_clients", || submits::run("submit_8_clients", 8, 1, 6_000)),
    ("submit_64_clients", || submits::run("submit_64_clients", 64, 1, 10_000)),
    ("submit_64_clients_pipelined", || submits::run("submit_64_clients_pipelined", 64, 8, 15_000)),
    ("submit_to_finish_2_slots", || finish::throughput("submit_to_finish_2_slots", 2, 1_000)),
    ("submit_to_finish_512_slots", || finish::throughput("submit_to_finish_512_slots", 512, 2_000)),
    ("submit_to_end_idle", finish::idle),
    ("array_5000", array::run),
    ("policy_call", policies::run),
    ("restart_100k", restart::run),
    ("live_queries_20k", live::run),
    ("cycle_full", cycle::full),
    ("gang_impossible_500", || cycle::gang("gang_impossible_500", 500)),
    ("gang_impossible_100k", || cycle::gang("gang_impossible_100k", 100_000)),
    ("cycle_growth", cycle::growth),
    ("memory_pending_job", cycle::memory),
    ("kai", fair::run),
    ("sim_kth_easy", trace::kth),
];

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let only = match (args.next().as_deref(), args.next()) {
        (None, _) => None,
        (Some("--only"), Some(name)) => Some(name),
        _ => anyhow::bail!("usage: ephor-bench [--only NAME]; names: {}", names()),
    };
    let chosen: Vec<&Bench> =
        ALL.iter().filter(|(name, _)| only.as_deref().is_none_or(|o| name.starts_with(o))).collect();
    anyhow::ensure!(!chosen.is_empty(), "there is no such benchmark; names: {}", names());
    for (_, bench) in chosen {
        for figure in bench()? {
            println!("{}", serde_json::to_string(&figure)?);
        }
    }
    Ok(())
}

fn names() -> String {
    ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
