//! What is simulated: jobs with the time they really took, in the order in which they arrive.

use crate::cluster::SimCluster;
use crate::eventlog::{EventLog, Logged};
use crate::line::BadLine;
use crate::openb::Pod;
use crate::philly::PhillyJob;
use crate::shake::Shake;
use crate::swf::Swf;
use ephor_model::limits::TIME_LIMIT_MS;
use ephor_model::{Amounts, EndCause, GpuRequest, JobSpec, NodeId, Payload, Request, ResourceId, Span, Timestamp, Uid};
use ephor_placement::{Cluster, Need, NodeView};
use std::sync::Arc;

/// The queue and the account that every job of a log without queues is in.
pub const DEFAULT_NAME: &str = "default";

/// What is taken for the users' estimates of run times, where a log's own may be too short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimates {
    /// The larger of estimate and run time: nobody is ended.
    #[default]
    Max,
    /// As they are: a job is ended when its estimate is over.
    Kill,
    /// The run time itself.
    Exact,
}

impl Estimates {
    /// All of them with their names.
    pub const NAMES: [(Self, &'static str); 3] = [(Self::Max, "max"), (Self::Kill, "kill"), (Self::Exact, "exact")];

    /// The name as users write it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(e, _)| *e == self).map_or("", |(_, name)| name)
    }

    /// Run time and time limit of a job that ran for `run`, in any unit. An estimate that is not known is the run time.
    fn apply(self, run: i64, estimate: i64) -> (i64, i64) {
        let estimate = if estimate > 0 { estimate } else { run };
        match self {
            Self::Max => (run, estimate.max(run)),
            Self::Kill => (run.min(estimate), estimate),
            Self::Exact => (run, run),
        }
    }
}

/// Makes jobs of what a log says: estimates as chosen, times shaken where that is wished for.
#[derive(Clone, Debug)]
pub struct Shaper {
    estimates: Estimates,
    shake: Option<Shake>,
    requeue: bool,
}

impl Shaper {
    /// Times as the log has them.
    pub fn plain(estimates: Estimates) -> Self {
        Self { estimates, shake: None, requeue: false }
    }

    /// Times a little changed, each seed in its own way.
    pub fn shaken(estimates: Estimates, seed: u64) -> Self {
        Self { estimates, shake: Some(Shake::new(seed)), requeue: false }
    }

    /// All jobs may be requeued, and so be made to give way.
    pub fn requeued(self, requeue: bool) -> Self {
        Self { requeue, ..self }
    }

    fn job(&mut self, mut spec: JobSpec, submit: Timestamp, run: Span, estimate: Span) -> SimJob {
        let (submit, run) = match &mut self.shake {
            Some(shake) => shake.times(submit, run),
            None => (submit, run),
        };
        let (ran, limit) = self.estimates.apply(run.0, estimate.0);
        spec.time_limit = Some(Span(limit));
        if self.requeue {
            spec.requeue = Some(true);
        }
        let ends = if ran < run.0 { EndCause::TimeLimit } else { EndCause::Exited };
        SimJob { submit, run: Span(ran), ends, spec: Arc::new(spec) }
    }
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimJob {
    /// When it arrives.
    pub submit: Timestamp,
    /// How long it runs once it has started, more than 0.
    pub run: Span,
    /// What its end is reported as.
    pub ends: EndCause,
    /// What is submitted.
    pub spec: Arc<JobSpec>,
}

/// What a workload is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Cores.
    #[default]
    Processors,
    /// Thousandths of a GPU.
    MilliGpus,
}

impl Unit {
    /// How many of them a job asks for.
    pub fn size(self, request: &Request) -> i64 {
        match self {
            Self::Processors => request.cpu_count() as i64,
            Self::MilliGpus => request.total().get(ResourceId::GPU),
        }
    }

    /// How many of them that capacity is.
    pub fn capacity(self, all: &Amounts) -> i64 {
        match self {
            Self::Processors => all.get(ResourceId::CPU) / 1000,
            Self::MilliGpus => all.get(ResourceId::GPU),
        }
    }

    /// How many of them are one of what people count.
    pub fn parts(self) -> i64 {
        match self {
            Self::Processors => 1,
            Self::MilliGpus => 1000,
        }
    }

    /// What people call what is counted.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processors => "processors",
            Self::MilliGpus => "gpus",
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The jobs, by time of arrival; among equal times in the order of the log.
    pub jobs: Vec<SimJob>,
    /// Entries of the log that are no jobs: without a run time or without processors.
    pub dropped: u32,
    /// Jobs that ask for more than the cluster has. They are left out, as admission would refuse them.
    pub never_runnable: u32,
    /// What sizes and utilisation are counted in.
    pub unit: Unit,
}

/// How the processors of a log become a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One task with all of them, on a cluster of one node with that many.
    OneNode(u32),
    /// That many tasks of one core each, on as few nodes as will do.
    Tasks,
}

