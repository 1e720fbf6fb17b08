//! Row keys as bytes whose order is the order of the keys: neighbours in a batch lie in the same page.

use ephor_core::RowKey;
use ephor_model::{
    AccountId, AttemptKey, Digest, JobId, NodeId, QosId, QueueId, ReservationNo, ResourceId, Role, Slot, Uid,
};

/// Tags are part of the format: a new kind of row gets the next one.
pub(crate) fn encode(key: &RowKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    match key {
        RowKey::Meta => out.push(0),
        RowKey::Queue(id) => put(&mut out, 1, &id.0.to_be_bytes()),
        RowKey::Account(id) => put(&mut out, 2, &id.0.to_be_bytes()),
        RowKey::User(id) => put(&mut out, 3, &id.0.to_be_bytes()),
        RowKey::Node(id) => put(&mut out, 4, &id.0.to_be_bytes()),
        RowKey::Job(id) => put(&mut out, 5, &id.0.to_be_bytes()),
        RowKey::Element(id) => put(&mut out, 6, &id.0.to_be_bytes()),
        RowKey::Attempt(id) => put(&mut out, 7, &id.0.to_be_bytes()),
        RowKey::Ledger((account, user)) => {
            put(&mut out, 8, &account.0.to_be_bytes());
            out.extend_from_slice(&user.0.to_be_bytes());
        }
        RowKey::Uncharged(attempt) => {
            put(&mut out, 9, &attempt.job.0.to_be_bytes());
            out.extend_from_slice(&attempt.number.to_be_bytes());
        }
        RowKey::Policy(slot) => {
            put(&mut out, 10, &[role_number(slot.role)]);
            out.extend_from_slice(slot.name.as_bytes());
        }
        RowKey::Token(digest) => put(&mut out, 11, &digest.0),
        RowKey::Promise(id) => put(&mut out, 12, &id.0.to_be_bytes()),
        RowKey::Qos(id) => put(&mut out, 13, &id.0.to_be_bytes()),
        RowKey::Licence(id) => put(&mut out, 14, &id.0.to_be_bytes()),
        RowKey::Reservation(no) => put(&mut out, 15, &no.0.to_be_bytes()),
        RowKey::PastUse(id) => put(&mut out, 16, &id.0.to_be_bytes()),
    }
    out
}

/// The key of these bytes; `None`: no key has them.
pub(crate) fn decode(bytes: &[u8]) -> Option<RowKey> {
    let (tag, rest) = bytes.split_first()?;
    Some(match tag {
        0 if rest.is_empty() => RowKey::Meta,
        1 => RowKey::Queue(QueueId(u32_of(rest)?)),
        2 => RowKey::Account(AccountId(u32_of(rest)?)),
        3 => RowKey::User(Uid(u32_of(rest)?)),
        4 => RowKey::Node(NodeId(u32_of(rest)?)),
        5 => RowKey::Job(JobId(u64_of(rest)?)),
        6 => RowKey::Element(JobId(u64_of(rest)?)),
        7 => RowKey::Attempt(JobId(u64_of(rest)?)),
        8 => {
            let (account, user) = rest.split_at_checked(4)?;
            RowKey::Ledger((AccountId(u32_of(account)?), Uid(u32_of(user)?)))
        }
        9 => {
            let (job, number) = rest.split_at_checked(8)?;
            RowKey::Uncharged(AttemptKey { job: JobId(u64_of(job)?), number: u32_of(number)? })
        }
        10 => {
            let (role, name) = rest.split_first()?;
            let role = Role::ALL.into_iter().find(|r| role_number(*r) == *role)?;
            RowKey::Policy(Slot { role, name: std::str::from_utf8(name).ok()?.to_owned() })
        }
        11 => RowKey::Token(Digest(rest.try_into().ok()?)),
        12 => RowKey::Promise(JobId(u64_of(rest)?)),
        13 => RowKey::Qos(QosId(u32_of(rest)?)),
        14 => RowKey::Licence(ResourceId(u16::from_be_bytes(rest.try_into().ok()?))),
        15 => RowKey::Reservation(ReservationNo(u32_of(rest)?)),
        16 => RowKey::PastUse(QueueId(u32_of(rest)?)),
        _ => return None,
    })
}

/// Whether the row of that key can name blobs: only those are read again before they change.
pub(crate) fn may_name_blobs(key: &[u8]) -> bool {
    matches!(key.first(), Some(5 | 10))
}

fn put(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn role_number(role: Role) -> u8 {
    match role {
        Role::Authentication => 0,
        Role::Admission => 1,
        Role::Priority => 2,
        Role::Scheduling => 3,
        Role::Accounting => 4,
    }
}

fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

fn u64_of(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back_and_keep_their_order() {
        let slot = |role, name: &str| RowKey::Policy(Slot { role, name: name.into() });
        let keys = [
            RowKey::Meta,
            RowKey::Queue(QueueId(0)),
            RowKey::Queue(QueueId(300)),
            RowKey::Account(AccountId(1)),
            RowKey::User(Uid(u32::MAX)),
            RowKey::Node(NodeId(7)),
            RowKey::Job(JobId(1)),
            RowKey::Job(JobId(256)),
            RowKey::Element(JobId(u64::MAX)),
            RowKey::Attempt(JobId(2)),
            RowKey::Ledger((AccountId(1), Uid(2))),
            RowKey::Ledger((AccountId(1), Uid(300))),
            RowKey::Uncharged(AttemptKey { job: JobId(9), number: 1 }),
            RowKey::Uncharged(AttemptKey { job: JobId(9), number: 300 }),
            slot(Role::Authentication, "local"),
            slot(Role::Admission, "a\0'\"\n"),
            slot(Role::Scheduling, ""),
            RowKey::Token(Digest([7; 32])),
            RowKey::Promise(JobId(3)),
            RowKey::Qos(QosId(3)),
            RowKey::Licence(ResourceId(16)),
            RowKey::Reservation(ReservationNo(2)),
            RowKey::PastUse(QueueId(7)),
        ];
        let bytes: Vec<_> = keys.iter().map(encode).collect();
        assert!(keys.is_sorted() && bytes.is_sorted());
        for (key, bytes) in keys.iter().zip(&bytes) {
            assert_eq!(decode(bytes).as_ref(), Some(key));
            assert_ne!(decode(&[bytes, &[0u8][..]].concat()).as_ref(), Some(key));
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[200]), None);
    }
}
