//! From the options of `ephor job modify` to changes of a job.

use super::assemble::assemble;
use super::error::SubmitError;
use super::option::{Given, JobOption};
use super::{Caller, OPTIONS};
use crate::change::{Changes, Field};
use crate::job::Payload;

/// The field that an option is about; `None`: it is about something that stays as it was submitted.
fn field(option: JobOption) -> Option<Field> {
    Some(match option {
        JobOption::Queue => Field::Queue,
        JobOption::Account => Field::Account,
        JobOption::Qos => Field::Qos,
        JobOption::Comment => Field::Comment,
        JobOption::Time => Field::TimeLimit,
        JobOption::Nice => Field::Nice,
        JobOption::Begin => Field::Begin,
        JobOption::Deadline => Field::Deadline,
        JobOption::Dependency => Field::Dependencies,
        JobOption::Requeue | JobOption::NoRequeue => Field::Requeue,
        JobOption::Nodes => Field::Nodes,
        JobOption::Tasks => Field::Tasks,
        JobOption::TasksPerNode => Field::TasksPerNode,
        JobOption::CpusPerTask => Field::CpusPerTask,
        JobOption::Mem | JobOption::MemPerCpu => Field::Mem,
        JobOption::Gres | JobOption::Gpus | JobOption::GpusPerNode | JobOption::GpusPerTask => Field::Gpus,
        JobOption::Constraint => Field::Features,
        JobOption::Topology | JobOption::TopologyPrefer => Field::Topology,
        JobOption::NodeList => Field::NodeList,
        JobOption::Exclude => Field::Exclude,
        JobOption::Exclusive => Field::Exclusive,
        _ => return None,
    })
}

/// Whether an empty value takes the field away.
fn clears(option: JobOption) -> bool {
    matches!(
        option,
        JobOption::Qos
            | JobOption::Comment
            | JobOption::Begin
            | JobOption::Deadline
            | JobOption::Dependency
            | JobOption::Constraint
            | JobOption::Topology
            | JobOption::TopologyPrefer
            | JobOption::NodeList
            | JobOption::Exclude
    )
}

/// Whether `ephor job modify` takes an option.
pub fn is_changeable(option: JobOption) -> bool {
    field(option).is_some()
}

/// Reads changes. An empty value takes away what a job can be without, such as `--dependency=`.
///
/// # Errors
/// Options that change nothing of a submitted job, and whatever is wrong with a value.
pub fn changes(given: &[Given], caller: &Caller<'_>) -> Result<Changes, SubmitError> {
    let mut fields = Vec::new();
    for option in given {
        let name = || OPTIONS.iter().find(|def| def.option == option.option).map_or("", |def| def.long);
        let field = field(option.option).ok_or_else(|| {
            SubmitError::at(option.place, format!("--{} is settled when a job is submitted, and cannot change", name()))
        })?;
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    let is_cleared = |g: &&Given| clears(g.option) && g.value.as_deref().is_none_or(str::is_empty);
    let values: Vec<Given> = given.iter().filter(|g| !is_cleared(g)).cloned().collect();
    let (values, _) = assemble("", Payload::Argv(Vec::new()), &[], &values, caller)?;
    // GPUs for each task and in all together say how many tasks there are.
    if values.request.tasks.is_some() && !fields.contains(&Field::Tasks) {
        fields.push(Field::Tasks);
    }
    Ok(Changes { fields, values, throttle: 0 })
}
