//! Jobs of the contract as the rows that Slurm's commands show.

use crate::connect::Controller;
use ephor_model::{JobState, Request, Span, Timestamp};
use ephor_proto::convert::request_from_wire;
use ephor_proto::v1::{Dependency, Empty, Job, JobQuery, JobRef, QueueView};
use ephor_slurm::job::{ArrayPlace, DependencyView, JobView};
use ephor_slurm::squeue::JobId;
use nix::unistd::{Gid, Group, Uid, User};
use std::collections::{BTreeMap, BTreeSet};

/// Makes rows; remembers whom it has asked about.
#[derive(Default)]
pub struct Rows {
    groups: BTreeMap<u32, (String, u32)>,
}

impl Rows {
    /// A job as a row. What needs another question to the controller is left out.
    pub fn row(&mut self, job: Job) -> JobView {
        let (group, gid) = self.group(job.uid);
        let array = job.array_id.map(|id| ArrayPlace { id, index: job.array_index, pending: job.array_pending });
        let dependency = |d: Dependency| DependencyView { kind: d.kind, job: d.job, index: d.index, array: false };
        let request = job.request.unwrap_or_default();
        JobView {
            id: job.id,
            array,
            name: job.name,
            user: job.user,
            uid: job.uid,
            group,
            gid,
            account: job.account,
            queue: job.queue,
            qos: job.qos,
            state: JobState::parse(&job.state).unwrap_or(JobState::Pending),
            reason: job.reason,
            submitted: Timestamp(job.submitted),
            eligible: job.eligible.map(Timestamp),
            begin: job.begin.map(Timestamp),
            started: job.started.map(Timestamp),
            ended: job.ended.map(Timestamp),
            expected_end: job.expected_end.map(Timestamp),
            promised_start: job.promised_start.map(Timestamp),
            deadline: job.deadline.map(Timestamp),
            time_limit: job.time_limit.map(Span),
            attempts: job.attempts,
            exit_code: job.exit_code,
            exit_signal: job.exit_signal,
            nodes: job.nodes,
            cpu_ms: job.cpu_ms,
            peak_mem: job.peak_mem_mib,
            // The controller sends what it has checked itself.
            request: request_from_wire(request).unwrap_or_else(|_| Request::default()),
            cpu_milli: job.cpus,
            // 0 is a held job to users of Slurm.
            priority: job.priority.max(1),
            nice: job.nice,
            work_dir: job.work_dir,
            stdin: job.stdin,
            stdout: job.stdout,
            stderr: Some(job.stderr).filter(|path| !path.is_empty()),
            command: Some(job.command).filter(|command| !command.is_empty()),
            dependencies: job.dependencies.into_iter().map(dependency).collect(),
            dependency_any: job.dependency_any,
            comment: job.comment,
            requeue: job.requeue,
            licences: job.licences.into_iter().map(|licence| (licence.name, licence.count)).collect(),
            reservation: job.reservation,
            words: job.words.into_iter().map(|word| (word.name, word.text)).collect(),
            node_cpus: None,
            default_mem_per_cpu: None,
        }
    }

    /// The first group of a user.
    fn group(&mut self, uid: u32) -> (String, u32) {
        let look = || {
            let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
            let gid = user.map_or(uid, |user| user.gid.as_raw());
            let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
            (group.map_or_else(|| gid.to_string(), |group| group.name), gid)
        };
        self.groups.entry(uid).or_insert_with(look).clone()
    }
}

/// Asks for what rows lack: which jobs they depend on are arrays, and for waiting jobs what nodes and queues are like.
///
/// # Errors
/// The controller refuses, or does not answer.
pub fn complete(rows: &mut [JobView], controller: &mut Controller) -> anyhow::Result<()> {
    let wanted: BTreeSet<u64> = rows
        .iter()
        .filter(|row| row.is_pending())
        .flat_map(|row| row.dependencies.iter().filter(|d| d.job > 0 && d.index.is_none()).map(|d| d.job))
        .collect();
    if !wanted.is_empty() {
        let jobs = wanted.iter().map(|job| JobRef { job: *job, index: None }).collect();
        let query = JobQuery { jobs, finished: true, ..JobQuery::default() };
        let list = controller.call(async |c| c.list_jobs(query).await)?;
        let arrays: BTreeSet<u64> = list.jobs.iter().filter_map(|job| job.array_id).collect();
        for dependency in rows.iter_mut().flat_map(|row| &mut row.dependencies) {
            dependency.array = arrays.contains(&dependency.job);
        }
    }
    let counts = |row: &JobView| row.request.tasks.is_some() && row.request.nodes_max.is_none();
    let needs = |row: &&JobView| row.is_pending() && (counts(row) || row.word("MemPerTres").is_some());
    if rows.iter().any(|row| needs(&row)) {
        let nodes = controller.call(async |c| c.list_nodes(Empty {}).await)?.nodes;
        let queues = controller.call(async |c| c.list_queues(Empty {}).await)?.queues;
        for row in rows.iter_mut() {
            let queue = queues.iter().filter_map(|view: &QueueView| view.queue.as_ref()).find(|q| q.name == row.queue);
            let Some(queue) = queue else { continue };
            let inside = nodes.iter().filter(|node| queue.node_features.iter().all(|f| node.features.contains(f)));
            let cores = |node: &ephor_proto::v1::Node| {
                let cpu = node.capacity.iter().find(|amount| amount.resource == "cpu");
                cpu.and_then(|amount| u32::try_from(amount.value / 1000).ok()).unwrap_or(0)
            };
            row.node_cpus = inside.map(cores).max();
            row.default_mem_per_cpu = queue.default_mem_per_cpu;
        }
    }
    Ok(())
}

/// An id for the contract.
pub fn reference(id: JobId) -> JobRef {
    JobRef { job: id.job, index: id.index }
}
