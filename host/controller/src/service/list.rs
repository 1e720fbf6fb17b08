//! Listing jobs: the live state and the history as one list, without repeats.

use super::job_view::{Source, row};
use super::jobs::{find, shown};
use super::{Answer, Services, busy, internal};
use crate::access::Caller;
use crate::history;
use ephor_core::records::JobEntry;
use ephor_core::roles::{Permission, Target};
use ephor_core::scheduler::Notes;
use ephor_core::{Element, State};
use ephor_model::{JobId, JobState, Timestamp, Uid, limits};
use ephor_proto::v1;
use ephor_store::history::Filter;
use ephor_store::{HistoryJob, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Kinds of untouched elements of one array that get a row each (held and not held, mostly); others are listed singly.
const RESTS: usize = 4;

pub(super) async fn list(services: &Arc<Services>, request: Request<v1::JobQuery>) -> Answer<v1::JobList> {
    let caller = services.access.caller(&request).await?;
    let query = Query::read(request.into_inner())?;
    let inner = services.clone();
    let uid = caller.peer.uid.0;
    let list = services.queries.run(uid, move || Lister::new(&inner, &caller, query).run()).await.map_err(busy)??;
    Ok(Response::new(list))
}

/// A question, checked.
struct Query {
    jobs: Vec<v1::JobRef>,
    user: Option<String>,
    account: Option<String>,
    queue: Option<String>,
    name: Option<String>,
    /// Empty: all that `finished` lets in.
    states: Vec<JobState>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    finished: bool,
    limit: usize,
}

impl Query {
    fn read(wire: v1::JobQuery) -> Result<Self, Status> {
        let state = |name: &String| {
            JobState::parse(name).ok_or_else(|| {
                let names: Vec<&str> = JobState::ALL.iter().map(|s| s.name()).collect();
                let text = format!("'{}' is not a state; the states are {}", name.escape_debug(), names.join(", "));
                Status::invalid_argument(text)
            })
        };
        let states = wire.states.iter().map(state).collect::<Result<Vec<_>, _>>()?;
        if wire.jobs.len() > limits::QUERY_ROWS {
            let text = format!("{} jobs at once are more than {}", wire.jobs.len(), limits::QUERY_ROWS);
            return Err(Status::invalid_argument(text));
        }
        let limit = match wire.limit as usize {
            0 => limits::QUERY_ROWS,
            n => n.min(limits::QUERY_ROWS),
        };
        Ok(Self {
            finished: wire.finished || states.iter().any(|s| s.is_final()),
            jobs: wire.jobs,
            user: wire.user,
            account: wire.account,
            queue: wire.queue,
            name: wire.name,
            states,
            since: wire.since.map(Timestamp),
            until: wire.until.map(Timestamp),
            limit,
        })
    }

    fn wants_job(&self, entry: &JobEntry) -> bool {
        let spec = &entry.job.spec;
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|w| w == found);
        let user = self.user.as_ref();
        user.is_none_or(|u| *u == spec.owner.name || *u == spec.owner.uid.to_string())
            && is(&self.account, &spec.account)
            && is(&self.queue, &spec.queue)
            && is(&self.name, &spec.name)
    }

    fn wants_element(&self, submitted: Timestamp, element: &Element) -> bool {
        let state = element.state;
        let by_state =
            if self.states.is_empty() { self.finished || !state.is_final() } else { self.states.contains(&state) };
        let ended = element.ended.filter(|_| state.is_final());
        by_state
            && self.since.is_none_or(|since| ended.is_none_or(|ended| ended >= since))
            && self.until.is_none_or(|until| element.started.unwrap_or(submitted) < until)
    }

    /// The same question to the history.
    fn filter(&self) -> Filter {
        Filter {
            user: self.user.clone(),
            account: self.account.clone(),
            queue: self.queue.clone(),
            name: self.name.clone(),
            states: self.states.clone(),
            since: self.since,
            until: self.until,
            limit: self.limit,
            after: None,
        }
    }
}

struct Lister<'a> {
    services: &'a Services,
    caller: &'a Caller,
    query: Query,
    state: State,
    notes: Arc<Notes>,
    now: Timestamp,
    /// Verdicts on jobs of each owner that has come up.
    readable: BTreeMap<Uid, bool>,
    rows: BTreeMap<u64, v1::Job>,
}

