//! Conversions between wire messages and the model's types.

use crate::limits::{licences_from_wire, licences_to_wire};
use crate::v1;
use ephor_model::{
    Amounts, ArraySpec, Blobs, Constraint, Dependency, DependencyKind, Draft, GpuRequest, JobCommon, JobId, JobSpec,
    MemRequest, OpenMode, Owner, Payload, Request, ResourceId, Span, Timestamp, Topology, WarningSignal, limits,
};

/// A message whose content is not a job, with what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

pub(crate) fn bad<T>(text: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed(text.into()))
}

/// Writes a request.
pub fn request_to_wire(r: &Request) -> v1::Request {
    let (mem_per_node, mem_per_cpu) = match r.mem {
        MemRequest::Unset => (None, None),
        MemRequest::PerNode(n) => (Some(n), None),
        MemRequest::PerCpu(n) => (None, Some(n)),
    };
    let (gpus_per_node, gpus_per_task, gpus_total, gpu_share) = match r.gpus {
        GpuRequest::None => (None, None, None, None),
        GpuRequest::PerNode(n) => (Some(n), None, None, None),
        GpuRequest::PerTask(n) => (None, Some(n), None, None),
        GpuRequest::Total(n) => (None, None, Some(n), None),
        GpuRequest::Share(n) => (None, None, None, Some(n)),
    };
    v1::Request {
        nodes_min: r.nodes_min,
        nodes_max: r.nodes_max,
        tasks: r.tasks,
        tasks_per_node: r.tasks_per_node,
        cpus_per_task: r.cpus_per_task,
        mem_per_node,
        mem_per_cpu,
        gpus_per_node,
        gpus_per_task,
        gpus_total,
        gpu_types: r.gpu_types.clone(),
        features: r.features.clone(),
        node_list: r.node_list.clone(),
        exclude: r.exclude.clone(),
        exclusive: r.exclusive,
        gpu_share,
        cpu_milli: r.cpu_milli,
        constraint: r.constraint.as_ref().map(ToString::to_string),
        topology: r.topology.as_ref().map(|t| t.level.clone()),
        topology_preferred: r.topology.as_ref().is_some_and(|t| !t.required),
    }
}

/// Reads a request; 0 nodes or cores mean 1.
///
/// # Errors
/// Two ways to ask for memory or GPUs at once; counts above [`limits`]; fewer tasks than nodes.
pub fn request_from_wire(w: v1::Request) -> Result<Request, Malformed> {
    let mem = match (w.mem_per_node, w.mem_per_cpu) {
        (None, None) => MemRequest::Unset,
        (Some(n), None) => MemRequest::PerNode(n),
        (None, Some(n)) => MemRequest::PerCpu(n),
        _ => return bad("memory per node and memory per core exclude each other; ask for one"),
    };
    let gpus = match (w.gpus_per_node, w.gpus_per_task, w.gpus_total, w.gpu_share) {
        (None | Some(0), None, None, None)
        | (None, Some(0), None, None)
        | (None, None, Some(0), None)
        | (None, None, None, Some(0)) => GpuRequest::None,
        (Some(n), None, None, None) => GpuRequest::PerNode(n),
        (None, Some(n), None, None) => GpuRequest::PerTask(n),
        (None, None, Some(n), None) => GpuRequest::Total(n),
        (None, None, None, Some(n)) if n < 1000 => GpuRequest::Share(n),
        (None, None, None, Some(n)) => return bad(format!("{n} thousandths of a GPU are no part of one; at most 999")),
        _ => return bad("GPUs per node, per task, in all and a part of one exclude each other; ask for one"),
    };
    let mut request = Request {
        nodes_min: w.nodes_min.max(1),
        nodes_max: w.nodes_max,
        tasks: w.tasks,
        tasks_per_node: w.tasks_per_node,
        cpus_per_task: w.cpus_per_task.max(1),
        mem,
        gpus,
        gpu_types: Vec::new(),
        features: w.features,
        node_list: w.node_list,
        exclude: w.exclude,
        exclusive: w.exclusive,
        cpu_milli: None,
        constraint: w.constraint.as_deref().map(constraint).transpose()?.flatten(),
        topology: w
            .topology
            .map(|level| Topology::read(&level, !w.topology_preferred))
            .transpose()
            .map_err(Malformed)?,
    };
    request.set_gpu_types(w.gpu_types);
    if let Some(milli) = w.cpu_milli.filter(|n| *n > 0) {
        request.set_cpu_milli(milli);
    }
    if let Some(why) = request.contradiction() {
        return bad(why);
    }
    if request.nodes_max.is_some_and(|max| max < request.nodes_min) {
        return bad(format!("at most {:?} nodes is fewer than at least {}", request.nodes_max, request.nodes_min));
    }
    if request.nodes_min > limits::NODES || request.task_count() > limits::TASKS {
        return bad(format!("at most {} nodes and {} tasks can be asked for", limits::NODES, limits::TASKS));
    }
    if request.tasks == Some(0) || request.tasks_per_node == Some(0) {
        return bad("0 tasks would do nothing; ask for at least 1");
    }
    if u64::from(request.cpus_per_task) * 1000 > limits::AMOUNT as u64
        || mem_amount(request.mem) > limits::AMOUNT as u64
    {
        return bad("the amount asked for is larger than anything that can be counted");
    }
    Ok(request)
}

