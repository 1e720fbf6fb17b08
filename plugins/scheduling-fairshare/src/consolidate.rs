//! Consolidate: running jobs move together so that one more fits, and nobody loses anything but the time of a restart.

use ephor_sdk::scheduling::{Cycle, Refusal};

use crate::pass::{Looked, Pass};
use crate::search::{Goal, find};
use crate::victims::{Picker, Rule};

/// Goes through the waiting jobs in order; others move only for a job that would itself.
///
/// # Errors
/// The work of the call is used up.
pub fn consolidate<C: Cycle>(pass: &mut Pass<'_, C>) -> Result<(), Refusal> {
    let most = usize::try_from(pass.config.consolidation_limit).ok();
    if most == Some(0) {
        return Ok(());
    }
    let candidates = pass.candidates(0);
    pass.for_each(candidates, |pass, job, pools, floor| {
        if !job.gives_way {
            return Looked::Not;
        }
        let mut picker = Picker::new(&pass.world, pools, Rule::Anybody, pass.all_shared);
        Looked::For(find(pass, job, &mut picker, Goal::MoveAll(most), floor))
    })
}
