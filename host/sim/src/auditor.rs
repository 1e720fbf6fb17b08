//! Checks over an event log that nothing was granted twice and that no attempt started twice (laws 7 and 8).
//!
//! It shares no code with scheduler, placement or fold: it keeps its own books, from the events alone.

use ephor_core::event::{Event, Stamped};
use ephor_core::records::Job;
use ephor_model::{Allocation, Amounts, AttemptKey, JobId, NodeId, ResourceId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Findings that are kept in words; more are only counted.
const KEPT: usize = 100;

/// See the module.
#[derive(Debug, Default)]
pub struct Auditor {
    now: Option<Timestamp>,
    nodes: BTreeMap<NodeId, Books>,
    jobs: BTreeMap<JobId, Known>,
    live: BTreeMap<JobId, Live>,
    findings: Vec<String>,
    count: u64,
}

/// What one node has and has given away.
#[derive(Debug, Default)]
struct Books {
    found: BTreeMap<ResourceId, i64>,
    extra: BTreeMap<ResourceId, i64>,
    devices: usize,
    /// Their uuids, by index.
    names: Vec<String>,
    /// Those out of service; whether that outlasts a boot, since people did it.
    out: BTreeMap<u32, bool>,
    boot_id: String,
    takes_jobs: bool,
    drained: bool,
    given: BTreeMap<ResourceId, i64>,
    /// Who holds how many thousandths of each device.
    holders: BTreeMap<u32, BTreeMap<JobId, i64>>,
}

/// What must hold of a job when it starts.
#[derive(Debug)]
struct Known {
    submitted: Timestamp,
    begin: Timestamp,
    millicores: i64,
    attempts: u32,
}

#[derive(Debug)]
struct Live {
    key: AttemptKey,
    holds: Arc<Allocation>,
}

impl Auditor {
    /// What was found wrong, in the order of the log: at most the first 100.
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// How much was found wrong.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes note of the next events of the log.
    pub fn observe(&mut self, events: &[Stamped]) {
        events.iter().for_each(|stamped| self.event(stamped));
    }

    fn event(&mut self, stamped: &Stamped) {
        let at = stamped.at;
        if let Some(before) = self.now.filter(|before| *before > at) {
            self.found(at, format!("time went back from {}", before.0));
        }
        self.now = Some(at);
        match &stamped.event {
            Event::Submitted { job } => self.submitted(at, job),
            Event::Started { key, allocation, .. } => self.started(at, *key, allocation),
            Event::Began { key }
            | Event::EndOrdered { key, .. }
            | Event::Evicted { key, .. }
            | Event::LostSet { key, .. } => {
                self.must_live(at, *key);
            }
            Event::Ended { key, .. } => self.ended(at, *key),
            Event::CancelledPending { job, .. } | Event::Requeued { job } | Event::DeadlinePassed { job }
                if self.live.contains_key(job) =>
            {
                self.found(at, format!("job {job} is cancelled or requeued as if it did not run"));
            }
            Event::NodeRegistered { node, spec } => {
                let books = self.nodes.entry(*node).or_default();
                books.found = spec.capacity.iter().collect();
                books.devices = spec.devices.len();
                books.names = spec.devices.iter().map(|d| d.uuid.clone()).collect();
                // What is still wrong after a boot is said anew.
                if std::mem::replace(&mut books.boot_id, spec.boot_id.clone()) != spec.boot_id {
                    books.out.retain(|_, by_people| *by_people);
                }
                books.takes_jobs = true;
            }
            Event::NodeSet { node, extra, .. } => {
                self.nodes.entry(*node).or_default().extra = extra.iter().collect();
            }
            Event::NodeDown { node, .. } => self.nodes.entry(*node).or_default().takes_jobs = false,
            Event::NodeDrained { node, .. } => self.nodes.entry(*node).or_default().drained = true,
            Event::NodeResumed { node } => self.nodes.entry(*node).or_default().drained = false,
            Event::DeviceTaken { node, device, by, .. } => {
                self.nodes.entry(*node).or_default().set_out(device, Some(!by.is_empty()));
            }
            Event::DeviceReturned { node, device, .. } => self.nodes.entry(*node).or_default().set_out(device, None),
            Event::NodeDeleted { node } => drop(self.nodes.remove(node)),
            _ => {}
        }
    }

    fn submitted(&mut self, at: Timestamp, job: &Job) {
        let spec = &job.spec;
        for ordinal in 0..u64::from(spec.count()) {
            let id = JobId(job.id.0 + ordinal);
            let known = Known {
                submitted: at,
                begin: spec.begin.unwrap_or(at),
                millicores: amount(&spec.request.total(), ResourceId::CPU),
                attempts: 0,
            };
            if self.jobs.insert(id, known).is_some() {
                self.found(at, format!("the id {id} is given twice"));
            }
        }
    }

    fn started(&mut self, at: Timestamp, key: AttemptKey, allocation: &Arc<Allocation>) {
        match self.jobs.get_mut(&key.job) {
            None => self.found(at, format!("attempt {key} starts, but its job was never submitted")),
            Some(known) => {
                let expected = known.attempts + 1;
                known.attempts = known.attempts.max(key.number);
                let (submitted, begin, millicores) = (known.submitted, known.begin, known.millicores);
                if key.number != expected {
                    self.found(at, format!("attempt {key} starts where number {expected} is next"));
                }
                if at < submitted || at < begin {
                    self.found(at, format!("attempt {key} starts before its job was there or may begin"));
                }
                let given: i64 = allocation.parts.iter().map(|p| amount(&p.amounts, ResourceId::CPU)).sum();
                if given < millicores {
                    self.found(at, format!("attempt {key} gets {given} of the {millicores} millicores asked for"));
                }
            }
        }
        let live = Live { key, holds: allocation.clone() };
        if let Some(other) = self.live.insert(key.job, live) {
            self.found(at, format!("attempt {key} starts while {} of the same job lives", other.key));
            self.give_back(at, &other);
        }
        for part in &allocation.parts {
            let mut wrong = Vec::new();
            match self.nodes.get_mut(&part.node) {
                None => wrong.push("it is not part of the cluster".to_owned()),
                Some(books) => books.give(key.job, &part.amounts, &part.devices, &mut wrong),
            }
            for what in wrong {
                self.found(at, format!("attempt {key} starts on node {}: {what}", part.node));
            }
        }
    }

    fn ended(&mut self, at: Timestamp, key: AttemptKey) {
        if self.must_live(at, key)
            && let Some(live) = self.live.remove(&key.job)
        {
            self.give_back(at, &live);
        }
    }

    fn give_back(&mut self, at: Timestamp, live: &Live) {
        for part in &live.holds.parts {
            // A node that was deleted meanwhile has no books any more.
            let Some(books) = self.nodes.get_mut(&part.node) else { continue };
            let below = books.take_back(live.key.job, &part.amounts, &part.devices);
            if below {
                self.found(at, format!("attempt {} gives more back on node {} than was given", live.key, part.node));
            }
        }
    }

    fn must_live(&mut self, at: Timestamp, key: AttemptKey) -> bool {
        let lives = self.live.get(&key.job).is_some_and(|live| live.key == key);
        if !lives {
            self.found(at, format!("something is said of attempt {key}, which does not live"));
        }
        lives
    }

    fn found(&mut self, at: Timestamp, what: String) {
        self.count += 1;
        if self.findings.len() < KEPT {
            self.findings.push(format!("at {} ms: {what}", at.0));
        }
    }
}

impl Books {
    fn set_out(&mut self, name: &str, out: Option<bool>) {
        let named = self.names.iter().zip(0..).filter(|(uuid, _)| *uuid == name).map(|(_, index)| index);
        for index in named {
            match out {
                Some(by_people) => self.out.insert(index, by_people),
                None => self.out.remove(&index),
            };
        }
    }

    fn give(&mut self, job: JobId, amounts: &Amounts, devices: &[u32], wrong: &mut Vec<String>) {
        if !self.takes_jobs || self.drained {
            wrong.push("it takes no jobs".into());
        }
        for (resource, n) in amounts.iter() {
            let has = of(&self.found, resource) + of(&self.extra, resource);
            let given = self.given.entry(resource).or_default();
            *given += n;
            if n <= 0 || *given > has {
                wrong.push(format!("{n} of resource {} make {given} given of {has}", resource.0));
            }
        }
        for device in devices {
            if *device as usize >= self.devices {
                wrong.push(format!("it has no device {device}"));
            }
            let holders = self.holders.entry(*device).or_default();
            let held: i64 = holders.values().sum();
            if self.out.contains_key(device) {
                wrong.push(format!("device {device} is out of service"));
            }
            let milli = per_device(amounts, devices);
            if held + milli > 1000 {
                let others: Vec<String> = holders.keys().map(ToString::to_string).collect();
                wrong.push(format!("{milli} of device {device}, {held} of which job {} holds", others.join(", ")));
            }
            holders.insert(job, milli);
        }
    }

    /// Whether more came back than was given.
    fn take_back(&mut self, job: JobId, amounts: &Amounts, devices: &[u32]) -> bool {
        let mut below = false;
        for (resource, n) in amounts.iter() {
            let given = self.given.entry(resource).or_default();
            *given -= n;
            below |= *given < 0;
        }
        for device in devices {
            if let Some(holders) = self.holders.get_mut(device) {
                holders.remove(&job);
            }
        }
        below
    }
}

/// Thousandths of each device: a single one can be held in part.
fn per_device(amounts: &Amounts, devices: &[u32]) -> i64 {
    match (devices.len(), amount(amounts, ResourceId::GPU)) {
        (1, milli @ 1..1000) => milli,
        _ => 1000,
    }
}

fn of(amounts: &BTreeMap<ResourceId, i64>, resource: ResourceId) -> i64 {
    amounts.get(&resource).copied().unwrap_or(0)
}

fn amount(amounts: &Amounts, resource: ResourceId) -> i64 {
    amounts.iter().find(|(r, _)| *r == resource).map_or(0, |(_, n)| n)
}