fn constraint(text: &str) -> Result<Option<Constraint>, Malformed> {
    if text.len() > limits::TEXT_BYTES {
        return bad(format!("the constraint has {} bytes; at most {} are taken", text.len(), limits::TEXT_BYTES));
    }
    match Constraint::parse(text).map_err(Malformed)? {
        (features, constraint) if features.is_empty() => Ok(constraint),
        (features, _) => bad(format!("{} belongs into the features of the request", features.join("&"))),
    }
}

fn mem_amount(mem: MemRequest) -> u64 {
    match mem {
        MemRequest::Unset => 0,
        MemRequest::PerNode(n) | MemRequest::PerCpu(n) => n,
    }
}

/// Writes a draft for [`v1::ephor_client::EphorClient::submit`]. The owner stays behind: it is the connection's.
pub fn draft_to_wire(draft: &Draft) -> v1::SubmitRequest {
    let s = &draft.spec;
    let (args, argv) = match &s.payload {
        Payload::Script { args } => (args.clone(), Vec::new()),
        Payload::Argv(argv) => (Vec::new(), argv.clone()),
    };
    v1::SubmitRequest {
        name: s.name.clone(),
        queue: s.queue.clone(),
        account: s.account.clone(),
        qos: s.qos.clone(),
        comment: s.comment.clone(),
        script: draft.blobs.script.clone(),
        args,
        argv,
        environment: environment_entries(&draft.blobs.environment),
        work_dir: s.work_dir.clone(),
        stdin: s.stdin.clone(),
        stdout: s.stdout.clone(),
        stderr: s.stderr.clone(),
        append: s.open_mode == OpenMode::Append,
        time_limit: s.time_limit.map(|t| t.0),
        request: Some(request_to_wire(&s.request)),
        nice: s.nice,
        hold: s.hold,
        begin: s.begin.map(|t| t.0),
        dependencies: dependencies_to_wire(&s.dependencies),
        dependency_any: s.dependency_any,
        requeue: s.requeue,
        array: s.array.as_ref().map(ToString::to_string),
        licences: licences_to_wire(&s.licences),
        words: words_to_wire(&s.words),
        reservation: s.reservation.clone(),
        deadline: s.deadline.map(|t| t.0),
        signal: s.signal.map(signal_to_wire),
    }
}

/// The entries of an environment blob; entries that are not UTF-8 are left out.
pub fn environment_entries(blob: &[u8]) -> Vec<String> {
    blob.split(|b| *b == 0).filter(|e| !e.is_empty()).filter_map(|e| String::from_utf8(e.to_vec()).ok()).collect()
}

/// Checks the texts of a request.
pub(crate) fn request_texts(request: &Request) -> Result<(), Malformed> {
    let all = request.features.iter().chain(&request.node_list).chain(&request.exclude).chain(&request.gpu_types);
    all.into_iter().try_for_each(|name| text("a feature, node or GPU type", name, limits::NAME_BYTES))
}

