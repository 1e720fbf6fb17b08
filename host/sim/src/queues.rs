//! What each queue held over the time of a simulation, against what it was promised and what it asked for.

use crate::metrics;
use crate::workload::Unit;
use ephor_core::{Event, Stamped};
use ephor_model::{JobId, JobState, QueueId, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

/// How a queue fared. Hours are processor hours or GPU hours, as the workload is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Processors or GPUs that it is promised; 0: none.
    pub quota: f64,
    /// Its jobs that started.
    pub jobs: u64,
    /// Mean time from submission to the first start, in seconds.
    pub mean_wait_s: f64,
    /// Of n sorted waits the one with index floor(9 (n - 1) / 10).
    pub p90_wait_s: i64,
    /// Mean over the jobs that ended of max(1, t / max(run, 10)), t from submission to the last end and the run the last
    /// one, in seconds.
    pub mean_turnaround: f64,
    /// What it held.
    pub held_h: f64,
    /// What it held beyond its quota.
    pub beyond_h: f64,
    /// What it asked for within its quota: at each time the smaller of the quota and what its jobs held and waited for.
    pub promised_h: f64,
    /// The part of that which it did not hold.
    pub missed_h: f64,
    /// Attempts that had to give way.
    pub evictions: u64,
    /// What these held in vain.
    pub lost_h: f64,
}

/// One queue so far.
#[derive(Clone, Debug, Default)]
struct Book {
    name: String,
    quota: i64,
    held: i64,
    waiting: i64,
    /// Sums over the time so far, in parts times milliseconds.
    held_ms: i128,
    beyond_ms: i128,
    promised_ms: i128,
    missed_ms: i128,
    lost_ms: i128,
    evictions: u64,
    /// Waits in seconds, of jobs that started.
    waits: Vec<i64>,
    turnarounds: (f64, u64),
}

impl Book {
    fn advance(&mut self, ms: i64) {
        let ms = i128::from(ms);
        self.held_ms += ms * i128::from(self.held);
        self.beyond_ms += ms * i128::from((self.held - self.quota).max(0));
        self.promised_ms += ms * i128::from(self.promised());
        self.missed_ms += ms * i128::from(self.misses());
    }

    /// What it asks for within its quota.
    fn promised(&self) -> i64 {
        self.quota.min(self.held + self.waiting)
    }

    /// The part of that which it does not hold.
    fn misses(&self) -> i64 {
        (self.promised() - self.held).max(0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    queue: QueueId,
    size: i64,
    submitted: Timestamp,
    began: Option<Timestamp>,
    first: bool,
}

/// What all queues together missed from a time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Seconds of the trace.
    pub at: i64,
    /// Processors or milli-GPUs that queues were promised and asked for, and did not hold.
    pub parts: i64,
}

/// See the module. Follows the events of a simulation.
#[derive(Clone, Debug)]
pub struct QueueBooks {
    unit: Unit,
    queues: BTreeMap<QueueId, Book>,
    jobs: BTreeMap<JobId, Job>,
    now: Timestamp,
    missed: Vec<Missed>,
}

impl QueueBooks {
    /// Nothing so far.
    pub fn new(unit: Unit) -> Self {
        Self { unit, queues: BTreeMap::new(), jobs: BTreeMap::new(), now: Timestamp(0), missed: Vec::new() }
    }

    /// Takes note of the next events.
    pub fn observe(&mut self, events: &[Stamped]) {
        for stamped in events {
            let passed = stamped.at.0 - self.now.0;
            if passed > 0 {
                self.sample();
                self.queues.values_mut().for_each(|book| book.advance(passed));
                self.now = stamped.at;
            }
            self.take(&stamped.event);
        }
    }

    /// Writes down what is missed from now on, where that is news.
    fn sample(&mut self) {
        let parts = self.queues.values().map(Book::misses).sum();
        if self.missed.last().map_or(0, |last| last.parts) != parts {
            self.missed.push(Missed { at: self.now.0 / 1000, parts });
        }
    }

