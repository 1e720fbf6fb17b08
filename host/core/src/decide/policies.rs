//! Activates, rolls back and disables generations.

use super::Tx;
use crate::command::{Refusal, RefusalKind, Reply};
use crate::event::Event;
use ephor_model::{Generation, Slot};
use std::sync::Arc;

pub(super) fn activate(tx: &mut Tx<'_>, slot: Slot, generation: Generation) -> Reply {
    let number = tx.state.meta.next_generation.max(1);
    let generation = Arc::new(Generation { number, since: tx.at, ..generation });
    tx.emit(Event::PolicyActivated { slot, generation: generation.clone() });
    Reply::Generation(generation)
}

pub(super) fn roll_back(tx: &mut Tx<'_>, slot: Slot) -> Result<Reply, Refusal> {
    let Some(generation) = tx.state.policies.get(&slot).and_then(|s| s.earlier.last()).cloned() else {
        return Err(Refusal::new(RefusalKind::Conflict, format!("{slot} has no earlier generation to go back to")));
    };
    tx.emit(Event::PolicyRolledBack { slot });
    Ok(Reply::Generation(generation))
}

pub(super) fn disable(tx: &mut Tx<'_>, slot: Slot) -> Result<Reply, Refusal> {
    if tx.state.policies.get(&slot).is_none_or(|s| s.live.is_none()) {
        return Err(Refusal::new(RefusalKind::Conflict, format!("{slot} is empty already")));
    }
    tx.emit(Event::PolicyDisabled { slot });
    Ok(Reply::Done)
}
