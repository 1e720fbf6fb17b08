//! Whom an attempt's processes become on this node, with all groups; answers are kept for a while.

use crate::limits::GROUPS_KNOWN;
use crate::spool::User;
use nix::unistd::{Gid, Uid, User as Account, getgrouplist};
use std::collections::HashMap;
use std::ffi::CString;
use std::time::Instant;

/// The users that were looked up lately.
#[derive(Debug, Default)]
pub struct Users {
    known: HashMap<(u32, u32), (Instant, Vec<u32>)>,
}

impl Users {
    /// Whom the shim must become for this user and primary group; `None`: it is that user already.
    ///
    /// # Errors
    /// A user that the node does not know, or that this agent cannot become.
    pub fn find(&mut self, uid: u32, gid: u32) -> Result<Option<User>, String> {
        let own = Uid::effective();
        if !own.is_root() {
            return match own.as_raw() == uid {
                true => Ok(None),
                false => Err(format!(
                    "this agent runs as user {own} and cannot start jobs of user {uid}; run it as root, or submit as {own}"
                )),
            };
        }
        self.known.retain(|_, (asked, _)| asked.elapsed() < GROUPS_KNOWN);
        let groups = match self.known.get(&(uid, gid)) {
            Some((_, groups)) => groups.clone(),
            None => {
                let groups = look_up(uid, gid)?;
                self.known.insert((uid, gid), (Instant::now(), groups.clone()));
                groups
            }
        };
        Ok(Some(User { uid, gid, groups }))
    }
}

fn look_up(uid: u32, gid: u32) -> Result<Vec<u32>, String> {
    let account = Account::from_uid(Uid::from_raw(uid))
        .map_err(|e| format!("cannot look up user {uid} on this node: {}", e.desc()))?
        .ok_or_else(|| format!("user {uid} is not known on this node"))?;
    let name = CString::new(account.name).map_err(|_| format!("user {uid} has a name with a NUL byte"))?;
    let groups = getgrouplist(&name, Gid::from_raw(gid))
        .map_err(|e| format!("cannot look up the groups of user {uid} on this node: {}", e.desc()))?;
    Ok(groups.into_iter().map(Gid::as_raw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_agent_runs_jobs_of_its_own_user_alone() {
        let mut users = Users::default();
        let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid().as_raw());
        if uid.is_root() {
            let nobody = users.find(65534, 65534).unwrap().unwrap();
            assert_eq!((nobody.uid, nobody.gid), (65534, 65534));
            assert!(nobody.groups.contains(&65534) && !nobody.groups.contains(&0));
            assert!(users.find(4_000_000_000, 1).unwrap_err().contains("not known on this node"));
        } else {
            assert_eq!(users.find(uid.as_raw(), gid), Ok(None));
            assert!(users.find(uid.as_raw() + 1, gid).unwrap_err().contains("run it as root"));
        }
    }
}
