//! Changes of a job on the wire.

use crate::convert::{
    Malformed, bad, dependencies_from_wire, dependencies_to_wire, numbers, request_from_wire, request_texts,
    request_to_wire, text,
};
use crate::v1;
use ephor_model::{Changes, Field, JobCommon, JobSpec, Payload, Span, Timestamp, limits};

/// Writes changes: names of fields, and their values.
pub fn changes_to_wire(changes: &Changes) -> (Vec<String>, v1::JobValues) {
    let s = &changes.values;
    let values = v1::JobValues {
        queue: s.queue.clone(),
        account: s.account.clone(),
        qos: s.qos.clone(),
        comment: s.comment.clone(),
        time_limit: s.time_limit.map(|t| t.0),
        nice: s.nice,
        begin: s.begin.map(|t| t.0),
        deadline: s.deadline.map(|t| t.0),
        dependencies: dependencies_to_wire(&s.dependencies),
        dependency_any: s.dependency_any,
        requeue: s.requeue,
        request: Some(request_to_wire(&s.request)),
        throttle: changes.throttle,
    };
    (changes.fields.iter().map(|f| f.name().to_owned()).collect(), values)
}

/// Reads changes and checks every bound that needs no knowledge of the job.
///
/// # Errors
/// Unknown fields, fields that are named twice, and whatever is malformed or too large.
pub fn changes_from_wire(names: &[String], w: v1::JobValues) -> Result<Changes, Malformed> {
    let mut fields = Vec::new();
    for name in names {
        let Some(field) = Field::parse(name) else {
            let all: Vec<&str> = Field::NAMES.iter().map(|(_, name)| *name).collect();
            return bad(format!("'{}' is nothing that can change; there are {}", name.escape_debug(), all.join(", ")));
        };
        if fields.contains(&field) {
            return bad(format!("{name} is named twice"));
        }
        fields.push(field);
    }
    if fields.is_empty() {
        return bad("nothing is to be changed; name at least one option");
    }
    w.comment.iter().try_for_each(|comment| text("the comment", comment, limits::TEXT_BYTES))?;
    for name in [Some(&w.queue), Some(&w.account), w.qos.as_ref()].into_iter().flatten() {
        text("the name of a queue, account or QOS", name, limits::NAME_BYTES)?;
    }
    numbers(w.nice, w.time_limit)?;
    let request = request_from_wire(w.request.unwrap_or_default())?;
    request_texts(&request)?;
    let common = JobCommon {
        queue: w.queue,
        account: w.account,
        qos: w.qos,
        comment: w.comment,
        work_dir: "/".into(),
        nice: w.nice,
        begin: w.begin.map(Timestamp),
        deadline: w.deadline.map(Timestamp),
        dependencies: dependencies_from_wire(&w.dependencies)?,
        dependency_any: w.dependency_any,
        requeue: w.requeue,
        ..JobCommon::default()
    };
    let values = JobSpec {
        time_limit: w.time_limit.map(Span),
        request: request.into(),
        common: common.into(),
        ..JobSpec::new("", Payload::Argv(Vec::new()))
    };
    Ok(Changes { fields, values, throttle: w.throttle })
}

/// The job that a job becomes, within the bounds of a submitted one.
///
/// # Errors
/// The changes contradict each other or the job.
pub fn changed(changes: &Changes, job: &JobSpec) -> Result<JobSpec, Malformed> {
    let changed = changes.apply(job).map_err(Malformed)?;
    request_from_wire(request_to_wire(&changed.request))?;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_the_wire() {
        let mut values = JobSpec::new("", Payload::Argv(Vec::new()));
        (values.nice, values.time_limit, values.begin) = (-4, Some(Span(9)), Some(Timestamp(3)));
        values.request.nodes_min = 4;
        let fields = vec![Field::Nice, Field::TimeLimit, Field::Begin, Field::Nodes, Field::Throttle];
        let changes = Changes { fields, values, throttle: 7 };
        let (names, wire) = changes_to_wire(&changes);
        assert_eq!(changes_from_wire(&names, wire), Ok(changes));
    }

    #[test]
    fn what_cannot_change_is_named() {
        let values = v1::JobValues::default;
        let error = |names: &[&str], values| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            changes_from_wire(&names, values).unwrap_err().0
        };
        assert!(error(&["owner"], values()).contains("time-limit"));
        assert!(error(&["nice", "nice"], values()).contains("twice"));
        assert!(error(&[], values()).contains("nothing is to be changed"));
        assert!(error(&["time-limit"], v1::JobValues { time_limit: Some(-1), ..values() }).contains("time limit"));
    }
}
