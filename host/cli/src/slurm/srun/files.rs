//! Where the standard streams of a step's tasks lead: this process, a file that it opens, or files that nodes open.
//!
//! As in Slurm, a file that all tasks share is opened here, and one whose name differs by task or node there.

use ephor_model::pattern::{Names, TaskNames, differs_by_task, expand};
use ephor_proto::v1;
use ephor_slurm::srun::{Mode, Step};

/// Where one stream leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This process's own stream, of this task alone where one is named.
    Own(Option<u32>),
    /// A file here.
    Here(String),
    /// Files on the nodes, by this pattern.
    There(String),
    /// Nowhere.
    Nowhere,
}

impl Place {
    /// What nodes are told: a pattern, nothing where the stream is served, an empty text where there is none.
    pub fn on_nodes(&self) -> Option<String> {
        match self {
            Self::Own(_) | Self::Here(_) => None,
            Self::There(pattern) => Some(pattern.clone()),
            Self::Nowhere => Some(String::new()),
        }
    }

    /// The only task that has the stream.
    pub fn only(&self) -> Option<u32> {
        match self {
            Self::Own(task) => *task,
            Self::Here(_) | Self::There(_) | Self::Nowhere => None,
        }
    }
}

/// Where all three lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Standard input.
    pub stdin: Place,
    /// Standard output.
    pub stdout: Place,
    /// Standard error.
    pub stderr: Place,
    /// Files keep what they hold.
    pub append: bool,
}

impl Files {
    /// Works it out.
    pub fn of(step: &Step, plan: &v1::StepPlan) -> Self {
        let job = plan.attempt.map_or(0, |attempt| attempt.job);
        let names = Names {
            job,
            array: if plan.array_index.is_some() { plan.array_id } else { job },
            index: plan.array_index,
            name: step.name.as_deref().unwrap_or(&plan.job_name),
            user: &plan.user,
            node: "",
            task: Some(TaskNames { step: plan.step, rank: 0, place: 0 }),
        };
        let place = |mode: &Mode| match mode {
            Mode::All => Place::Own(None),
            Mode::Task(rank) => Place::Own(Some(*rank)),
            Mode::Nothing => Place::Nowhere,
            Mode::File(pattern) if differs_by_task(pattern) => Place::There(pattern.clone()),
            Mode::File(pattern) => Place::Here(expand(pattern, &names)),
        };
        let stderr = step.error.as_ref().unwrap_or(&step.output);
        Self { stdin: place(&step.input), stdout: place(&step.output), stderr: place(stderr), append: step.append }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_file_is_opened_here_and_others_there() {
        let plan = v1::StepPlan {
            attempt: Some(v1::AttemptRef { job: 5, attempt: 1 }),
            step: 2,
            job_name: "j".into(),
            ..v1::StepPlan::default()
        };
        let file = |name: &str| Mode::File(name.into());
        let of = |output: Mode, error: Option<Mode>| Files::of(&Step { output, error, ..Step::default() }, &plan);
        let shared = of(file("%x-%J"), None);
        assert_eq!((&shared.stdout, &shared.stderr), (&Place::Here("j-5.2".into()), &Place::Here("j-5.2".into())));
        assert_eq!(shared.stdout.on_nodes(), None);
        let apart = of(file("%j_%t"), Some(Mode::Nothing));
        assert_eq!((apart.stdout.on_nodes(), apart.stderr.on_nodes()), (Some("%j_%t".into()), Some(String::new())));
        assert_eq!(of(Mode::Task(3), None).stderr, Place::Own(Some(3)));
    }
}