impl Workload {
    /// The jobs of a log for a cluster of one node with that many processors.
    ///
    /// # Errors
    /// A job whose submit time is not known.
    pub fn of_swf(log: &Swf, processors: u32, estimates: Estimates) -> Result<Self, BadLine> {
        Self::of_swf_as(log, Layout::OneNode(processors), &mut Shaper::plain(estimates))
    }

    /// The jobs of a log for any cluster.
    ///
    /// # Errors
    /// A job whose submit time is not known.
    pub fn of_swf_as(log: &Swf, layout: Layout, shaper: &mut Shaper) -> Result<Self, BadLine> {
        let mut workload = Self::default();
        for job in &log.jobs {
            let (true, Some(wanted)) = (job.run > 0, job.processors()) else {
                workload.dropped += 1;
                continue;
            };
            if job.submit < 0 {
                let what = format!(
                    "job {} has a submit time of {} seconds; times count from the start of the log",
                    job.number, job.submit
                );
                return Err(BadLine::new(job.line, what));
            }
            let request = match layout {
                Layout::OneNode(processors) if wanted > processors => {
                    workload.never_runnable += 1;
                    continue;
                }
                Layout::OneNode(_) => Request { tasks: Some(1), cpus_per_task: wanted, ..Request::default() },
                Layout::Tasks => Request { tasks: Some(wanted), ..Request::default() },
            };
            let mut spec = spec(&job.number.to_string(), DEFAULT_NAME, request);
            spec.owner.uid = Uid(u32::try_from(job.user).unwrap_or(0));
            let (submit, run) = (Timestamp(job.submit * 1000), Span::seconds(job.run));
            workload.jobs.push(shaper.job(spec, submit, run, Span::seconds(job.estimate)));
        }
        workload.jobs.sort_by_key(|job| job.submit);
        Ok(workload)
    }

    /// The jobs of a Philly log; its virtual clusters are the queues. A job of n GPUs is n tasks of one GPU and one
    /// core, at most [`GPUS_PER_NODE`] of them on a node and on as few nodes as that takes. Its time limit is its run time.
    pub fn of_philly(log: &[PhillyJob], shaper: &mut Shaper) -> Self {
        let mut workload = Self { unit: Unit::MilliGpus, ..Self::default() };
        let first = log.first().map_or(0, |job| job.submit);
        for job in log {
            if job.run <= 0 || job.gpus == 0 {
                workload.dropped += 1;
                continue;
            }
            let nodes = job.gpus.div_ceil(GPUS_PER_NODE);
            let request = Request {
                nodes_min: nodes,
                nodes_max: Some(nodes),
                tasks: Some(job.gpus),
                tasks_per_node: Some(GPUS_PER_NODE.min(job.gpus)),
                gpus: GpuRequest::PerTask(1),
                ..Request::default()
            };
            let spec = spec(&job.line.to_string(), &job.cluster, request);
            let (submit, run) = (Timestamp((job.submit - first) * 1000), Span::seconds(job.run));
            workload.jobs.push(shaper.job(spec, submit, run, run));
        }
        workload.jobs.sort_by_key(|job| job.submit);
        workload
    }

    /// The pods of an openb list as jobs, each with its run time as its time limit.
    pub fn of_pods(pods: &[Pod], shaper: &mut Shaper) -> Self {
        let mut workload = Self { unit: Unit::MilliGpus, ..Self::default() };
        for pod in pods {
            if pod.run == 0 {
                workload.dropped += 1;
                continue;
            }
            let (submit, run) = (Timestamp(pod.created * 1000), Span::seconds(pod.run));
            workload.jobs.push(shaper.job(spec(&pod.name, DEFAULT_NAME, pod.request()), submit, run, run));
        }
        workload.jobs.sort_by_key(|job| job.submit);
        workload
    }

    /// The jobs of a log of events, from the first submit on. Dependencies, holds and qualities of service
    /// are not replayed; a begin time counts as the time of submission.
    pub fn of_events(log: &EventLog, shaper: &mut Shaper) -> Self {
        let mut workload = Self::default();
        let first = log.jobs.iter().map(|job| job.submit).min().unwrap_or(Timestamp(0));
        let gpus = |job: &Logged| job.spec.request.total().get(ResourceId::GPU) > 0;
        if !log.jobs.is_empty() && log.jobs.iter().all(gpus) {
            workload.unit = Unit::MilliGpus;
        }
        for job in &log.jobs {
            let Some(run) = job.run.filter(|run| run.0 > 0) else {
                workload.dropped += 1;
                continue;
            };
            let mut spec = JobSpec { time_limit: None, payload: payload(), ..(*job.spec).clone() };
            (spec.begin, spec.array, spec.hold, spec.qos) = (None, None, false, None);
            (spec.dependencies, spec.dependency_any) = (Vec::new(), false);
            let submit = Timestamp(job.submit.0 - first.0);
            workload.jobs.push(shaper.job(spec, submit, run, job.spec.time_limit.unwrap_or(run)));
        }
        workload.jobs.sort_by_key(|job| job.submit);
        workload
    }

