//! Questions to the history: newest first, page by page.

use super::tables::{BY_END, BY_USER, Head, JOBS};
use super::{History, HistoryJob};
use crate::codec;
use crate::error::StoreError;
use ephor_model::{JobId, JobState, Timestamp, limits};

/// Most records that one page looks at, so that a rare filter over a long time comes back, with a place to go on.
const LOOKED_AT: usize = 200_000;

/// Which jobs are asked for. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Login name, or the user id as digits.
    pub user: Option<String>,
    /// Account, by name.
    pub account: Option<String>,
    /// Queue, by name.
    pub queue: Option<String>,
    /// Name of the job.
    pub name: Option<String>,
    /// Any of these states; empty: any state.
    pub states: Vec<JobState>,
    /// Ended at this time or later.
    pub since: Option<Timestamp>,
    /// Started, or where it never did submitted, before this time.
    pub until: Option<Timestamp>,
    /// Most jobs of a page, at most [`limits::QUERY_ROWS`]; 0: that many.
    pub limit: usize,
    /// Go on after the page before.
    pub after: Option<Cursor>,
}

/// A place in the order of the answer: jobs from later to earlier ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// End of the job that was looked at last.
    pub ended: Timestamp,
    /// That job.
    pub id: JobId,
}

/// A part of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The jobs, by falling end.
    pub jobs: Vec<HistoryJob>,
    /// Where to go on; `None`: that was all. A page can be empty and yet not the last.
    pub next: Option<Cursor>,
}

impl History {
    /// Jobs that a filter wants, newest first.
    ///
    /// # Errors
    /// The history is damaged, cannot be read, or is closed.
    pub fn query(&self, filter: &Filter) -> Result<Page, StoreError> {
        let txn = self.read()?;
        let jobs = txn.open_table(JOBS).map_err(|e| self.redb(e))?;
        let from = filter.since.map_or(i64::MIN, |t| t.0);
        // Up to the cursor, but without it.
        let (to, to_id) = filter.after.map_or((i64::MAX, u64::MAX), |c| (c.ended.0, c.id.0));
        let by_name = filter.user.as_deref().filter(|user| user.parse::<u32>().is_err());
        let by_end;
        let by_user;
        let places: Box<dyn Iterator<Item = Result<(i64, u64), redb::StorageError>> + '_> = match by_name {
            Some(user) => {
                by_user = txn.open_table(BY_USER).map_err(|e| self.redb(e))?;
                let range = by_user.range((user, from, 0)..(user, to, to_id)).map_err(|e| self.redb(e))?;
                Box::new(range.rev().map(|entry| {
                    entry.map(|(key, _)| {
                        let (_, ended, id) = key.value();
                        (ended, id)
                    })
                }))
            }
            None => {
                by_end = txn.open_table(BY_END).map_err(|e| self.redb(e))?;
                let range = by_end.range((from, 0)..(to, to_id)).map_err(|e| self.redb(e))?;
                Box::new(range.rev().map(|entry| entry.map(|(key, _)| key.value())))
            }
        };
        let limit = match filter.limit {
            0 => limits::QUERY_ROWS,
            n => n.min(limits::QUERY_ROWS),
        };
        let mut page = Page::default();
        for (looked, place) in places.enumerate() {
            let (ended, id) = place.map_err(|e| self.redb(e))?;
            if page.jobs.len() >= limit || looked >= LOOKED_AT {
                page.next = page.next.or(filter.after);
                return Ok(page);
            }
            let bytes = jobs.get(id).map_err(|e| self.redb(e))?.ok_or_else(|| self.no_record(JobId(id)))?;
            let bad = |e: String| self.bad_record(JobId(id), &e);
            let head: Head<'_> = codec::decode_start(bytes.value()).map_err(bad)?;
            if filter.wants(&head) {
                page.jobs.push(codec::decode(bytes.value()).map_err(bad)?);
            }
            page.next = Some(Cursor { ended: Timestamp(ended), id: JobId(id) });
        }
        page.next = None;
        Ok(page)
    }
}

impl Filter {
    fn wants(&self, head: &Head<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
        let user = self
            .user
            .as_deref()
            .is_none_or(|user| user == head.owner.name || user.parse::<u32>().is_ok_and(|uid| uid == head.owner.uid.0));
        user && is(&self.account, head.account)
            && is(&self.queue, head.queue)
            && is(&self.name, head.name)
            && (self.states.is_empty() || self.states.contains(&head.state))
            && self.since.is_none_or(|since| head.place() >= since.0)
            && self.until.is_none_or(|until| head.started.unwrap_or(head.submitted) < until)
    }
}
