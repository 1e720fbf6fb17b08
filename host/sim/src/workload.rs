//! What is simulated: jobs with the time they really took, in the order in which they arrive.

use crate::swf::Swf;
use ephor_model::{EndCause, JobSpec, Payload, Request, Span, Timestamp, Uid};
use std::sync::Arc;

/// The queue and the account that every job of a log without queues is in.
pub const DEFAULT_NAME: &str = "default";

/// What is taken for the users' estimates of run times, where a log's own may be too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// The larger of estimate and run time: nobody is ended.
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

    /// Run time and time limit of a job that ran `run` seconds. An estimate that is not known is the run time.
    fn apply(self, run: i64, estimate: i64) -> (i64, i64) {
        let estimate = if estimate > 0 { estimate } else { run };
        match self {
            Self::Max => (run, estimate.max(run)),
            Self::Kill => (run.min(estimate), estimate),
            Self::Exact => (run, run),
        }
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

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The jobs, by time of arrival; among equal times in the order of the log.
    pub jobs: Vec<SimJob>,
    /// Entries of the log that are no jobs: without a run time or without processors.
    pub dropped: u32,
    /// Jobs that ask for more than the cluster has. They are left out, as admission would refuse them.
    pub never_runnable: u32,
}

/// A job of a log that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: job {number} has a submit time of {submit} seconds; times count from the start of the log")]
pub struct BadSubmit {
    line: u32,
    number: i64,
    submit: i64,
}

impl Workload {
    /// The jobs of a log for a cluster of one node with that many processors.
    ///
    /// # Errors
    /// A job whose submit time is not known.
    pub fn of_swf(log: &Swf, processors: u32, estimates: Estimates) -> Result<Self, BadSubmit> {
        let mut workload = Self::default();
        for job in &log.jobs {
            let (true, Some(wanted)) = (job.run > 0, job.processors()) else {
                workload.dropped += 1;
                continue;
            };
            if job.submit < 0 {
                return Err(BadSubmit { line: job.line, number: job.number, submit: job.submit });
            }
            if wanted > processors {
                workload.never_runnable += 1;
                continue;
            }
            let (run, limit) = estimates.apply(job.run, job.estimate);
            let mut spec = JobSpec::new(&job.number.to_string(), Payload::Argv(vec!["true".into()]));
            spec.queue = DEFAULT_NAME.into();
            spec.account = DEFAULT_NAME.into();
            spec.owner.uid = Uid(u32::try_from(job.user).unwrap_or(0));
            spec.time_limit = Some(Span::seconds(limit));
            spec.request = Request { tasks: Some(1), cpus_per_task: wanted, ..Request::default() };
            workload.jobs.push(SimJob {
                submit: Timestamp(job.submit * 1000),
                run: Span::seconds(run),
                ends: if run < job.run { EndCause::TimeLimit } else { EndCause::Exited },
                spec: Arc::new(spec),
            });
        }
        workload.jobs.sort_by_key(|job| job.submit);
        Ok(workload)
    }
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