    /// What was missed over time: an entry for the first job, and wherever it changed.
    pub fn missed(self) -> Vec<Missed> {
        self.missed
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::QueueSet { queue, is } => {
                let book = self.queues.entry(*queue).or_default();
                (book.name, book.quota) = (is.name.clone(), self.unit.capacity(&is.quota));
            }
            Event::Submitted { job } => {
                if self.missed.is_empty() {
                    self.missed.push(Missed { at: self.now.0 / 1000, parts: 0 });
                }
                let size = self.unit.size(&job.spec.request);
                let record = Job { queue: job.queue, size, submitted: job.submitted, began: None, first: true };
                for ordinal in 0..u64::from(job.spec.count()) {
                    self.jobs.insert(JobId(job.id.0 + ordinal), record);
                    self.queues.entry(job.queue).or_default().waiting += size;
                }
            }
            Event::Started { key, .. } => self.with(key.job, |job, book, now| {
                book.waiting -= job.size;
                book.held += job.size;
                if std::mem::take(&mut job.first) {
                    book.waits.push((now.0 - job.submitted.0) / 1000);
                }
                job.began = Some(now);
            }),
            Event::Evicted { key, .. } => self.with(key.job, |_, book, _| book.evictions += 1),
            Event::Ended { key, state, .. } => self.with(key.job, |job, book, now| {
                let began = job.began.take().unwrap_or(now);
                let ran = now.0 - began.0;
                book.held -= job.size;
                if *state == JobState::Pending {
                    book.waiting += job.size;
                    book.lost_ms += i128::from(ran) * i128::from(job.size);
                } else {
                    let (sum, count) = &mut book.turnarounds;
                    let run = metrics::Ran {
                        submit: job.submitted.0 / 1000,
                        start: began.0 / 1000,
                        run: ran / 1000,
                        size: job.size,
                    };
                    (*sum, *count) = (*sum + metrics::bounded_slowdown(&run), *count + 1);
                }
            }),
            Event::CancelledPending { job, .. } | Event::DeadlinePassed { job } => {
                self.with(*job, |job, book, _| book.waiting -= job.size);
            }
            _ => {}
        }
    }

    fn with(&mut self, job: JobId, change: impl FnOnce(&mut Job, &mut Book, Timestamp)) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        if let Some(book) = self.queues.get_mut(&job.queue) {
            change(job, book, self.now);
        }
    }

    /// How the queues fared that had jobs, by name.
    pub fn reports(&self) -> Vec<QueueReport> {
        let parts = self.unit.parts() as f64;
        let hours = |sum: i128| sum as f64 / parts / 3_600_000.0;
        let report = |book: &Book| {
            let mut waits = book.waits.clone();
            waits.sort_unstable();
            let (sum, count) = book.turnarounds;
            QueueReport {
                queue: book.name.clone(),
                quota: book.quota as f64 / parts,
                jobs: waits.len() as u64,
                mean_wait_s: waits.iter().map(|w| *w as f64).sum::<f64>() / waits.len().max(1) as f64,
                p90_wait_s: metrics::at(&waits, 9, 10).unwrap_or(0),
                mean_turnaround: sum / count.max(1) as f64,
                held_h: hours(book.held_ms),
                beyond_h: hours(book.beyond_ms),
                promised_h: hours(book.promised_ms),
                missed_h: hours(book.missed_ms),
                evictions: book.evictions,
                lost_h: hours(book.lost_ms),
            }
        };
        let mut reports: Vec<QueueReport> = self.queues.values().map(report).filter(|r| r.jobs > 0).collect();
        reports.sort_by(|a, b| a.queue.cmp(&b.queue));
        reports
    }
}

