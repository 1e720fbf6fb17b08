//! Traces of every kind on clusters of many nodes, from the file to the report; the auditor looks on.

use crate::common::native::EasyByWindow;
use crate::common::{Recorder, no_policies, swf_text, trace};
use ephor_core::decide::Batch;
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_model::{Digest, Epoch, GpuRequest, JobId, ResourceId};
use ephor_sim::cluster::SimCluster;
use ephor_sim::compare::{Run, Shaken, compare};
use ephor_sim::eventlog::EventLog;
use ephor_sim::policies::Policies;
use ephor_sim::simulate::{Choice, Finished, Input, Options, SimulateError};
use ephor_sim::trace::Trace;
use ephor_sim::workload::{Estimates, Shaper, Workload};
use ephor_sim::{driver, fill, html, openb, philly};
use ephor_store::{CommitBatch, LiveStore, OpenOptions, Store};
use std::path::Path;
use tempfile::TempDir;

const OPENB_NODES: &str = "openb_node_list_all_node.csv";
const OPENB_PODS: &str = "openb_pod_list_default.csv.gz";
const PHILLY: &str = "philly.csv.gz";

const PHILLY_LOG: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n\
    2017-10-09 07:00:10,100.0,12,66.0,vc1\n\
    2017-10-09 07:00:00,50.0,8,66.0,vc2\n\
    2017-10-09 07:00:20,30.0,1,66.0,vc1\n\
    2017-10-09 07:00:20,30.0,64,66.0,vc1\n";
const TWO_NODES: &str = "[[nodes]]\nname = \"n[1-2]\"\ncpu = 16\ngpus = 8\ngpu_type = \"p100\"\n";

fn files(texts: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    texts.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
    folder
}

fn options(folder: &Path, trace: &str) -> Options {
    Options { trace: folder.join(trace), ..Options::default() }
}

