//! The tables of `history.redb`.

use super::record::{ArrayPlace, HistoryJob};
use ephor_model::{JobId, JobState, Timestamp, Uid};
use redb::TableDefinition;
use serde::Deserialize;

/// Records, by job.
pub(super) const JOBS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");
/// Jobs by the end.
pub(super) const BY_END: TableDefinition<'_, (i64, u64), ()> = TableDefinition::new("by_end");
/// Jobs by login name, then the end.
pub(super) const BY_USER: TableDefinition<'_, (&str, i64, u64), ()> = TableDefinition::new("by_user");
/// Single values, by name.
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

/// Format of the file that this version writes.
pub(super) const FORMAT: u32 = 1;
/// Oldest format that this version reads.
pub(super) const OLDEST_FORMAT: u32 = 1;
/// `meta`: format of the file, four bytes, the lowest first.
pub(super) const KEY_FORMAT: &str = "format";

/// The first fields of a [`HistoryJob`], read where they lie.
#[derive(Debug, Deserialize)]
pub(super) struct Head<'a> {
    pub id: JobId,
    pub array: Option<ArrayPlace>,
    pub state: JobState,
    pub attempts: u32,
    #[serde(borrow)]
    pub name: &'a str,
    #[serde(borrow)]
    pub owner: HeadOwner<'a>,
    pub account: &'a str,
    pub queue: &'a str,
    pub submitted: Timestamp,
    pub ended: Option<Timestamp>,
    pub started: Option<Timestamp>,
}

/// The first fields of its owner.
#[derive(Debug, Deserialize)]
pub(super) struct HeadOwner<'a> {
    pub uid: Uid,
    #[allow(dead_code, reason = "its bytes lie before the name's")]
    pub gid: u32,
    pub name: &'a str,
}

impl Head<'_> {
    /// Where it lies in the order of time.
    pub(super) fn place(&self) -> i64 {
        self.ended.unwrap_or(self.submitted).0
    }
}

/// Where a record lies in the order of time.
pub(super) fn place(job: &HistoryJob) -> i64 {
    job.ended.unwrap_or(job.submitted).0
}
