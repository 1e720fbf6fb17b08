//! GPUs as people ask for them: per node, per task or in all, with or without a type.

use super::quantity::parse_count;
use crate::request::{GpuRequest, Request};

/// A number of GPUs and their type, where one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    /// How many.
    pub count: u32,
    /// Type, such as `a100`; `None`: any.
    pub kind: Option<String>,
}

/// Reads `[type:]number`.
pub fn parse(text: &str) -> Result<Gpus, String> {
    if text.contains(',') {
        return Err(format!("'{text}' asks for several types of GPU, which does not work yet; name one"));
    }
    let (kind, count) = match text.split_once(':') {
        Some((kind, count)) => (Some(kind), count),
        None => (None, text),
    };
    if kind.is_some_and(str::is_empty) {
        return Err(format!("'{text}' names no type before the colon"));
    }
    let count = parse_count(count, 0).map_err(|e| format!("{e}; write a number of GPUs like 2 or a100:2"))?;
    Ok(Gpus { count, kind: kind.map(Into::into) })
}

/// Reads `gpu[:type][:number]`; `none` is no GPU.
pub fn parse_gres(text: &str) -> Result<Gpus, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Gpus { count: 0, kind: None });
    }
    let rest = text.strip_prefix("gres/").unwrap_or(text);
    let rest = rest.strip_prefix("gres:").unwrap_or(rest);
    match rest.strip_prefix("gpu") {
        Some("") => Ok(Gpus { count: 1, kind: None }),
        Some(rest) if rest.starts_with(':') => match rest[1..].split_once(':') {
            // A single word is a number where it looks like one, else a type.
            None if !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => parse(&format!("{}:1", &rest[1..])),
            _ => parse(&rest[1..]),
        },
        _ => Err(format!("'{text}' is not something that nodes count yet; write gpu, gpu:2 or gpu:a100:2")),
    }
}

/// The ways in which one job asked for GPUs.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `--gpus-per-node`.
    pub per_node: Option<Gpus>,
    /// `--gres`: another word for per node.
    pub gres: Option<Gpus>,
    /// `--gpus-per-task`.
    pub per_task: Option<Gpus>,
    /// `--gpus`.
    pub total: Option<Gpus>,
}

/// Puts them into the request, whose nodes and tasks are known. Several ways stand together where they amount to the
/// same.
pub fn settle(asked: Asked, request: &mut Request) -> Result<(), String> {
    let all = [&asked.per_node, &asked.gres, &asked.per_task, &asked.total];
    let mut kinds: Vec<&String> = all.into_iter().flatten().filter_map(|g| g.kind.as_ref()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.len() > 1 {
        return Err("the options ask for several types of GPU, which does not work yet; name one".into());
    }
    let kind = kinds.first().map(|k| (*k).clone());
    let count = |gpus: &Option<Gpus>| gpus.as_ref().map(|g| g.count);
    let differ = |a: &str, b: &str| Err(format!("{a} and {b} ask for different numbers of GPUs; keep one of them"));
    let per_node = match (count(&asked.per_node), count(&asked.gres)) {
        (Some(a), Some(b)) if a != b => return differ("--gpus-per-node", "--gres"),
        (a, b) => a.or(b),
    };
    let (per_task, total) = (count(&asked.per_task), count(&asked.total));
    if let (Some(task), Some(all), None, None) = (per_task, total, request.tasks, request.tasks_per_node)
        && task > 0
        && all > 0
        && all.is_multiple_of(task)
    {
        request.tasks = Some(all / task);
    }
    let nodes = request.nodes_max.is_none_or(|max| max == request.nodes_min).then_some(request.nodes_min);
    let tasks = request.task_count();
    if let (Some(node), Some(task)) = (per_node, per_task) {
        let on_each = request.tasks_per_node.or_else(|| nodes.filter(|n| tasks.is_multiple_of(*n)).map(|n| tasks / n));
        if on_each.and_then(|t| t.checked_mul(task)) != Some(node) {
            return differ("--gpus-per-node (or --gres)", "--gpus-per-task");
        }
    }
    if let (Some(node), Some(all)) = (per_node, total)
        && nodes.and_then(|n| n.checked_mul(node)) != Some(all)
    {
        return differ("--gpus-per-node (or --gres)", "--gpus");
    }
    if let (Some(task), Some(all), None) = (per_task, total, per_node)
        && task.checked_mul(tasks) != Some(all)
    {
        return differ("--gpus-per-task", "--gpus");
    }
    request.gpus = match (per_node, per_task, total) {
        (Some(n), _, _) if n > 0 => GpuRequest::PerNode(n),
        (_, Some(n), _) if n > 0 => GpuRequest::PerTask(n),
        (_, _, Some(n)) if n > 0 => GpuRequest::Total(n),
        _ => GpuRequest::None,
    };
    request.gpu_type = kind.filter(|_| request.gpus != GpuRequest::None);
    Ok(())
}
