//! Allocate: jobs start on what is free, in the order of their queues.

use ephor_sdk::scheduling::{Cycle, Outcome, Refusal};

use crate::pass::Pass;

/// Starts what fits. Quota and fair share do not stand against a job that gives way; they decide who comes first.
///
/// # Errors
/// The work of the call is used up.
pub fn allocate<C: Cycle>(pass: &mut Pass<'_, C>) -> Result<(), Refusal> {
    let mut waiting = pass.waiting(true);
    while let Some((leaf, at)) = waiting.take() {
        if pass.within_quota(at)? {
            let row = pass.world.jobs[at].row;
            match pass.cycle.try_start(row, None, &pass.how) {
                Ok(Outcome::Started | Outcome::Claimed) => pass.placed(at),
                Ok(Outcome::Refused(Refusal::Budget)) | Err(Refusal::Budget) => return Err(Refusal::Budget),
                // The host keeps the reason for the user.
                Ok(_) | Err(_) => {}
            }
        }
        waiting.moved(&pass.world.tree, leaf);
    }
    Ok(())
}
