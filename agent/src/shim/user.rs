//! Becoming the job's user, once and for good.

use crate::spool::User;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid, setuid};

/// Gives up the shim's rights for the user's: groups first, user last, since only root may change the others. Each
/// step is checked, and at the end that there is no way back.
///
/// # Errors
/// The step that failed and why; nothing of the user's may be touched then.
pub fn become_user(user: &User) -> Result<(), String> {
    let fail = |step: &'static str| move |e: Errno| format!("cannot become user {}: {step}: {}", user.uid, e.desc());
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<_> = user.groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&groups).map_err(fail("setgroups"))?;
    setresgid(gid, gid, gid).map_err(fail("setresgid"))?;
    setresuid(uid, uid, uid).map_err(fail("setresuid"))?;

    let (is, group_is) = (getresuid().map_err(fail("getresuid"))?, getresgid().map_err(fail("getresgid"))?);
    let mut have = getgroups().map_err(fail("getgroups"))?;
    let mut want = groups;
    for list in [&mut have, &mut want] {
        list.sort_by_key(|g| g.as_raw());
        list.dedup();
    }
    let all = [is.real, is.effective, is.saved].iter().all(|u| *u == uid)
        && [group_is.real, group_is.effective, group_is.saved].iter().all(|g| *g == gid)
        && have == want;
    if !all || (!uid.is_root() && setuid(Uid::from_raw(0)).is_ok()) {
        return Err(format!("cannot become user {}: the kernel did not take the change as a whole", user.uid));
    }
    Ok(())
}