fn finished(options: &Options) -> Finished {
    let mut recorder = Recorder::default();
    let finished = Input::read(options).unwrap().run(&options.choice, None, &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    assert_eq!(finished.outcome.groups_dropped, 0);
    finished
}

fn error(options: &Options) -> String {
    let run = |input: Input| input.run(&options.choice, None, &mut ());
    Input::read(options).and_then(run).unwrap_err().to_string()
}

#[test]
fn gangs_of_a_philly_log_take_whole_servers() {
    if no_policies() {
        return;
    }
    let folder = files(&[("log.csv", PHILLY_LOG), ("two.toml", TWO_NODES)]);
    let options = Options { cluster: Some(folder.path().join("two.toml")), ..options(folder.path(), "log.csv") };
    let run = finished(&options);
    // The first takes one server; the one of 12 needs two and waits until 50; the small one fits beside the first.
    let starts: Vec<_> = run.outcome.starts.iter().map(|s| s.map(|t| t.0 / 1000)).collect();
    assert_eq!(starts, [Some(0), Some(50), Some(20)]);
    assert_eq!((run.report.never_runnable, run.report.unit.as_str(), run.report.gpus), (1, "gpus", 16.0));
    let queues: Vec<_> = run.outcome.state.queues.values().map(|q| q.name.clone()).collect();
    assert_eq!(queues, ["vc1", "vc2"]);
    // 8 x 50 + 12 x 100 + 30 of 16 x 150.
    assert!((run.report.utilisation - 1630.0 / 2400.0).abs() < 1e-9);
    assert!(html::page(&run).contains("Wait by queue"));
}

#[test]
fn a_log_of_processors_spreads_over_the_nodes_of_a_cluster() {
    if no_policies() {
        return;
    }
    let log = swf_text(&[(0, 10, 20, 10), (1, 5, 32, 5), (2, 5, 33, 5)]);
    let folder = files(&[("log.swf", &log), ("two.toml", TWO_NODES)]);
    let options = Options { cluster: Some(folder.path().join("two.toml")), ..options(folder.path(), "log.swf") };
    let run = finished(&options);
    let starts: Vec<_> = run.outcome.starts.iter().map(|s| s.map(|t| t.0 / 1000)).collect();
    assert_eq!((starts, run.report.never_runnable), (vec![Some(0), Some(10)], 1));
    assert_eq!((run.report.processors, run.report.nodes), (32, 2));
}

#[test]
fn our_own_log_replays_to_the_same_starts() {
    if no_policies() {
        return;
    }
    // A simulation stands in for a controller: its log goes into a store as a controller's does.
    let log = swf_text(&[(3, 10, 3, 12), (4, 5, 4, 5), (5, 4, 1, 8), (5, 20, 1, 20), (9, 2, 1, 2)]);
    let folder = files(&[("log.swf", &log)]);
    let first = Options { processors: Some(4), ..options(folder.path(), "log.swf") };
    let mut recorder = Recorder::default();
    let input = Input::read(&first).unwrap();
    let original = input.run(&first.choice, None, &mut recorder).unwrap();
    let data = folder.path().join("data");
    {
        let mut store = LiveStore::open(&data, &OpenOptions::default()).unwrap();
        // What simulated jobs name as their environment.
        let environment = vec![(Digest::default(), Vec::new())];
        let mut batch = Batch { events: recorder.log.clone(), ..Batch::default() };
        batch.touched = original.outcome.state.row_keys().into_iter().collect();
        store.commit(Epoch(1), &CommitBatch::of(&original.outcome.state, &batch, environment)).unwrap();
        store.reader().backup(&folder.path().join("backup")).unwrap();
    }
    for name in ["data", "backup"] {
        let again = finished(&options(folder.path(), name));
        let starts = |run: &Finished, first: i64| {
            run.outcome.starts.iter().map(|s| s.unwrap().0 / 1000 - first).collect::<Vec<_>>()
        };
        assert_eq!(starts(&again, 0), starts(&original, 3), "{name}");
        assert_eq!((again.report.jobs, again.report.processors, again.report.dropped), (5, 4, 0));
        assert_eq!(again.report.total_wait_s, original.report.total_wait_s);
    }
}

#[test]
fn jobs_that_did_not_end_are_dropped_from_our_own_log() {
    let log = Trace::Swf(ephor_sim::swf::Swf::parse(swf_text(&[(0, 10, 4, 10), (1, 10, 4, 10)]).as_bytes()).unwrap());
    let cluster = SimCluster::one_node(4);
    let workload = log.workload(&cluster, Some(4), &mut Shaper::plain(Estimates::Max)).unwrap();
    let mut recorder = Recorder::default();
    let outcome = driver::run(&workload, &cluster, &mut Policies::native(FirstComeFirstServed), &mut recorder).unwrap();
    let ended = |job| move |s: &&ephor_core::Stamped| matches!(&s.event, ephor_core::Event::Ended { key, .. } if key.job == JobId(job));
    let cut = recorder.log.iter().position(|s| ended(2)(&s)).unwrap();
    let log = EventLog::of(&outcome.state, &recorder.log[..cut]);
    let made = Workload::of_events(&log, &mut Shaper::plain(Estimates::Max));
    assert_eq!((made.jobs.len(), made.dropped), (1, 1));
}

#[test]
fn errors_name_the_file_and_the_line() {
    let bad_pods = format!("{},memory_mib\n", openb::PODS);
    let folder = files(&[
        ("philly.csv", PHILLY_LOG),
        ("bad.csv", "timestamp,duration,num_gpus,cluster\nx,1,1,a\n"),
        ("pods.csv", &bad_pods),
        ("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,1000,1,0,\n"),
        ("bad.toml", "[[nodes]]\nname = \"a\"\ncpu = 0\n"),
    ]);
    let at = |trace: &str| options(folder.path(), trace);
    let path = |name: &str| Some(folder.path().join(name));
    for (options, part) in [
        (at("philly.csv"), "the trace does not say what its cluster is; name one with --cluster"),
        (at("bad.csv"), "bad.csv' cannot be simulated: line 2: timestamp is 'x'"),
        (at("pods.csv"), "pods.csv' cannot be simulated: line 1: the header has no column 'num_gpu'"),
        (at("nodes.csv"), "is a list of nodes, not a trace; give it with --nodes"),
        (Options { cluster: path("bad.toml"), ..at("philly.csv") }, "bad.toml' cannot be simulated: line 3: cpu is 0"),
        (Options { cluster: path("none.toml"), ..at("philly.csv") }, "cannot read the cluster"),
        (Options { nodes: path("philly.csv"), ..at("philly.csv") }, "line 1: the header has no column 'sn'"),
        (Options { nodes: path("nodes.csv"), processors: Some(1), ..at("philly.csv") }, "exclude each other"),
        (Options { nodes: path("nodes.csv"), fill: Some(1.0), ..at("philly.csv") }, "the trace is a Philly log"),
    ] {
        assert!(error(&options).contains(part), "{part}: {}", error(&options));
    }
}

#[test]
fn a_cluster_that_is_filled_says_what_is_left() {
    if no_policies() {
        return;
    }
    let head =
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
    let pods = format!(
        "{head}\na,500,10,1,600,,,,0,9,0\nb,500,10,1,600,,,,0,9,0\nc,500,10,2,1000,T4,,,0,9,0\nd,500,10,1,1000,V100,,,0,9,0\n"
    );
    let nodes = "sn,cpu_milli,memory_mib,gpu,model\nn1,4000,1000,2,T4\nn2,600,1000,2,V100\n";
    let folder = files(&[("pods.csv", &pods), ("nodes.csv", nodes)]);
    let base = Options { nodes: Some(folder.path().join("nodes.csv")), ..options(folder.path(), "pods.csv") };
    let run = finished(&Options { fill: Some(1.0), ..base.clone() });
    let fill = run.report.fill.unwrap();
    // a, b, c ask for 3.2 of 4 GPUs, d passes it. a and b lie on both GPUs of n1, so that c finds no place; d takes one of n2.
    assert_eq!((fill.pods, fill.refused), (4, 1));
    assert!((fill.demand - 4.2 / 4.0).abs() < 1e-9);
    assert_eq!(fill.demand_at_first_refusal, Some(3.2 / 4.0));
    assert!((fill.unallocated_gpus - 1.8).abs() < 1e-9 && (fill.allocated_gpus - 2.2).abs() < 1e-9);
    // Free are 400 and 400 on n1 and 1000 on n2, where no core is left: nothing of it serves any of the four.
    assert!((fill.fragmented_gpus - 1.8).abs() < 1e-9, "{}", fill.fragmented_gpus);
    // Without filling the same pods come and go.
    let replay = finished(&base);
    assert_eq!((replay.report.jobs, replay.report.never_started), (4, 0));
    for share in [0.0, -1.0, f64::NAN, 11.0] {
        assert!(error(&Options { fill: Some(share), ..base.clone() }).contains("cannot be filled to"));
    }
}

#[test]
fn pods_ask_for_what_the_list_says() {
    let head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time";
    let pods =
        openb::pods(format!("{head}\na,2500,10,1,460,T4|P100,0,9,0\nb,1000,10,4,1000,,0,9,0\n").as_bytes()).unwrap();
    let request = pods[0].request();
    assert_eq!(
        (request.gpus, request.gpu_types.as_slice()),
        (GpuRequest::Share(460), &["P100".to_owned(), "T4".into()][..])
    );
    assert_eq!((request.total().get(ResourceId::CPU), request.total().get(ResourceId::MEM)), (2500, 10));
    assert_eq!(pods[1].request().gpus, GpuRequest::PerNode(4));
    let none = openb::pods(format!("{head}\na,2500,10,0,0,,0,9,0\n").as_bytes()).unwrap();
    assert!(fill::workload(&none, 1.0, 1000).jobs.is_empty());
}

#[test]
fn runs_are_compared_on_the_same_shaken_copies() {
    if no_policies() {
        return;
    }
    let rows: Vec<_> = (0..60).map(|n| (n * 40, 30 + n * 7 % 90, 1 + (n as u32 * 5) % 4, 200)).collect();
    let folder = files(&[("log.swf", &swf_text(&rows))]);
    let options = Options { processors: Some(4), ..options(folder.path(), "log.swf") };
    let input = Input::read(&options).unwrap();
    let runs = ["fifo", "backfill", "backfill,estimates=exact"].map(|t| Run::parse(t, &Choice::default()).unwrap());
    let mut told = 0;
    let mut go = |copies| {
        let shaken = Shaken { copies, seed: 7 };
        compare(&options, &runs, shaken, &mut (), &mut |_, _| told += 1)
    };
    let found = go(4).unwrap();
    for line in &found.runs {
        let spread = line.spread["mean_wait_s"];
        assert!(spread.min <= spread.median && spread.median <= spread.max && spread.min < spread.max, "{spread:?}");
    }
    assert!(found.runs.iter().map(|line| line.best_in.unwrap()).sum::<u32>() <= 4);
    let spreads =
        |found: &ephor_sim::compare::Comparison| found.runs.iter().map(|l| l.spread.clone()).collect::<Vec<_>>();
    assert_eq!(spreads(&go(4).unwrap()), spreads(&found));
    assert!(matches!(go(5000), Err(SimulateError::Options(_))));
    assert_eq!(told, 2 * 3 * 5);
    let plain = input.run(&runs[1].choice, None, &mut ()).unwrap().report;
    assert_eq!(found.runs[1].report.start_fnv, plain.start_fnv);
}

#[test]
fn openb_is_filled_and_audited() {
    let (Some(pods), Some(nodes)) = (trace(OPENB_PODS), trace(OPENB_NODES)) else { return };
    let pods = openb::pods(&ephor_sim::read::trace(&pods).unwrap()).unwrap();
    let cluster = SimCluster::of_node_list(&std::fs::read(nodes).unwrap()).unwrap();
    let capacity = cluster.capacity();
    assert_eq!((pods.len(), cluster.nodes.len()), (8152, 1523));
    assert_eq!((capacity.get(ResourceId::GPU), capacity.get(ResourceId::CPU)), (6_212_000, 125_514_000));
    let workload = fill::workload(&pods, 1.0, capacity.get(ResourceId::GPU));
    assert_eq!(workload.jobs.len(), 8300);
    let mut recorder = Recorder::default();
    let outcome = driver::fill(&workload, &cluster, &mut Policies::native(EasyByWindow), &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    let report = fill::FillReport::of(&workload, &cluster, &outcome);
    assert!((1.0..1.001).contains(&report.demand), "{report:?}");
    assert!((report.allocated_gpus + report.unallocated_gpus - 6212.0).abs() < 1e-6);
    assert!(report.fragmented_gpus > 0.0 && report.fragmented_gpus <= report.unallocated_gpus, "{report:?}");
}

#[test]
fn philly_is_read_whole() {
    let Some(path) = trace(PHILLY) else { return };
    let jobs = philly::parse(&ephor_sim::read::trace(&path).unwrap()).unwrap();
    let workload = Workload::of_philly(&jobs, &mut Shaper::plain(Estimates::Max));
    // The table beside the trace counts its blank last line too.
    assert_eq!((workload.jobs.len(), workload.dropped), (82_247, 0));
    let queues: std::collections::BTreeSet<_> = workload.jobs.iter().map(|j| j.spec.queue.as_str()).collect();
    assert_eq!(queues.len(), 15);
    assert!(workload.jobs.is_sorted_by_key(|job| job.submit));
}

#[test]
fn the_first_weeks_of_philly_are_audited() {
    let Some(path) = trace(PHILLY) else { return };
    let jobs = philly::parse(&ephor_sim::read::trace(&path).unwrap()).unwrap();
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sim/philly.toml"));
    let cluster = SimCluster::of_toml(&text.unwrap()).unwrap();
    let mut workload = Workload::of_philly(&jobs[..8000], &mut Shaper::plain(Estimates::Max));
    workload.leave_out_impossible(&cluster);
    assert_eq!(workload.never_runnable, 0);
    let mut recorder = Recorder::default();
    let outcome = driver::run(&workload, &cluster, &mut Policies::native(EasyByWindow), &mut recorder).unwrap();
    assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    assert!(outcome.starts.iter().all(Option::is_some));
}
