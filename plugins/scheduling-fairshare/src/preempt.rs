//! Preempt: jobs give way to more urgent ones of their own queue.

use ephor_sdk::scheduling::{Cycle, Refusal};

use crate::pass::{Looked, Pass};
use crate::search::{Goal, find};
use crate::victims::{Picker, Rule};

/// Goes through the waiting jobs in order.
///
/// # Errors
/// The work of the call is used up.
pub fn preempt<C: Cycle>(pass: &mut Pass<'_, C>) -> Result<(), Refusal> {
    let candidates = pass.candidates(pass.config.preempt_min_runtime_s);
    pass.for_each(candidates, |pass, job, pools, floor| {
        let rule = Rule::Preempt { leaf: job.leaf, class: job.turn.class };
        let mut picker = Picker::new(&pass.world, pools, rule, pass.all_shared);
        Looked::For(find(pass, job, &mut picker, Goal::Preempt, floor))
    })
}
