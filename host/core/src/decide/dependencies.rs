//! What jobs wait for: reading it at submission, and deciding it when other jobs start and end.

use super::Tx;
use crate::command::{Refusal, RefusalKind};
use crate::event::Event;
use crate::records::{Job, dependency_outcome};
use ephor_model::{Dependency, DependencyKind, JobId, JobSpec, JobState, limits};
use std::collections::BTreeSet;

/// How jobs ended that only the history knows, by the dependency that asks for them.
pub(super) type KnownEnds = [(Dependency, JobState)];

/// The dependencies of a job that are still open, and whether one can never be satisfied.
pub(super) fn open(tx: &Tx<'_>, spec: &JobSpec, known_ends: &KnownEnds) -> Result<(Vec<Dependency>, bool), Refusal> {
    let corresponding = spec.dependencies.iter().filter(|d| d.kind == DependencyKind::AfterCorr).count();
    if corresponding > limits::CORRESPONDING {
        let text = format!("{corresponding} aftercorr dependencies are more than {}", limits::CORRESPONDING);
        return Err(Refusal::new(RefusalKind::Limit, text));
    }
    if corresponding > 0 && spec.dependency_any && spec.dependencies.len() > 1 {
        let text = "aftercorr cannot stand beside others with ? (any one); use , (all)";
        return Err(Refusal::new(RefusalKind::Invalid, text));
    }
    let mut waiting = Vec::new();
    let mut met = 0usize;
    let mut impossible = 0usize;
    for dependency in &spec.dependencies {
        let outcome = match resolve(tx, spec, *dependency)? {
            Some(resolved) => match tx.outcome(resolved, None, spec) {
                None => {
                    waiting.push(resolved);
                    continue;
                }
                decided => decided,
            },
            None => known_ends.iter().find(|(asked, _)| asked == dependency).map(|(_, end)| match dependency.kind {
                DependencyKind::After | DependencyKind::AfterAny | DependencyKind::Singleton => true,
                DependencyKind::AfterOk | DependencyKind::AfterCorr => *end == JobState::Completed,
                DependencyKind::AfterNotOk => *end != JobState::Completed,
            }),
        };
        match outcome {
            Some(true) => met += 1,
            Some(false) => impossible += 1,
            None => {
                let what = dependency.index.map_or_else(
                    || format!("job {}", dependency.job),
                    |index| format!("element {index} of job {}", dependency.job),
                );
                let text = format!("the job depends on {what}, which is not known here");
                return Err(Refusal::new(RefusalKind::NotFound, text));
            }
        }
    }
    Ok(match spec.dependency_any {
        true if met > 0 => (Vec::new(), false),
        true => {
            let never = waiting.is_empty() && impossible > 0;
            (waiting, never)
        }
        false => (waiting, impossible > 0),
    })
}

/// The dependency in terms of ids: of one element its own; `None`: the live state does not know that job.
fn resolve(tx: &Tx<'_>, spec: &JobSpec, dependency: Dependency) -> Result<Option<Dependency>, Refusal> {
    if dependency.kind == DependencyKind::Singleton {
        return Ok(Some(dependency));
    }
    let Some((entry, ordinal)) = tx.state.find(dependency.job) else { return Ok(None) };
    let awaited = &entry.job.spec.array;
    if let Some(index) = dependency.index {
        let array = awaited.as_ref().filter(|_| ordinal == 0);
        let Some(at) = array.and_then(|a| a.ordinal(index)) else {
            let text =
                format!("the job depends on element {index} of job {}, which has no such element", dependency.job);
            return Err(Refusal::new(RefusalKind::NotFound, text));
        };
        let job = JobId(entry.job.id.0 + u64::from(at));
        return Ok(Some(Dependency { job, ..dependency }));
    }
    if dependency.kind != DependencyKind::AfterCorr {
        return Ok(Some(dependency));
    }
    let (Some(array), Some(awaited), 0) = (&spec.array, awaited, ordinal) else {
        // Without elements on both sides the whole corresponds to the whole.
        return Ok(Some(Dependency { kind: DependencyKind::AfterOk, ..dependency }));
    };
    let alone = (0..array.count()).filter_map(|o| array.index(o)).find(|index| awaited.ordinal(*index).is_none());
    match alone {
        None => Ok(Some(dependency)),
        Some(index) => {
            let text = format!("aftercorr: job {} has no element {index} for that of this array", dependency.job);
            Err(Refusal::new(RefusalKind::Invalid, text))
        }
    }
}

