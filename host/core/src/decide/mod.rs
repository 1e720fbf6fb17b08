//! Turns commands into events: checks everything against the state as it is now, then emits.
//!
//! A command that is refused has emitted nothing. Every emitted event is applied at once, so that the next command of
//! the same batch sees it.

mod bounds;
mod dependencies;
mod devices;
mod jobs;
mod modify;
mod nodes;
mod object_limits;
mod objects;
mod outlook;
mod plan;
mod policies;
mod reservations;
mod submit;

use crate::command::{Command, Refusal, RefusalKind, Reply};
use crate::event::{Event, Stamped};
use crate::fold::boundary_before;
use crate::past_use::power;
use crate::rows::RowKey;
use crate::state::State;
use ephor_model::{Epoch, Timestamp, limits};
use std::collections::BTreeSet;

pub use modify::Change;

/// What a batch of commands did: its events, and the rows that they changed.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events in order.
    pub events: Vec<Stamped>,
    /// Rows to write.
    pub touched: BTreeSet<RowKey>,
}

/// Carries out one command at `now`. Time that went back is taken as the time of the last event.
///
/// # Errors
/// The refusal; the state is as before.
pub fn execute(state: &mut State, now: Timestamp, command: Command, batch: &mut Batch) -> Result<Reply, Refusal> {
    let at = now.max(state.meta.now);
    let mut tx = Tx { state, at, batch };
    match command {
        Command::BeginEpoch { at_least } => {
            let epoch = Epoch((tx.state.meta.epoch.0 + 1).max(at_least));
            tx.emit(Event::EpochBegan { epoch });
            Ok(Reply::Done)
        }
        Command::Submit { spec, script, environment, known_ends } => {
            submit::submit(&mut tx, spec, script, environment, &known_ends)
        }
        Command::Act { action, job, whole, by } => jobs::act(&mut tx, action, job, whole, &by),
        Command::Modify { job, change, known_ends, by } => modify::modify(&mut tx, job, change, &known_ends, &by),
        Command::Expire => {
            jobs::expire(&mut tx);
            Ok(Reply::Done)
        }
        Command::Plan { groups } => Ok(plan::commit(&mut tx, &groups)),
        Command::NodeReport(report) => nodes::report(&mut tx, report),
        Command::DrainNode { node, reason, by } => nodes::drain(&mut tx, node, reason, by),
        Command::SetDevice { node, device, change, by } => devices::set(&mut tx, node, device, change, by),
        Command::Apply(objects) => objects::apply(&mut tx, objects),
        Command::Delete { kind, name } => objects::delete(&mut tx, kind, &name),
        Command::Activate { slot, generation } => Ok(policies::activate(&mut tx, slot, generation)),
        Command::RollBack { slot } => policies::roll_back(&mut tx, slot),
        Command::Disable { slot } => policies::disable(&mut tx, slot),
        Command::Charge(charges) => {
            for (key, amount) in charges {
                // A negative price would let a policy hand out money; a missing attempt was charged before.
                if tx.state.uncharged.contains_key(&key) {
                    tx.emit(Event::Charged { key, amount: amount.max(0) });
                }
            }
            Ok(Reply::Done)
        }
        Command::SetFading(fading) => {
            if tx.state.meta.fading != fading {
                tx.emit(Event::FadingSet { fading });
            }
            Ok(Reply::Done)
        }
        Command::Fade => {
            fade(&mut tx);
            Ok(Reply::Done)
        }
        Command::Forget(jobs) => {
            for job in jobs {
                let done = tx.state.jobs.get(&job).is_some_and(|entry| entry.unfinished == 0);
                if done {
                    tx.emit(Event::Forgotten { job });
                }
            }
            Ok(Reply::Done)
        }
        Command::IssueToken { token, node } => {
            close_expired(&mut tx);
            if tx.state.tokens.len() >= limits::OPEN_TOKENS {
                return Err(Refusal::new(RefusalKind::Limit, format!("{} join tokens are open", limits::OPEN_TOKENS)));
            }
            let expires = tx.at + ephor_model::Span(limits::TOKEN_LIFE_MS);
            tx.emit(Event::TokenIssued { token, node, expires });
            Ok(Reply::Done)
        }
        Command::UseToken { token, node } => {
            close_expired(&mut tx);
            let good = tx.state.tokens.get(&token).is_some_and(|open| open.node.is_empty() || open.node == node);
            if !good {
                let text = "this join token is unknown, used, expired or for another node; \
                            get a new one with 'ephor node token'";
                return Err(Refusal::new(RefusalKind::NotFound, text));
            }
            tx.emit(Event::TokenClosed { token });
            Ok(Reply::Done)
        }
    }
}

struct Tx<'a> {
    state: &'a mut State,
    at: Timestamp,
    batch: &'a mut Batch,
}

impl Tx<'_> {
    fn emit(&mut self, event: Event) {
        let stamped = Stamped { at: self.at, event };
        let applied = self.state.apply(&stamped, &mut self.batch.touched);
        debug_assert!(applied.is_ok(), "decided what cannot be folded: {applied:?}");
        self.batch.events.push(stamped);
    }
}

fn fade(tx: &mut Tx<'_>) {
    let fading = tx.state.meta.fading;
    if !fading.fades() {
        return;
    }
    let boundary = boundary_before(tx.at, fading.period.0);
    let periods = (boundary - tx.state.meta.faded_at).0 / fading.period.0;
    if periods > 0 {
        tx.emit(Event::Faded { at: boundary, factor: power(fading.factor, periods as u64).0 });
    }
}

fn close_expired(tx: &mut Tx<'_>) {
    let at = tx.at;
    let old: Vec<_> = tx.state.tokens.iter().filter(|(_, t)| t.expires < at).map(|(d, _)| *d).collect();
    for token in old {
        tx.emit(Event::TokenClosed { token });
    }
}