/// Checks a nice value and a time limit in milliseconds.
pub(crate) fn numbers(nice: i64, time_limit: Option<i64>) -> Result<(), Malformed> {
    if !(-limits::NICE..=limits::NICE).contains(&nice) {
        return bad(format!("nice {nice} is beyond ±{}", limits::NICE));
    }
    if time_limit.is_some_and(|t| t <= 0 || t > limits::TIME_LIMIT_MS) {
        return bad("the time limit must be above 0 and at most 100 years");
    }
    Ok(())
}

/// Writes dependencies.
pub fn dependencies_to_wire(all: &[Dependency]) -> Vec<v1::Dependency> {
    all.iter().map(|d| v1::Dependency { kind: d.kind.name().into(), job: d.job.0, index: d.index }).collect()
}

/// Reads dependencies.
///
/// # Errors
/// Too many of them, unknown kinds, and kinds that name a job too many or too few.
pub(crate) fn dependencies_from_wire(wire: &[v1::Dependency]) -> Result<Vec<Dependency>, Malformed> {
    if wire.len() > limits::DEPENDENCIES {
        return bad(format!("{} dependencies are more than {}", wire.len(), limits::DEPENDENCIES));
    }
    let read = |d: &v1::Dependency| {
        let Some((kind, _)) = DependencyKind::NAMES.iter().find(|(_, name)| *name == d.kind) else {
            let names: Vec<&str> = DependencyKind::NAMES.iter().map(|(_, name)| *name).collect();
            return bad(format!("'{}' is not a dependency; there are {}", d.kind, names.join(", ")));
        };
        let alone = *kind == DependencyKind::Singleton;
        if alone != (d.job == 0) || (d.index.is_some() && (alone || *kind == DependencyKind::AfterCorr)) {
            return bad(format!("the dependency {} names a job or an element too many or too few", d.kind));
        }
        Ok(Dependency { kind: *kind, job: JobId(d.job), index: d.index })
    };
    wire.iter().map(read).collect()
}

pub(crate) fn text(what: &str, value: &str, max: usize) -> Result<(), Malformed> {
    if value.len() > max {
        return bad(format!("{what} has {} bytes; at most {max} are taken", value.len()));
    }
    if value.contains('\0') {
        return bad(format!("{what} holds a NUL byte"));
    }
    Ok(())
}

