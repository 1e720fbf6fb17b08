//! GPUs as people ask for them: per node, per task or in all, whole or a part of one, of some types or any.

use super::quantity::{parse_count, parse_milli};
use crate::request::{GpuRequest, Request};

/// A number of GPUs, or a part of one, and the types that will do, where some are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpus {
    /// How many.
    pub count: u32,
    /// In place of a count: a part of one GPU in thousandths; 0: none.
    pub share: u32,
    /// Types, such as `a100`; none: any.
    pub kinds: Vec<String>,
}

/// Reads `[type[|type...]:]number`, where the number may be a part of one GPU such as `0.5`.
pub fn parse(text: &str) -> Result<Gpus, String> {
    if text.contains(',') {
        return Err(format!(
            "'{text}' asks for GPUs of several types at once, which does not work yet; write a100|h100:2 where either \
             type will do"
        ));
    }
    let (kinds, number) = match text.split_once(':') {
        Some((kinds, number)) => (kinds.split('|').map(str::to_owned).collect(), number),
        None => (Vec::new(), text),
    };
    if kinds.iter().any(String::is_empty) {
        return Err(format!("'{text}' names no type before the colon"));
    }
    let hint = |e| format!("{e}; write a number of GPUs like 2 or a100:2, or a part of one like 0.5");
    let (count, share) = match number.contains('.') {
        true => match parse_milli(number).map_err(hint)? {
            milli if milli.is_multiple_of(1000) => (milli / 1000, 0),
            milli if milli < 1000 => (0, milli),
            _ => return Err(format!("'{number}' is more than one GPU; only a single one can be taken in part")),
        },
        false => (parse_count(number, 0).map_err(hint)?, 0),
    };
    Ok(Gpus { count, share, kinds })
}

/// Reads `gpu[:type][:number]`; `none` is no GPU.
pub fn parse_gres(text: &str) -> Result<Gpus, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Gpus::default());
    }
    let rest = text.strip_prefix("gres/").unwrap_or(text);
    let rest = rest.strip_prefix("gres:").unwrap_or(rest);
    match rest.strip_prefix("gpu") {
        Some("") => Ok(Gpus { count: 1, ..Gpus::default() }),
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
    let mut kinds: Vec<&Vec<String>> = all.iter().filter_map(|g| Some(&g.as_ref()?.kinds)).collect();
    kinds.retain(|kinds| !kinds.is_empty());
    kinds.dedup();
    if kinds.len() > 1 {
        return Err("the options ask for several types of GPU; write a100|h100:2 where either type will do".into());
    }
    request.set_gpu_types(kinds.first().map(|kinds| (*kinds).clone()).unwrap_or_default());
    if all.iter().any(|g| g.as_ref().is_some_and(|g| g.share > 0)) {
        return settle_share(&asked, request);
    }
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
    if request.gpus == GpuRequest::None {
        request.gpu_types.clear();
    }
    Ok(())
}

/// Puts a part of one GPU into the request.
fn settle_share(asked: &Asked, request: &mut Request) -> Result<(), String> {
    let mut shares = [&asked.per_node, &asked.gres, &asked.per_task, &asked.total].into_iter().flatten();
    let share = shares.next().map_or(0, |g| g.share);
    if share == 0 || shares.any(|g| g.share != share) {
        return Err("the options ask for different parts of a GPU; keep one of them".into());
    }
    if asked.per_task.is_some() && request.task_count() > 1 {
        return Err("a part of a GPU for each of several tasks does not work yet; use --gpus-per-node".into());
    }
    if asked.total.is_some() {
        if request.nodes_min > 1 {
            return Err("--gpus asks for a part of one GPU, which is on one node; use --gpus-per-node".into());
        }
        request.nodes_max = Some(1);
    }
    request.gpus = GpuRequest::Share(share);
    Ok(())
}
