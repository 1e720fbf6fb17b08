//! The tables of a cycle as integer columns.

use super::devices::DEVICES;
use super::{Cycle, CycleRefusal};
use crate::records::{Job, JobEntry};
use ephor_model::{Amounts, JobId, QueueId, ResourceId};

const JOBS: &[&str] = &[
    "id",
    "class",
    "queue",
    "account",
    "user",
    "priority",
    "submitted",
    "eligible",
    "requeues",
    "time-limit",
    "tasks",
    "nodes",
    "cpu",
    "mem",
    "gpu",
    "preemptible",
    "nice",
    "promised",
    "qos-priority",
];
const ATTEMPTS: &[&str] = &[
    "job",
    "queue",
    "account",
    "user",
    "priority",
    "started",
    "expected-end",
    "nodes",
    "cpu",
    "mem",
    "gpu",
    "preemptible",
    "releasing-since",
    "release",
    "tasks",
    "nice",
    "submitted",
    "qos-priority",
];
const QUEUES: &[&str] = &[
    "id",
    "parent",
    "priority",
    "weight",
    "quota.cpu",
    "quota.mem",
    "quota.gpu",
    "limit.cpu",
    "limit.mem",
    "limit.gpu",
    "allocated.cpu",
    "allocated.mem",
    "allocated.gpu",
    "demand.cpu",
    "demand.mem",
    "demand.gpu",
    "usage.cpu",
    "usage.mem",
    "usage.gpu",
];
const NODES: &[&str] = &["id", "up", "cpu", "mem", "gpu", "free.cpu", "free.mem", "free.gpu"];
const POOLS: &[&str] = &["used", "ceiling"];
const RESERVATIONS: &[&str] = &["job", "start", "end", "nodes", "durable"];

fn unknown_table(table: &str) -> CycleRefusal {
    CycleRefusal::Other(format!(
        "there is no table '{table}'; there are: jobs, attempts, queues, nodes, devices, reservations, pools"
    ))
}

impl Cycle {
    /// How many rows a table has.
    ///
    /// # Errors
    /// An unknown table; too little work left.
    pub fn rows(&mut self, table: &str) -> Result<u32, CycleRefusal> {
        let rows = match table {
            "jobs" => self.replica.eligible_count(),
            "attempts" => self.state.attempts.len(),
            "queues" => self.queues.len(),
            "nodes" => self.state.nodes.len(),
            "pools" => {
                self.hand_out_pools()?;
                self.book.pools().len()
            }
            "devices" => self.devices().count(),
            "reservations" => {
                self.list_promises();
                self.reservations.len()
            }
            _ => return Err(unknown_table(table)),
        };
        Ok(rows as u32)
    }

    /// A column for the rows asked for, or for all.
    ///
    /// # Errors
    /// An unknown table, column or row; too little work left.
    pub fn column(&mut self, table: &str, name: &str, rows: Option<&[u32]>) -> Result<Vec<i64>, CycleRefusal> {
        let known = match table {
            "jobs" => JOBS,
            "attempts" => ATTEMPTS,
            "queues" => QUEUES,
            "nodes" => NODES,
            "pools" => POOLS,
            "devices" => DEVICES,
            "reservations" => {
                self.list_promises();
                RESERVATIONS
            }
            _ => return Err(unknown_table(table)),
        };
        if !known.contains(&name) {
            return Err(CycleRefusal::Other(format!(
                "table {table} has no column '{name}'; it has: {}",
                known.join(", ")
            )));
        }
        let all;
        let rows = match rows {
            Some(rows) => rows,
            None => {
                if table == "jobs" {
                    self.hand_out_all();
                }
                all = (0..self.rows(table)?).collect::<Vec<u32>>();
                &all
            }
        };
        self.spend(1 + rows.len() as u64)?;
        match table {
            "jobs" => self.job_column(name, rows),
            "attempts" => rows.iter().map(|r| self.attempt_cell(name, *r)).collect(),
            "queues" => self.queue_column(name, rows),
            "pools" => rows.iter().map(|r| self.pool_cell(name, *r)).collect(),
            "devices" => self.device_column(name, rows),
            "reservations" => rows.iter().map(|r| self.reservation_cell(name, *r)).collect(),
            _ => rows.iter().map(|r| self.node_cell(name, *r)).collect(),
        }
    }

    /// Gives every eligible job a row, so that whole columns have an order.
    fn hand_out_all(&mut self) {
        let jobs: Vec<JobId> = self.replica.order_after(None).map(|(rank, _)| rank.3).collect();
        for job in jobs {
            self.row_of(job);
        }
    }

    fn job_column(&self, name: &str, rows: &[u32]) -> Result<Vec<i64>, CycleRefusal> {
        rows.iter()
            .map(|row| {
                let (id, entry, element) = self.job_entry(*row)?;
                let (job, request) = (&entry.job, &entry.job.spec.request);
                let total = || request.total();
                Ok(match name {
                    "id" => id.0 as i64,
                    "class" => self.replica.pending(id).map_or(-1, |p| i64::from(p.class.0)),
                    "queue" => self.queue_row(job.queue),
                    "account" => i64::from(job.account.0),
                    "user" => i64::from(job.spec.owner.uid.0),
                    "priority" => self.replica.priority(id),
                    "submitted" => job.submitted.0,
                    "eligible" => element.eligible.unwrap_or(job.submitted).0,
                    "requeues" => i64::from(element.attempts),
                    "time-limit" => job.spec.time_limit.map_or(i64::MAX, |t| t.0),
                    "tasks" => i64::from(request.task_count()),
                    "nodes" => i64::from(request.nodes_min),
                    "cpu" => total().get(ResourceId::CPU),
                    "mem" => total().get(ResourceId::MEM),
                    "gpu" => total().get(ResourceId::GPU),
                    "preemptible" => i64::from(job.spec.requeue.unwrap_or(false)),
                    "promised" => self.promised_start(id).map_or(-1, |at| at.0),
                    "qos-priority" => self.qos_priority(job),
                    _ => job.spec.nice,
                })
            })
            .collect()
    }