/// Reads a submitted job and checks every bound that needs no knowledge of the cluster.
///
/// # Errors
/// Whatever is malformed or too large, named with its bound.
pub fn draft_from_wire(w: v1::SubmitRequest) -> Result<Draft, Malformed> {
    let payload = match (&w.script, w.argv.is_empty()) {
        (Some(script), true) if script.is_empty() => return bad("the script is empty"),
        (Some(script), true) if script.contains(&0) => return bad("the script holds a NUL byte: it is no text"),
        (Some(script), true) if script.len() > limits::SCRIPT_BYTES => {
            return bad(format!("the script has {} bytes; at most {} are taken", script.len(), limits::SCRIPT_BYTES));
        }
        (Some(_), true) => Payload::Script { args: w.args },
        (None, false) => Payload::Argv(w.argv),
        _ => return bad("a job has either a script or a command"),
    };
    let arguments = match &payload {
        Payload::Script { args } | Payload::Argv(args) => args,
    };
    if arguments.iter().any(|a| a.contains('\0')) {
        return bad("an argument holds a NUL byte");
    }
    if arguments.iter().map(|a| a.len() + 1).sum::<usize>() > limits::ARGUMENT_BYTES {
        return bad(format!("the arguments have more than {} bytes", limits::ARGUMENT_BYTES));
    }
    let mut environment = Vec::new();
    for entry in &w.environment {
        if entry.contains('\0') || !entry.contains('=') {
            return bad(format!("'{}' is not an environment entry NAME=value", entry.escape_debug()));
        }
        environment.extend_from_slice(entry.as_bytes());
        environment.push(0);
    }
    if environment.len() > limits::ENVIRONMENT_BYTES {
        return bad(format!(
            "the environment has {} bytes; at most {} are taken",
            environment.len(),
            limits::ENVIRONMENT_BYTES
        ));
    }
    let texts =
        [Some(&w.name), Some(&w.work_dir), w.comment.as_ref(), w.stdin.as_ref(), w.stdout.as_ref(), w.stderr.as_ref()];
    for value in texts.into_iter().flatten() {
        text("a name, path or comment", value, limits::TEXT_BYTES)?;
    }
    let names = [Some(&w.queue), Some(&w.account), w.qos.as_ref(), w.reservation.as_ref()];
    for value in names.into_iter().flatten() {
        text("the name of a queue, account, QOS or reservation", value, limits::NAME_BYTES)?;
    }
    if !w.work_dir.starts_with('/') {
        return bad(format!("the working folder '{}' is not an absolute path", w.work_dir));
    }
    numbers(w.nice, w.time_limit)?;
    let dependencies = dependencies_from_wire(&w.dependencies)?;
    let array = w.array.as_deref().map(ArraySpec::parse).transpose().map_err(|e| Malformed(e.to_string()))?;
    let request = request_from_wire(w.request.unwrap_or_default())?;
    request_texts(&request)?;
    let common = JobCommon {
        owner: Owner::default(),
        queue: w.queue,
        account: w.account,
        qos: w.qos,
        comment: w.comment,
        work_dir: w.work_dir,
        stdin: w.stdin,
        stdout: w.stdout,
        stderr: w.stderr,
        open_mode: if w.append { OpenMode::Append } else { OpenMode::Truncate },
        nice: w.nice,
        hold: w.hold,
        begin: w.begin.map(Timestamp),
        dependencies,
        dependency_any: w.dependency_any,
        requeue: w.requeue,
        array,
        licences: licences_from_wire(w.licences)?,
        words: words_from_wire(w.words)?,
        reservation: w.reservation,
        deadline: w.deadline.map(Timestamp),
        signal: w.signal.map(signal_from_wire).transpose()?,
    };
    let spec = JobSpec {
        time_limit: w.time_limit.map(Span),
        request: request.into(),
        common: common.into(),
        ..JobSpec::new(&w.name, payload)
    };
    Ok(Draft { spec, blobs: Blobs { script: w.script, environment } })
}

/// Writes a signal before the time limit.
pub fn signal_to_wire(signal: WarningSignal) -> v1::WarningSignal {
    v1::WarningSignal { number: signal.number, before_ms: signal.before.0, to_script: signal.to_script }
}

/// Reads one.
///
/// # Errors
/// Its number or its time is out of bounds.
pub fn signal_from_wire(wire: v1::WarningSignal) -> Result<WarningSignal, Malformed> {
    let v1::WarningSignal { number, before_ms, to_script } = wire;
    let signal = WarningSignal { number, before: Span(before_ms), to_script };
    match signal.is_sound() {
        true => Ok(signal),
        false => bad(format!("signal {number} {before_ms} ms before the time limit is out of bounds")),
    }
}

/// Writes how a job was asked for.
pub fn words_to_wire(words: &[(String, String)]) -> Vec<v1::Word> {
    words.iter().map(|(name, text)| v1::Word { name: name.clone(), text: text.clone() }).collect()
}

fn words_from_wire(wire: Vec<v1::Word>) -> Result<Vec<(String, String)>, Malformed> {
    if wire.len() > limits::WORDS {
        return bad(format!("{} words about how the job was asked for are more than {}", wire.len(), limits::WORDS));
    }
    for word in &wire {
        text("a word about how the job was asked for", &word.name, limits::NAME_BYTES)?;
        text("a word about how the job was asked for", &word.text, limits::TEXT_BYTES)?;
    }
    Ok(wire.into_iter().map(|word| (word.name, word.text)).collect())
}

/// Writes amounts by name; `name_of` knows the site's own resources.
pub fn amounts_to_wire(amounts: &Amounts, name_of: impl Fn(ResourceId) -> String) -> Vec<v1::Amount> {
    amounts.iter().map(|(id, value)| v1::Amount { resource: name_of(id), value }).collect()
}

