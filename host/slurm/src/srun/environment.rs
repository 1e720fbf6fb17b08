//! The environment of a step's tasks: what they get of the caller's, and what tells them of the step.

use super::Step;
use ephor_model::submit::{hostlist, split_list};

/// How the names of variables begin that every step gets, whatever is exported: they say which job this is.
const ALWAYS: [&str; 2] = ["SLURM_", "EPHOR_"];

/// What of the caller's environment the tasks get.
///
/// # Errors
/// A rule that does not read.
pub fn exported(rule: Option<&str>, caller: &[String]) -> Result<Vec<String>, String> {
    let mut all = rule.is_none();
    let mut named: Vec<String> = Vec::new();
    for item in rule.map(split_list).transpose()?.unwrap_or_default() {
        match item.as_str() {
            "ALL" => all = true,
            "NONE" | "NIL" => {}
            "" => return Err("the list of variables has an empty entry".into()),
            _ if item.starts_with('=') => return Err(format!("'{item}' has no name before the =")),
            _ if item.contains('=') => named.push(item),
            _ => named.extend(caller.iter().find(|entry| name_of(entry) == item).cloned()),
        }
    }
    let kept = |entry: &&String| {
        let name = name_of(entry);
        (all || ALWAYS.iter().any(|begin| name.starts_with(begin))) && !named.iter().any(|other| name_of(other) == name)
    };
    let mut out: Vec<String> = caller.iter().filter(kept).cloned().collect();
    out.append(&mut named);
    Ok(out)
}

fn name_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(name, _)| name)
}

/// A step that was given its nodes, as its tasks are told of it.
#[derive(Clone, Debug)]
pub struct Launched<'a> {
    /// Number of the step.
    pub step: u32,
    /// Names of its nodes, in order.
    pub nodes: &'a [String],
    /// Tasks of each.
    pub tasks: &'a [u64],
    /// Where its streams are served: the first address.
    pub address: &'a str,
    /// And its port.
    pub port: u16,
    /// Rights that new files do not get.
    pub umask: u32,
}

/// Sets what all tasks are told of the step. What differs by node or task is added there.
pub fn describe(environment: &mut Vec<String>, asked: &Step, launched: &Launched<'_>) {
    let nodes = hostlist::fold(launched.nodes);
    let count: u64 = launched.tasks.iter().sum();
    let (count, step, port) = (count.to_string(), launched.step.to_string(), launched.port.to_string());
    let per_node = crate::value::count::by_node(launched.tasks);
    let mut own = vec![
        ("EPHOR_STEP_ID", step.clone()),
        ("SLURM_STEP_ID", step.clone()),
        ("SLURM_STEPID", step),
        ("SLURM_STEP_NODELIST", nodes.clone()),
        ("SLURM_STEP_NUM_NODES", launched.nodes.len().to_string()),
        ("SLURM_STEP_NUM_TASKS", count.clone()),
        ("SLURM_STEP_TASKS_PER_NODE", per_node.clone()),
        ("SLURM_STEP_LAUNCHER_PORT", port.clone()),
        ("SLURM_NTASKS", count.clone()),
        ("SLURM_NPROCS", count),
        ("SLURM_NNODES", launched.nodes.len().to_string()),
        ("SLURM_NODELIST", nodes),
        ("SLURM_TASKS_PER_NODE", per_node),
        ("SLURM_DISTRIBUTION", if asked.cyclic { "cyclic" } else { "block" }.to_owned()),
        ("SLURM_LAUNCH_NODE_IPADDR", launched.address.to_owned()),
        ("SLURM_SRUN_COMM_HOST", launched.address.to_owned()),
        ("SLURM_SRUN_COMM_PORT", port),
        ("SLURM_UMASK", format!("{:04o}", launched.umask)),
    ];
    let numbers = [
        ("SLURM_CPUS_PER_TASK", asked.cpus_per_task),
        ("SLURM_NTASKS_PER_NODE", asked.tasks_per_node),
        ("SLURM_GPUS_PER_TASK", asked.gpus_per_task),
    ];
    own.extend(numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string()))));
    own.extend(asked.name.clone().map(|name| ("SLURM_JOB_NAME", name)));
    environment.retain(|entry| !own.iter().any(|(name, _)| name_of(entry) == *name));
    environment.extend(own.into_iter().map(|(name, value)| format!("{name}={value}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_knows_its_job_whatever_is_exported() {
        let caller = ["A=1", "B=2", "SLURM_JOB_ID=5", "EPHOR_JOB_ID=5", "PATH=/bin"].map(str::to_owned);
        let given = |rule| exported(rule, &caller).unwrap().join(" ");
        assert_eq!(given(None), "A=1 B=2 SLURM_JOB_ID=5 EPHOR_JOB_ID=5 PATH=/bin");
        assert_eq!(given(Some("NONE")), "SLURM_JOB_ID=5 EPHOR_JOB_ID=5");
        assert_eq!(given(Some("B,MISSING,C='x,y'")), "SLURM_JOB_ID=5 EPHOR_JOB_ID=5 B=2 C=x,y");
        assert_eq!(given(Some("ALL,A=9")), "B=2 SLURM_JOB_ID=5 EPHOR_JOB_ID=5 PATH=/bin A=9");
        assert!(exported(Some("A,,B"), &caller).is_err() && exported(Some("=1"), &caller).is_err());
    }

    #[test]
    fn tasks_are_told_of_their_step() {
        let mut environment = vec!["SLURM_NTASKS=8".to_owned(), "SLURM_JOB_NUM_NODES=3".into()];
        let asked = Step { cpus_per_task: Some(2), name: Some("train".into()), ..Step::default() };
        let nodes = ["n2".to_owned(), "n3".into()];
        let launched =
            Launched { step: 3, nodes: &nodes, tasks: &[2, 2], address: "10.0.0.1", port: 6000, umask: 0o22 };
        describe(&mut environment, &asked, &launched);
        for entry in [
            "SLURM_JOB_NUM_NODES=3",
            "SLURM_NTASKS=4",
            "SLURM_STEP_ID=3",
            "SLURM_STEP_NODELIST=n[2-3]",
            "SLURM_STEP_TASKS_PER_NODE=2(x2)",
            "SLURM_CPUS_PER_TASK=2",
            "SLURM_JOB_NAME=train",
            "SLURM_SRUN_COMM_PORT=6000",
            "SLURM_UMASK=0022",
        ] {
            assert!(environment.iter().any(|e| e == entry), "{entry} is not in {environment:?}");
        }
        assert_eq!(environment.iter().filter(|e| e.starts_with("SLURM_NTASKS=")).count(), 1);
    }
}