    fn attempt_cell(&self, name: &str, row: u32) -> Result<i64, CycleRefusal> {
        let (attempt, JobEntry { job, .. }) = self.attempt_entry(row)?;
        let held = || attempt.allocation.total();
        Ok(match name {
            "job" => attempt.key.job.0 as i64,
            "queue" => self.queue_row(job.queue),
            "account" => i64::from(job.account.0),
            "user" => i64::from(job.spec.owner.uid.0),
            "priority" => self.state.queues.get(&job.queue).map_or(0, |q| q.priority),
            "started" => attempt.started.0,
            "expected-end" => attempt.expected_end.0,
            "nodes" => attempt.allocation.parts.len() as i64,
            "cpu" => held().get(ResourceId::CPU),
            "mem" => held().get(ResourceId::MEM),
            "gpu" => held().get(ResourceId::GPU),
            "preemptible" => i64::from(job.spec.requeue.unwrap_or(false)),
            "tasks" => attempt.allocation.parts.iter().map(|part| i64::from(part.tasks)).sum(),
            "nice" => job.spec.nice,
            "submitted" => job.submitted.0,
            "qos-priority" => self.qos_priority(job),
            "release" => self.replica.cluster.expected_end(attempt.key.job).unwrap_or(attempt.expected_end).0,
            // This cycle may have told it to.
            _ if self.evicted.contains_key(&attempt.key.job) => self.now.0,
            _ => attempt.told_to_end().map_or(-1, |since| since.0),
        })
    }

    /// The priority of a job's QOS; 0 where it has none.
    fn qos_priority(&self, job: &Job) -> i64 {
        job.qos.and_then(|id| self.state.qos.get(&id)).map_or(0, |qos| qos.priority)
    }

    fn node_cell(&self, name: &str, row: u32) -> Result<i64, CycleRefusal> {
        let unknown = || CycleRefusal::Other(format!("table nodes has no row {row}"));
        let id = self.node_id(row).ok_or_else(unknown)?;
        let node = self.state.nodes.get(&id).ok_or_else(unknown)?;
        let free = || self.replica.cluster.free(id).unwrap_or_default();
        Ok(match name {
            "id" => i64::from(id.0),
            "up" => i64::from(node.takes_jobs()),
            "cpu" => node.capacity().get(ResourceId::CPU),
            "mem" => node.capacity().get(ResourceId::MEM),
            "gpu" => node.capacity().get(ResourceId::GPU),
            "free.cpu" => free().get(ResourceId::CPU),
            "free.mem" => free().get(ResourceId::MEM),
            _ => free().get(ResourceId::GPU),
        })
    }

    fn queue_row(&self, queue: QueueId) -> i64 {
        self.queues.binary_search(&queue).map_or(-1, |i| i as i64)
    }

    fn queue_column(&self, name: &str, rows: &[u32]) -> Result<Vec<i64>, CycleRefusal> {
        let (what, resource) = match name.split_once('.') {
            Some((what, "cpu")) => (what, ResourceId::CPU),
            Some((what, "mem")) => (what, ResourceId::MEM),
            Some((what, _)) => (what, ResourceId::GPU),
            None => (name, ResourceId::CPU),
        };
        let sums: Vec<Amounts> = match what {
            "allocated" | "demand" => self.queue_sums(what == "demand"),
            "usage" => self.up_the_tree(self.queues.iter().map(|id| (*id, self.state.mean_use(*id, self.now)))),
            _ => Vec::new(),
        };
        rows.iter()
            .map(|row| {
                let unknown = || CycleRefusal::Other(format!("table queues has no row {row}"));
                let id = self.queues.get(*row as usize).ok_or_else(unknown)?;
                let queue = self.state.queues.get(id).ok_or_else(unknown)?;
                Ok(match what {
                    "id" => i64::from(id.0),
                    "parent" => queue.parent.map_or(-1, |p| self.queue_row(p)),
                    "priority" => queue.priority,
                    "weight" => queue.weight,
                    "quota" => queue.quota.get(resource),
                    "limit" if queue.limit.iter().any(|(r, _)| r == resource) => queue.limit.get(resource),
                    "limit" => -1,
                    _ => sums.get(*row as usize).map_or(0, |s| s.get(resource)),
                })
            })
            .collect()
    }

    /// What each queue's jobs hold (and ask for, with `demand`), summed up the tree.
    fn queue_sums(&self, demand: bool) -> Vec<Amounts> {
        let held = self.state.attempts.values().filter_map(|attempt| {
            let (entry, _) = self.state.element(attempt.key.job)?;
            Some((entry.job.queue, attempt.allocation.total()))
        });
        let waits = self.replica.asked_for().filter(|_| demand);
        self.up_the_tree(held.chain(waits))
    }

    /// Sums of what belongs to single queues: each counts for its queue and for all above.
    fn up_the_tree(&self, amounts: impl Iterator<Item = (QueueId, Amounts)>) -> Vec<Amounts> {
        let mut sums = vec![Amounts::new(); self.queues.len()];
        for (queue, amounts) in amounts {
            let mut at = Some(queue);
            // A tree of n queues is at most n deep.
            for _ in 0..self.queues.len() {
                let Some(id) = at else { break };
                if let Ok(row) = self.queues.binary_search(&id) {
                    sums[row].add(&amounts);
                }
                at = self.state.queues.get(&id).and_then(|q| q.parent);
            }
        }
        sums
    }
}