/// Reads amounts by name.
///
/// # Errors
/// A name that `id_of` does not know, a negative or too large amount.
pub fn amounts_from_wire(
    wire: &[v1::Amount],
    id_of: impl Fn(&str) -> Option<ResourceId>,
) -> Result<Amounts, Malformed> {
    wire.iter()
        .map(|a| {
            let id = id_of(&a.resource).ok_or_else(|| Malformed(format!("'{}' is not a resource here", a.resource)))?;
            if !(0..=limits::AMOUNT).contains(&a.value) {
                return bad(format!("{} of {} is out of range", a.value, a.resource));
            }
            Ok((id, a.value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_survives_the_wire() {
        let mut spec = JobSpec::new("x", Payload::Script { args: vec!["a".into()] });
        spec.request.mem = MemRequest::PerCpu(100);
        spec.request.gpus = GpuRequest::Share(250);
        spec.request.set_gpu_types(vec!["b".into(), "a".into()]);
        spec.request.set_cpu_milli(1500);
        spec.request.topology = Topology::read("rack", false).ok();
        spec.request.constraint = Constraint::parse("(a&b)|c").unwrap().1;
        spec.array = ArraySpec::parse("1-9:2%3").ok();
        spec.licences = vec![("solver".into(), 2)];
        spec.dependencies = vec![
            Dependency { kind: DependencyKind::AfterOk, job: JobId(7), index: Some(0) },
            Dependency::on(DependencyKind::Singleton, JobId(0)),
        ];
        spec.deadline = Some(Timestamp(5));
        spec.signal = WarningSignal::parse("B:USR1@600").ok();
        let draft =
            Draft { spec, blobs: Blobs { script: Some(b"#!/bin/sh\n".to_vec()), environment: b"A=1\0B=\0".to_vec() } };
        assert_eq!(draft_from_wire(draft_to_wire(&draft)), Ok(draft));
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let good = draft_to_wire(&Draft {
            spec: JobSpec::new("x", Payload::Argv(vec!["true".into()])),
            blobs: Blobs::default(),
        });
        let error = |change: fn(&mut v1::SubmitRequest)| {
            let mut wire = good.clone();
            change(&mut wire);
            draft_from_wire(wire).unwrap_err().0
        };
        let request = |w: v1::Request| request_from_wire(w).unwrap_err().0;
        assert!(request(v1::Request { gpu_share: Some(1000), ..v1::Request::default() }).contains("at most 999"));
        let both = v1::Request { gpu_share: Some(1), gpus_total: Some(1), ..v1::Request::default() };
        assert!(request(both).contains("exclude each other"));
        assert!(error(|w| w.argv.clear()).contains("script or a command"));
        assert!(error(|w| w.name = "a\0b".into()).contains("NUL"));
        assert!(error(|w| w.time_limit = Some(0)).contains("time limit"));
        assert!(error(|w| w.array = Some("9-1".into())).contains("backwards"));
        assert!(error(|w| w.work_dir = "here".into()).contains("absolute"));
        assert!(error(|w| w.environment.push("x".into())).contains("NAME=value"));
        let depends = |kind: &str, job, index| vec![v1::Dependency { kind: kind.into(), job, index }];
        for wrong in [depends("singleton", 1, None), depends("afterok", 0, None), depends("aftercorr", 1, Some(1))] {
            let wire = v1::SubmitRequest { dependencies: wrong, ..good.clone() };
            assert!(draft_from_wire(wire).unwrap_err().0.contains("too many or too few"));
        }
        let signal = Some(v1::WarningSignal { number: 40, ..v1::WarningSignal::default() });
        assert!(draft_from_wire(v1::SubmitRequest { signal, ..good.clone() }).unwrap_err().0.contains("signal 40"));
        let wire = v1::SubmitRequest { nice: i64::MIN, ..good.clone() };
        assert!(draft_from_wire(wire).unwrap_err().0.contains("nice"));
    }
}
