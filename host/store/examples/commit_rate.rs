//! Measures durable commits, a restart, and the disk beside them. Prints one JSON object a line.
//!
//! `commit_rate [FOLDER] [SECONDS]`: works in a new folder below FOLDER (default: the temporary one) and takes about
//! SECONDS (default 3) for each figure.

use ephor_core::State;
use ephor_core::command::{Command, Objects};
use ephor_core::decide::{Batch, execute};
use ephor_model::*;
use ephor_store::{CommitBatch, History, HistoryJob, LiveStore, OpenOptions, Store};
use std::error::Error;
use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Bench {
    state: State,
    now: i64,
    spec: JobSpec,
}

impl Bench {
    fn new() -> Self {
        let argv = ["/usr/bin/python3", "train.py", "--data", "/scratch/set-1"].map(str::to_owned).to_vec();
        let mut spec = JobSpec::new("training-run", Payload::Argv(argv));
        (spec.queue, spec.account, spec.work_dir) = ("main".into(), "physics".into(), "/home/user/project".into());
        spec.owner = Owner { uid: Uid(1000), gid: 1000, name: "user".into() };
        spec.time_limit = Some(Span(3_600_000));
        Self { state: State::default(), now: 0, spec }
    }

    fn run(&mut self, commands: impl IntoIterator<Item = Command>, store: &mut LiveStore) -> Outcome<()> {
        let mut batch = Batch::default();
        for command in commands {
            self.now += 1;
            execute(&mut self.state, Timestamp(self.now), command, &mut batch)?;
        }
        // Each submit brings its script and environment, as a controller does; the store keeps equal ones once.
        let blobs = vec![(Digest([1; 32]), vec![b's'; 1500]), (Digest([2; 32]), vec![b'e'; 4000])];
        Ok(store.commit(self.state.meta.epoch, &CommitBatch::of(&self.state, &batch, blobs))?)
    }

    fn submits(&mut self, count: usize, store: &mut LiveStore) -> Outcome<()> {
        let spec = Arc::new(self.spec.clone());
        let command = Command::Submit {
            spec,
            script: Some(Digest([1; 32])),
            environment: Digest([2; 32]),
            known_ends: Vec::new(),
        };
        self.run(std::iter::repeat_n(command, count), store)
    }
}

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let base = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let each = Duration::from_secs_f64(args.next().map_or(Ok(3.0), |s| s.parse())?);
    let folder = base.join(format!("ephor-commit-rate-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let measured = measure(&folder, each);
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn measure(folder: &Path, each: Duration) -> Outcome<()> {
    fsync_rate(folder, each)?;
    let live = folder.join("data");
    let mut store = LiveStore::open(&live, &OpenOptions::default())?;
    let mut bench = Bench::new();
    let queues = vec![(Queue { name: "main".into(), ..Queue::default() }, None)];
    let accounts = vec![Account { name: "physics".into(), ..Account::default() }];
    let objects = Objects { queues, accounts, ..Objects::default() };
    bench.run([Command::BeginEpoch { at_least: 0 }, Command::Apply(objects)], &mut store)?;
    for per_commit in [1, 10, 100, 1000] {
        let (mut times, begun) = (Vec::new(), Instant::now());
        while begun.elapsed() < each {
            let start = Instant::now();
            bench.submits(per_commit, &mut store)?;
            times.push(start.elapsed());
        }
        let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
        let settings = format!("\"submits_per_commit\":{per_commit},\"submits_per_s\":{:.0}", rate * per_commit as f64);
        print("store_commits", rate, "1/s", &mut times, &settings);
    }
    while bench.state.derived.unfinished < 100_000 {
        bench.submits(1000, &mut store)?;
    }
    fsync_rate(folder, each)?;
    restart(folder, &live)?;
    drop(store);
    history(&live, &bench.state)
}

/// Opens a copy of the file as a kill would leave it.
fn restart(folder: &Path, live: &Path) -> Outcome<()> {
    let (mut open, mut load) = (Vec::new(), Vec::new());
    let mut settings = String::new();
    for run in 0..3 {
        let copy = folder.join(format!("copy-{run}"));
        std::fs::create_dir(&copy)?;
        std::fs::copy(live.join("live.redb"), copy.join("live.redb"))?;
        let start = Instant::now();
        let store = LiveStore::open(&copy, &OpenOptions::default())?;
        open.push(start.elapsed());
        let start = Instant::now();
        let jobs = store.load()?.state.jobs.len();
        load.push(start.elapsed());
        let bytes = std::fs::metadata(copy.join("live.redb"))?.len();
        settings = format!("\"jobs\":{jobs},\"file_bytes\":{bytes}");
    }
    let seconds = |times: &[Duration]| times.iter().map(Duration::as_secs_f64).sum::<f64>() / times.len() as f64;
    print("store_open_after_kill", seconds(&open), "s", &mut open, &settings);
    print("store_load", seconds(&load), "s", &mut load, &settings);
    Ok(())
}

fn history(live: &Path, state: &State) -> Outcome<()> {
    let jobs: Vec<HistoryJob> =
        state.jobs.keys().take(20_000).filter_map(|id| HistoryJob::from_element(state, *id)).collect();
    let history = History::open(live)?;
    let mut times = Vec::new();
    let begun = Instant::now();
    for some in jobs.chunks(500) {
        let start = Instant::now();
        history.append(some)?;
        times.push(start.elapsed());
    }
    let bytes = std::fs::metadata(history.path())?.len();
    let settings = format!("\"jobs_per_append\":500,\"bytes_per_job\":{}", bytes as usize / jobs.len());
    print("history_appended_jobs", jobs.len() as f64 / begun.elapsed().as_secs_f64(), "1/s", &mut times, &settings);
    Ok(())
}

/// How often the disk makes 8 KiB durable, over space that the file has already.
fn fsync_rate(folder: &Path, each: Duration) -> Outcome<()> {
    let path = folder.join("fsync");
    let file = FileOptions::new().write(true).create(true).truncate(true).open(&path)?;
    file.write_all_at(&vec![1; 1 << 20], 0)?;
    file.sync_all()?;
    let (mut times, begun) = (Vec::new(), Instant::now());
    while begun.elapsed() < each {
        let start = Instant::now();
        file.write_all_at(&[2; 8192], (times.len() as u64 % 128) * 8192)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    print("disk_fsync", rate, "1/s", &mut times, "\"bytes\":8192");
    std::fs::remove_file(&path)?;
    Ok(())
}

/// `min` and `max` are of the single run, in milliseconds, like the median.
fn print(name: &str, value: f64, unit: &str, times: &mut [Duration], settings: &str) {
    times.sort_unstable();
    let ms = |t: Option<&Duration>| t.map_or(0.0, |t| t.as_secs_f64() * 1e3);
    let (min, median, max) = (ms(times.first()), ms(times.get(times.len() / 2)), ms(times.last()));
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.3},\"unit\":\"{unit}\",\"runs\":{},\"min\":{min:.3},\
         \"median\":{median:.3},\"max\":{max:.3},\"times\":\"ms\",{settings}}}",
        times.len()
    );
}
