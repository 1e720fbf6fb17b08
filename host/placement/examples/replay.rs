//! Replays a workload log in the standard format (SWF, on stdin) on one node: first come first served, with EASY
//! backfilling, or conservative. Prints the total wait, the fingerprint of all start times and the time it took.
//!
//! `zcat LOG.swf.gz | cargo run --release -p ephor-placement --example replay -- PROCESSORS [fifo|easy|conservative]`
//!
//! Estimates are raised to the run time, so that no job is cut short.

use ephor_model::id::{JobId, NodeId};
use ephor_model::request::Request;
use ephor_model::resource::{Amounts, ResourceId};
use ephor_model::time::{Span, Timestamp};
use ephor_placement::{ClassId, Cluster, Need, NodeView, Placing, ReservationId, Work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufRead};
use std::time::Instant;

struct Job {
    id: JobId,
    submit: i64,
    run: i64,
    limit: Span,
    class: ClassId,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let processors: i64 = std::env::args().nth(1).ok_or("give the number of processors")?.parse()?;
    let policy = std::env::args().nth(2).unwrap_or_else(|| "easy".to_owned());
    let mut cluster = Cluster::new();
    let capacity = Amounts::new().with(ResourceId::CPU, processors * 1000);
    cluster.set_node(NodeId(0), NodeView { name: "all".to_owned(), capacity, up: true, ..NodeView::default() });
    let jobs = read(&mut cluster)?;
    let begun = Instant::now();
    let mut replay = Replay {
        cluster,
        jobs: &jobs,
        queue: VecDeque::new(),
        held: BTreeMap::new(),
        starts: vec![0; jobs.len()],
        ends: BTreeSet::new(),
        tries: 0,
    };
    let passes = replay.all(&policy);
    let wait: i64 = replay.starts.iter().zip(&jobs).map(|(start, job)| start - job.submit).sum();
    let bytes = replay.starts.iter().flat_map(|start| start.to_le_bytes());
    let fnv = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    println!(
        "{{\"policy\":\"{policy}\",\"jobs\":{},\"passes\":{passes},\"tries\":{},\"total_wait_s\":{wait},\
         \"start_fnv\":\"{fnv:016x}\",\"seconds\":{:.3}}}",
        jobs.len(),
        replay.tries,
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The jobs of the log that ran, by submission.
fn read(cluster: &mut Cluster) -> Result<Vec<Job>, Box<dyn std::error::Error>> {
    let mut jobs = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.starts_with(';') || line.trim().is_empty() {
            continue;
        }
        let fields: Vec<i64> =
            line.split_whitespace().map(|f| f.parse::<f64>().map(|n| n as i64)).collect::<Result<_, _>>()?;
        let [submit, run, used, asked, estimate] = [1, 3, 4, 7, 8].map(|i| fields.get(i).copied().unwrap_or(-1));
        let processors = if asked > 0 { asked } else { used };
        if run <= 0 || processors <= 0 {
            continue;
        }
        let request = Request { cpus_per_task: u32::try_from(processors)?, ..Request::default() };
        let class = cluster.intern(&Need { request: request.into(), queue_features: Vec::new() });
        jobs.push(Job { id: JobId(0), submit, run, limit: Span::seconds(estimate.max(run)), class });
    }
    jobs.sort_by_key(|job| job.submit);
    jobs.iter_mut().zip(0..).for_each(|(job, n)| job.id = JobId(n));
    Ok(jobs)
}

struct Replay<'a> {
    cluster: Cluster,
    jobs: &'a [Job],
    queue: VecDeque<usize>,
    /// Promises of the conservative policy.
    held: BTreeMap<usize, (ReservationId, Timestamp)>,
    starts: Vec<i64>,
    ends: BTreeSet<(i64, usize)>,
    tries: u64,
}

impl Replay<'_> {
    /// Every instant: ends, arrivals, one pass. Returns the number of passes.
    fn all(&mut self, policy: &str) -> u64 {
        let (mut next, mut passes) = (0, 0);
        while next < self.jobs.len() || !self.ends.is_empty() {
            let arrival = self.jobs.get(next).map_or(i64::MAX, |job| job.submit);
            let now = self.ends.first().map_or(arrival, |(end, _)| arrival.min(*end));
            self.cluster.advance(Timestamp(now * 1000));
            let mut early = false;
            while let Some(&(end, job)) = self.ends.first().filter(|(end, _)| *end == now) {
                self.ends.remove(&(end, job));
                early |= self.cluster.expected_end(JobId(job as u64)) > Some(Timestamp(now * 1000));
                self.cluster.vacate(JobId(job as u64));
            }
            if early && policy == "conservative" {
                self.pull_forward(now);
            }
            while self.jobs.get(next).is_some_and(|job| job.submit == now) {
                self.queue.push_back(next);
                if policy == "conservative" {
                    self.promise(next, now);
                }
                next += 1;
            }
            match policy {
                "conservative" => self.keep_promises(now),
                _ => self.backfill(now, policy == "easy"),
            }
            self.cluster.forget_undo();
            passes += 1;
        }
        passes
    }

    fn start(&mut self, job: usize, now: i64) -> bool {
        let Job { id, class, limit, .. } = self.jobs[job];
        self.tries += 1;
        let (now_ms, how) = (Timestamp(now * 1000), Placing::default());
        let started = self.cluster.try_start(id, class, now_ms, limit, &how, &mut Work(u64::MAX)).is_ok();
        if started {
            self.starts[job] = now;
            self.ends.insert((now + self.jobs[job].run, job));
        }
        started
    }

    fn promise(&mut self, job: usize, now: i64) {
        let Job { class, limit, .. } = self.jobs[job];
        let (from, how) = (Timestamp(now * 1000), Placing::default());
        if let Ok(slot) = self.cluster.earliest_start(class, from, limit, &how, &mut Work(u64::MAX)) {
            let id = self.cluster.reserve(&slot);
            self.held.insert(job, (id, slot.start));
        }
    }

    fn backfill(&mut self, now: i64, easy: bool) {
        while let Some(&head) = self.queue.front() {
            if !self.start(head, now) {
                break;
            }
            self.queue.pop_front();
        }
        let Some(&head) = self.queue.front() else { return };
        if !easy {
            return;
        }
        self.promise(head, now);
        let rest: Vec<usize> = self.queue.iter().copied().skip(1).collect();
        let started: BTreeSet<usize> = rest.into_iter().filter(|job| self.start(*job, now)).collect();
        self.queue.retain(|job| !started.contains(job));
        if let Some((id, _)) = self.held.remove(&head) {
            self.cluster.lift(id);
        }
    }

    fn pull_forward(&mut self, now: i64) {
        for job in self.queue.clone() {
            if let Some((id, _)) = self.held.remove(&job) {
                self.cluster.lift(id);
            }
            self.promise(job, now);
        }
    }

    fn keep_promises(&mut self, now: i64) {
        let due: Vec<(usize, ReservationId)> = self
            .held
            .iter()
            .filter(|(_, (_, start))| start.0 <= now * 1000)
            .map(|(job, (id, _))| (*job, *id))
            .collect();
        for (job, id) in due {
            self.held.remove(&job);
            self.cluster.lift(id);
            assert!(self.start(job, now), "a promise must hold");
            self.queue.retain(|queued| *queued != job);
        }
    }
}
