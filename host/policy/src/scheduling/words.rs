//! Between the contract's words for a cycle and the core's.

use crate::bindings::scheduling::ephor::scheduling::cycles as wit;
use crate::fault::truncate;
use ephor_core::cycle::{Afterwards, Cause, CycleRefusal, Keep, Outcome, Part, Scope, StopRule};
use ephor_model::limits;

pub fn refusal(refusal: CycleRefusal) -> wit::Refusal {
    match refusal {
        CycleRefusal::Never(text) => wit::Refusal::Never(short(text.to_string())),
        CycleRefusal::NotNow(text) => wit::Refusal::NotNow(short(text.to_string())),
        CycleRefusal::Pool(row) => wit::Refusal::Pool(row),
        CycleRefusal::Budget => wit::Refusal::Budget,
        CycleRefusal::Other(text) => wit::Refusal::Other(short(text)),
    }
}

/// One outcome of many: the text of a `not-now` is left out, as the contract says. A queue is refused by the thousand.
pub fn brief(brief: Outcome) -> wit::Outcome {
    match brief {
        Outcome::Refused(CycleRefusal::NotNow(_)) => wit::Outcome::Refused(wit::Refusal::NotNow(String::new())),
        other => outcome(other),
    }
}

pub fn outcome(outcome: Outcome) -> wit::Outcome {
    match outcome {
        Outcome::Started => wit::Outcome::Started,
        Outcome::Claimed => wit::Outcome::Claimed,
        Outcome::Reserved(start) => wit::Outcome::Reserved(start.0),
        Outcome::Refused(why) => wit::Outcome::Refused(refusal(why)),
        Outcome::Untried => wit::Outcome::Untried,
    }
}

pub fn cause(cause: Cause) -> wit::Cause {
    match cause {
        // Inside a cycle's answer the id is the job's row.
        Cause::Arrived(row) => wit::Cause::Arrived(u32::try_from(row.0).unwrap_or(u32::MAX)),
        Cause::Released => wit::Cause::Released,
        Cause::ReleasedEarly => wit::Cause::ReleasedEarly,
        Cause::Nodes => wit::Cause::Nodes,
        Cause::Settings => wit::Cause::Settings,
        Cause::Asked => wit::Cause::Other("wake-at".into()),
    }
}

pub fn scope(scope: wit::Scope) -> Scope {
    match scope {
        wit::Scope::All => Scope::All,
        wit::Scope::Queue(row) => Scope::Queue(row),
        wit::Scope::Awake => Scope::Awake,
        wit::Scope::Arrived => Scope::Arrived,
        wit::Scope::Due => Scope::Due,
        wit::Scope::Placed => Scope::Placed,
    }
}

pub fn stop(rule: wit::StopRule) -> StopRule {
    match rule {
        wit::StopRule::FirstRefusal => StopRule::FirstRefusal,
        wit::StopRule::EndOfList => StopRule::EndOfList,
    }
}

pub fn keep(keep: wit::Keep) -> Keep {
    match keep {
        wit::Keep::ThisCycle => Keep::ThisCycle,
        wit::Keep::Durable => Keep::Durable,
    }
}

pub fn afterwards(then: wit::Afterwards) -> Afterwards {
    match then {
        wit::Afterwards::Requeue => Afterwards::Requeue,
        wit::Afterwards::Cancel => Afterwards::Cancel,
    }
}

pub fn part(part: wit::Part) -> Part {
    Part { group: part.group, tasks_min: part.tasks_min, tasks_max: part.tasks_max }
}

fn short(mut text: String) -> String {
    truncate(&mut text, limits::TEXT_BYTES);
    text
}