    /// Leaves out and counts the jobs that these nodes could never run.
    pub fn leave_out_impossible(&mut self, cluster: &SimCluster) {
        let mut empty = Cluster::new();
        for (id, node) in cluster.nodes.iter().enumerate() {
            let view = NodeView {
                name: node.name.clone(),
                capacity: node.capacity.clone(),
                features: node.features.clone(),
                devices: node.devices.iter().map(|d| d.kind.clone()).collect(),
                out: Vec::new(),
                up: true,
            };
            empty.set_node(NodeId(id as u32), view);
        }
        let before = self.jobs.len();
        self.jobs.retain(|job| {
            let queue = cluster.queues.iter().find(|(queue, _)| queue.name == job.spec.queue);
            let queue_features = queue.map(|(queue, _)| queue.node_features.clone()).unwrap_or_default();
            let class = empty.intern(&Need { request: job.spec.request.clone(), queue_features });
            empty.ever(class).is_ok()
        });
        self.never_runnable += (before - self.jobs.len()) as u32;
    }
}

impl Pod {
    /// The pod as a job that is there from the beginning and stays.
    pub fn at_once(&self) -> SimJob {
        let run = Span(TIME_LIMIT_MS);
        Shaper::plain(Estimates::Max).job(spec(&self.name, DEFAULT_NAME, self.request()), Timestamp(0), run, run)
    }
}

/// GPUs of the largest servers of the Philly cluster: larger jobs had several servers.
pub const GPUS_PER_NODE: u32 = 8;

pub(crate) fn payload() -> Payload {
    Payload::Argv(vec!["true".into()])
}

fn spec(name: &str, queue: &str, request: Request) -> JobSpec {
    let mut spec = JobSpec::new(name, payload());
    (spec.queue, spec.account) = (queue.to_owned(), DEFAULT_NAME.into());
    spec.request = request.into();
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swf::SwfJob;

    fn job(submit: i64, run: i64, processors: i64, estimate: i64) -> SwfJob {
        SwfJob { line: 1, number: submit, submit, run, allocated: -1, requested: processors, estimate, user: 7 }
    }

    fn workload(jobs: Vec<SwfJob>, estimates: Estimates) -> Workload {
        Workload::of_swf(&Swf { header: Vec::new(), jobs }, 8, estimates).unwrap()
    }

    #[test]
    fn estimates_are_applied_as_defined() {
        assert_eq!(Estimates::Max.apply(10, 4), (10, 10));
        assert_eq!(Estimates::Max.apply(10, 40), (10, 40));
        assert_eq!(Estimates::Kill.apply(10, 4), (4, 4));
        assert_eq!(Estimates::Kill.apply(10, 40), (10, 40));
        assert_eq!(Estimates::Exact.apply(10, 40), (10, 10));
        assert_eq!(Estimates::Kill.apply(10, -1), (10, 10));
    }

    #[test]
    fn jobs_are_sorted_and_those_that_cannot_be_are_counted() {
        let log = vec![job(9, 5, 1, 5), job(3, 5, 8, 2), job(1, 0, 1, 5), job(2, 5, -1, 5), job(4, 5, 9, 5)];
        let made = workload(log, Estimates::Kill);
        let order: Vec<_> = made.jobs.iter().map(|j| (j.submit.0, j.run.0, j.ends)).collect();
        assert_eq!(order, [(3000, 2000, EndCause::TimeLimit), (9000, 5000, EndCause::Exited)]);
        assert_eq!((made.dropped, made.never_runnable), (2, 1));
        assert_eq!(made.jobs[0].spec.request.cpu_count(), 8);
        assert_eq!(made.jobs[0].spec.owner.uid, Uid(7));
    }

    #[test]
    fn a_job_that_came_before_the_log_is_an_error() {
        let log = Swf { header: Vec::new(), jobs: vec![job(-1, 5, 1, 5)] };
        let error = Workload::of_swf(&log, 8, Estimates::Max).unwrap_err();
        assert!(error.to_string().contains("line 1: job -1"), "{error}");
    }
}