impl<'a> Lister<'a> {
    fn new(services: &'a Services, caller: &'a Caller, query: Query) -> Self {
        Self {
            state: services.handle.snapshot().state.clone(),
            notes: services.handle.notes(),
            now: services.handle.now(),
            services,
            caller,
            query,
            readable: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }

    fn run(mut self) -> Result<v1::JobList, Status> {
        let named = std::mem::take(&mut self.query.jobs);
        // The live state was taken first: what moves to the history meanwhile is in both, and not in neither.
        if named.is_empty() {
            self.everything();
            if self.query.finished {
                self.past().map_err(internal)?;
            }
        } else {
            for reference in named {
                self.named(reference)?;
            }
        }
        let truncated = self.rows.len() > self.query.limit;
        // Of too many the newest are worth most.
        let skip = self.rows.len().saturating_sub(self.query.limit);
        Ok(v1::JobList { jobs: self.rows.into_values().skip(skip).collect(), truncated })
    }

    /// Whether the caller may see jobs of that owner. A list asks once for each owner, with no name.
    fn may_read(&mut self, owner: Uid, name: String) -> bool {
        let listed = name.is_empty();
        if listed && let Some(known) = self.readable.get(&owner) {
            return *known;
        }
        let target = Target { owner: Some(owner), name };
        let verdict = self.services.access.allow_here(self.caller, Permission::JobRead, &target).is_ok();
        if listed {
            self.readable.insert(owner, verdict);
        }
        verdict
    }

    fn everything(&mut self) {
        // Newest first, so that a limit keeps the newest.
        let jobs = self.state.jobs.clone();
        for entry in jobs.values().rev() {
            if self.rows.len() > self.query.limit {
                return;
            }
            let worth_a_look = self.query.finished || entry.unfinished > 0;
            if worth_a_look && self.query.wants_job(entry) && self.may_read(entry.job.spec.owner.uid, String::new()) {
                self.entry(entry);
            }
        }
    }

    fn named(&mut self, reference: v1::JobRef) -> Result<(), Status> {
        let Some(meant) = find(&self.state, reference) else {
            let found = history::find(&self.services.history, JobId(reference.job), reference.index);
            for record in found.map_err(internal)? {
                self.add_past(record, true);
            }
            return Ok(());
        };
        let Some((entry, ordinal)) = self.state.find(meant.id).map(|(entry, ordinal)| (entry.clone(), ordinal)) else {
            return Ok(());
        };
        if !self.query.wants_job(&entry) || !self.may_read(meant.owner, meant.id.to_string()) {
            return Ok(());
        }
        if meant.whole {
            self.entry(&entry);
        } else if entry.elements.get(ordinal).is_some_and(|e| self.query.wants_element(entry.job.submitted, e)) {
            let row = self.source().element(&entry, ordinal as u32);
            self.rows.extend(row.map(|row| (row.id, row)));
        }
        Ok(())
    }

    fn source(&self) -> Source<'_> {
        Source { state: &self.state, notes: &self.notes, now: self.now }
    }

    /// The rows of a job: one for each element that something happened to, one for the rest of an array.
    fn entry(&mut self, entry: &JobEntry) {
        let mut rests: Vec<(&Element, Vec<u32>)> = Vec::new();
        let mut rows = Vec::new();
        let source = self.source();
        for (ordinal, element) in entry.elements.iter().enumerate() {
            if !self.query.wants_element(entry.job.submitted, element) {
                continue;
            }
            let untouched =
                entry.job.spec.array.is_some() && element.state == JobState::Pending && element.attempts == 0;
            if untouched {
                let same = |(first, _): &(&Element, Vec<u32>)| std::ptr::eq(*first, element) || *first == element;
                match rests.iter().position(same) {
                    Some(at) => rests[at].1.push(ordinal as u32),
                    None if rests.len() < RESTS => rests.push((element, vec![ordinal as u32])),
                    None => rows.extend(source.element(entry, ordinal as u32)),
                }
            } else {
                rows.extend(source.element(entry, ordinal as u32));
            }
            if rows.len() > self.query.limit {
                break;
            }
        }
        rows.extend(rests.iter().filter_map(|(_, ordinals)| source.rest(entry, ordinals)));
        self.rows.extend(rows.into_iter().map(|row| (row.id, row)));
    }

    /// What the history has of the question, page by page, until there are more rows than are wanted.
    fn past(&mut self) -> Result<(), StoreError> {
        let mut filter = self.query.filter();
        let mut added = 0;
        loop {
            let page = self.services.history.query(&filter)?;
            for record in page.jobs {
                added += usize::from(self.add_past(record, false));
            }
            filter.after = page.next;
            if page.next.is_none() || added > self.query.limit {
                return Ok(());
            }
        }
    }

    /// Whether the record became a row.
    fn add_past(&mut self, record: HistoryJob, named: bool) -> bool {
        // What the live state knows is newer.
        if self.state.find(record.id).is_some() {
            return false;
        }
        let name = if named { record.id.to_string() } else { String::new() };
        if !self.may_read(record.owner.uid, name) {
            return false;
        }
        self.rows.insert(record.id.0, row(record));
        true
    }
}

/// `ephor job why` of a job that is only in the history.
pub(super) async fn explain_finished(
    services: &Arc<Services>,
    caller: &Caller,
    reference: v1::JobRef,
) -> Answer<v1::Explanation> {
    let inner = services.clone();
    let find = move || history::find(&inner.history, JobId(reference.job), reference.index);
    let found = services.queries.run(caller.peer.uid.0, find).await.map_err(busy)?.map_err(internal)?;
    let Some(record) = found.into_iter().next() else {
        return Err(Status::not_found(format!("there is no job {}", shown(reference))));
    };
    let target = Target { owner: Some(record.owner.uid), name: record.id.to_string() };
    services.access.allow(caller, Permission::JobRead, target).await?;
    let lines = vec![format!("exit code {}, signal {}", record.exit.code, record.exit.signal)];
    Ok(Response::new(v1::Explanation { job: Some(row(record)), lines, ..v1::Explanation::default() }))
}