/// Of all that queues were promised and asked for the part that they held; `None`: nothing was promised.
pub fn kept(queues: &[QueueReport]) -> Option<f64> {
    let sum = |of: fn(&QueueReport) -> f64| queues.iter().map(of).sum::<f64>();
    let promised = sum(|q| q.promised_h);
    (promised > 0.0).then(|| 1.0 - sum(|q| q.missed_h) / promised)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_core::eviction::Eviction;
    use ephor_core::records::Job as Record;
    use ephor_model::{
        AccountId, Allocation, AttemptKey, Digest, Exit, GpuRequest, Hold, Queue, ReasonCode, Request, ResourceId,
    };
    use ephor_model::{JobSpec, Span, Usage};
    use std::sync::Arc;

    fn at(hours: i64, event: Event) -> Stamped {
        Stamped { at: Timestamp(hours * 3_600_000), event }
    }

    fn submitted(id: u64, queue: QueueId, gpus: u32, hours: i64) -> Stamped {
        let request = Request { tasks: Some(gpus), gpus: GpuRequest::PerTask(1), ..Request::default() };
        let mut spec = JobSpec::new("a", crate::workload::payload());
        spec.request = request.into();
        let job = Record {
            id: JobId(id),
            spec: Arc::new(spec),
            queue,
            account: AccountId(0),
            submitted: Timestamp(hours * 3_600_000),
            script: None,
            environment: Digest::default(),
            waiting: Vec::new(),
            never: false,
            qos: None,
            licences: Vec::new(),
        };
        at(hours, Event::Submitted { job: Arc::new(job) })
    }

    fn key(job: u64) -> AttemptKey {
        AttemptKey { job: JobId(job), number: 1 }
    }

    fn started(job: u64, hours: i64) -> Stamped {
        at(
            hours,
            Event::Started { key: key(job), allocation: Arc::new(Allocation::default()), expected_end: Timestamp(0) },
        )
    }

    fn ended(job: u64, state: JobState, hours: i64) -> Stamped {
        let (exit, reason, usage, hold) = (Exit::default(), ReasonCode::None, Usage::default(), Hold::None);
        at(hours, Event::Ended { key: key(job), state, exit, reason, detail: None, usage, hold })
    }

    #[test]
    fn what_was_promised_missed_and_lost_is_counted_by_the_hour() {
        let (a, b) = (QueueId(1), QueueId(2));
        let quota = |gpus: i64| ephor_model::Amounts::new().with(ResourceId::GPU, gpus * 1000);
        let queue = |id, name: &str, gpus| {
            at(
                0,
                Event::QueueSet { queue: id, is: Queue { name: name.into(), quota: quota(gpus), ..Queue::default() } },
            )
        };
        let eviction = Arc::new(Eviction { why: "others".into(), grace: Span(0), requeue: true });
        let mut books = QueueBooks::new(Unit::MilliGpus);
        books.observe(&[
            queue(a, "a", 4),
            queue(b, "b", 4),
            submitted(1, a, 8, 0),
            started(1, 0),
            submitted(2, b, 6, 2),
            // Six are asked for, four are promised; they come an hour later, when the first one has gone.
            at(3, Event::Evicted { key: key(1), eviction }),
            ended(1, JobState::Pending, 3),
            started(2, 3),
            ended(2, JobState::Completed, 5),
        ]);
        let [of_a, of_b] = books.reports().try_into().unwrap();
        assert_eq!((of_a.held_h, of_a.beyond_h, of_a.evictions, of_a.lost_h), (24.0, 12.0, 1, 24.0));
        // It waits for two hours with eight asked for and four promised.
        assert_eq!((of_a.promised_h, of_a.missed_h), (20.0, 8.0));
        assert_eq!((of_b.held_h, of_b.promised_h, of_b.missed_h, of_b.mean_wait_s), (12.0, 12.0, 4.0, 3600.0));
        assert_eq!((of_b.mean_turnaround, of_b.jobs, of_b.quota), (1.5, 1, 4.0));
        assert_eq!(kept(&[of_a, of_b]), Some(1.0 - 12.0 / 32.0));
        assert_eq!(kept(&[]), None);
        let missed: Vec<_> = books.missed().iter().map(|m| (m.at / 3600, m.parts)).collect();
        // From then on four, of the one queue and then of the other.
        assert_eq!(missed, [(0, 0), (2, 4000)]);
    }
}