impl Tx<'_> {
    /// Decides the dependencies of those who wait for that job (any element of it), after it started or ended.
    pub(super) fn settle_dependents(&mut self, id: JobId) {
        let Some((entry, _)) = self.state.find(id) else { return };
        let (job, over) = (entry.job.clone(), entry.unfinished == 0);
        // Waiting on the array (its first id) and on this one element are both possible.
        for awaited in BTreeSet::from([job.id, id]) {
            let Some(waiters) = self.state.derived.dependents.get(&awaited).cloned() else { continue };
            for waiter in waiters {
                self.settle_corresponding(waiter, &job, Some(id));
                self.settle(waiter);
            }
        }
        // Of several who must be alone only the first can be next.
        if over && let Some(next) = self.state.next_of_name(&job) {
            self.settle(next);
        }
    }

    /// Decides what can be decided for a new or changed job beyond what [`open`] found: element by element.
    pub(super) fn settle_elements(&mut self, first: JobId) {
        let Some(job) = self.state.jobs.get(&first).map(|entry| entry.job.clone()) else { return };
        for dependency in job.waiting.iter().filter(|d| d.kind == DependencyKind::AfterCorr) {
            let Some(awaited) = self.state.jobs.get(&dependency.job).map(|entry| entry.job.clone()) else { continue };
            self.settle_corresponding(first, &awaited, None);
        }
    }

    /// Decides elements of `waiter` whose counterparts in `awaited` have ended: all of them, or that of one element.
    fn settle_corresponding(&mut self, waiter: JobId, awaited: &Job, only: Option<JobId>) {
        let Some(entry) = self.state.jobs.get(&waiter) else { return };
        let waits = |d: &Dependency| d.kind == DependencyKind::AfterCorr && d.job == awaited.id;
        let job = entry.job.clone();
        let (Some(ours), Some(theirs)) = (&job.spec.array, &awaited.spec.array) else { return };
        if !job.waiting.iter().any(waits) {
            return;
        }
        let place = job.corresponding_place(awaited.id);
        let ordinals = match only {
            Some(id) => {
                let ordinal = (id.0 - awaited.id.0) as u32;
                ordinal..ordinal + 1
            }
            None => 0..theirs.count(),
        };
        for ordinal in ordinals {
            let id = |first: JobId, ordinal: u32| JobId(first.0 + u64::from(ordinal));
            let counterpart = theirs.index(ordinal).and_then(|index| ours.ordinal(index));
            let Some(element) = counterpart.map(|o| id(waiter, o)) else { continue };
            let Some((_, theirs)) = self.state.element(id(awaited.id, ordinal)) else { continue };
            let Some(satisfied) = dependency_outcome(DependencyKind::AfterOk, theirs) else { continue };
            let open = self.state.element(element).is_some_and(|(_, e)| !e.never && !e.has_met(place));
            if open {
                self.emit(Event::ElementDecided { job: element, awaited: awaited.id, satisfied });
            }
        }
    }

    /// Decides what can be decided of what a job waits for.
    pub(super) fn settle(&mut self, waiter: JobId) {
        let mut index = 0;
        while let Some(entry) = self.state.jobs.get(&waiter) {
            let Some(dependency) = entry.job.waiting.get(index) else { break };
            match self.outcome(*dependency, Some(waiter), &entry.job.spec) {
                None => index += 1,
                Some(satisfied) => {
                    self.emit(Event::DependencyDecided { job: waiter, index: index as u32, satisfied });
                }
            }
        }
    }

    /// Of a resolved dependency, over all elements where the first id of an array is meant: satisfied when all are,
    /// impossible when one is. `waiter` is the job that waits, once it is there.
    fn outcome(&self, dependency: Dependency, waiter: Option<JobId>, spec: &JobSpec) -> Option<bool> {
        if dependency.kind == DependencyKind::Singleton {
            let alone = match waiter {
                Some(waiter) => self.state.is_first_of_name(waiter),
                None => !self.state.has_unfinished_of_name(spec.owner.uid, &spec.name),
            };
            return alone.then_some(true);
        }
        let Some((entry, ordinal)) = self.state.find(dependency.job) else { return Some(false) };
        if dependency.kind == DependencyKind::AfterCorr {
            // Elements are decided one by one; when all are, there is nothing left to wait for.
            return (entry.unfinished == 0 && waiter.is_some()).then_some(true);
        }
        if dependency.index.is_some() || ordinal != 0 || entry.elements.len() == 1 {
            return dependency_outcome(dependency.kind, entry.elements.get(ordinal)?);
        }
        let mut open = false;
        for element in entry.elements.iter() {
            match dependency_outcome(dependency.kind, element) {
                Some(false) if dependency.kind == DependencyKind::AfterOk => return Some(false),
                Some(true) if dependency.kind == DependencyKind::AfterNotOk => return Some(true),
                None => open = true,
                Some(_) => {}
            }
        }
        match (open, dependency.kind) {
            (true, _) => None,
            // Every element succeeded.
            (false, DependencyKind::AfterNotOk) => Some(false),
            (false, _) => Some(true),
        }
    }
}
