//! Changes to a job that was submitted: which of its fields may change, and the job that they make of it.

use crate::job::JobSpec;

/// A part of a job that may be changed after it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is the field of the job, or of its request, that has its name")]
pub enum Field {
    Queue,
    Account,
    Qos,
    Comment,
    TimeLimit,
    Nice,
    Begin,
    Deadline,
    Dependencies,
    Requeue,
    Nodes,
    Tasks,
    TasksPerNode,
    CpusPerTask,
    Mem,
    Gpus,
    Features,
    NodeList,
    Exclude,
    Exclusive,
    Throttle,
    Topology,
}

impl Field {
    /// All of them with the names that clients use.
    pub const NAMES: [(Self, &'static str); 22] = [
        (Self::Queue, "queue"),
        (Self::Account, "account"),
        (Self::Qos, "qos"),
        (Self::Comment, "comment"),
        (Self::TimeLimit, "time-limit"),
        (Self::Nice, "nice"),
        (Self::Begin, "begin"),
        (Self::Deadline, "deadline"),
        (Self::Dependencies, "dependencies"),
        (Self::Requeue, "requeue"),
        (Self::Nodes, "nodes"),
        (Self::Tasks, "tasks"),
        (Self::TasksPerNode, "tasks-per-node"),
        (Self::CpusPerTask, "cpus-per-task"),
        (Self::Mem, "mem"),
        (Self::Gpus, "gpus"),
        (Self::Features, "features"),
        (Self::NodeList, "node-list"),
        (Self::Exclude, "exclude"),
        (Self::Exclusive, "exclusive"),
        (Self::Throttle, "throttle"),
        (Self::Topology, "topology"),
    ];

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }

    /// The field of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(field, _)| *field)
    }

    /// Whether it may still change once the job, or an element of it, has started: what runs keeps what it holds, and
    /// is charged to where it was started.
    pub fn after_start(self) -> bool {
        matches!(
            self,
            Self::Comment
                | Self::TimeLimit
                | Self::Nice
                | Self::Begin
                | Self::Deadline
                | Self::Requeue
                | Self::Throttle
        )
    }

    /// Copies this field from one job to another.
    fn copy(self, from: &JobSpec, to: &mut JobSpec) {
        let (request, of) = (&mut to.request, &from.request);
        match self {
            Self::Queue => to.queue.clone_from(&from.queue),
            Self::Account => to.account.clone_from(&from.account),
            Self::Qos => to.qos.clone_from(&from.qos),
            Self::Comment => to.comment.clone_from(&from.comment),
            Self::TimeLimit => to.time_limit = from.time_limit,
            Self::Nice => to.nice = from.nice,
            Self::Begin => to.begin = from.begin,
            Self::Deadline => to.deadline = from.deadline,
            Self::Dependencies => {
                to.dependencies.clone_from(&from.dependencies);
                to.dependency_any = from.dependency_any;
            }
            Self::Requeue => to.requeue = from.requeue,
            Self::Nodes => (request.nodes_min, request.nodes_max) = (of.nodes_min, of.nodes_max),
            Self::Tasks => request.tasks = of.tasks,
            Self::TasksPerNode => request.tasks_per_node = of.tasks_per_node,
            Self::CpusPerTask => {
                (request.cpus_per_task, request.cpu_milli) = (of.cpus_per_task, of.cpu_milli);
            }
            Self::Mem => request.mem = of.mem,
            Self::Gpus => {
                request.gpus = of.gpus;
                request.gpu_types.clone_from(&of.gpu_types);
            }
            Self::Features => {
                request.features.clone_from(&of.features);
                request.constraint.clone_from(&of.constraint);
            }
            Self::NodeList => request.node_list.clone_from(&of.node_list),
            Self::Exclude => request.exclude.clone_from(&of.exclude),
            Self::Exclusive => request.exclusive = of.exclusive,
            Self::Topology => request.topology.clone_from(&of.topology),
            Self::Throttle => {
                if let Some(array) = &mut to.array {
                    array.throttle = from.array.as_ref().and_then(|a| a.throttle);
                }
            }
        }
    }

    /// The fields in which two jobs differ; `None`: they differ in what cannot be changed.
    pub fn differing(a: &JobSpec, b: &JobSpec) -> Option<Vec<Self>> {
        let mut same = a.clone();
        let mut fields = Vec::new();
        for (field, _) in Self::NAMES {
            let before = same.clone();
            field.copy(b, &mut same);
            if same != before {
                fields.push(field);
            }
        }
        (same == *b).then_some(fields)
    }
}

/// Fields with their new values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The fields that change, without repeats.
    pub fields: Vec<Field>,
    /// A job that holds their new values; the throttle is beside it.
    pub values: JobSpec,
    /// How many elements of the array may run at once; 0: any number.
    pub throttle: u32,
}

impl Changes {
    /// The job that a job becomes.
    ///
    /// # Errors
    /// The changes contradict each other or the job, in words.
    pub fn apply(&self, job: &JobSpec) -> Result<JobSpec, String> {
        let mut changed = job.clone();
        for field in self.fields.iter().filter(|f| **f != Field::Throttle) {
            field.copy(&self.values, &mut changed);
        }
        if self.fields.contains(&Field::Throttle) {
            let Some(array) = &mut changed.array else {
                return Err("the job is no array, so that it has no throttle".into());
            };
            array.throttle = (self.throttle > 0).then_some(self.throttle);
        }
        let request = &mut *changed.request;
        let listed = u32::try_from(request.node_list.len()).unwrap_or(u32::MAX);
        if let Some(most) = request.nodes_max.filter(|most| *most < listed) {
            return Err(format!("the job names {listed} nodes and takes at most {most}; change both"));
        }
        request.nodes_min = request.nodes_min.max(listed);
        if let Some(both) = request.node_list.iter().find(|n| request.exclude.contains(n)) {
            return Err(format!("node {both} is both asked for and excluded"));
        }
        if let Some(why) = request.contradiction() {
            return Err(why);
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ArraySpec;
    use crate::job::Payload;
    use crate::time::Span;

    fn job() -> JobSpec {
        JobSpec::new("x", Payload::Argv(vec!["true".into()]))
    }

    #[test]
    fn only_named_fields_change() {
        let mut values = job();
        (values.nice, values.comment, values.time_limit) = (5, Some("c".into()), Some(Span::minutes(1)));
        let changes = Changes { fields: vec![Field::Nice, Field::TimeLimit], values, throttle: 0 };
        let changed = changes.apply(&job()).unwrap();
        assert_eq!((changed.nice, changed.comment.clone(), changed.time_limit), (5, None, Some(Span::minutes(1))));
        assert_eq!(Field::differing(&job(), &changed), Some(vec![Field::TimeLimit, Field::Nice]));
        let other = JobSpec { name: "y".into(), ..changed };
        assert_eq!(Field::differing(&job(), &other), None);
    }

    #[test]
    fn a_throttle_is_for_arrays() {
        let changes = Changes { fields: vec![Field::Throttle], values: job(), throttle: 3 };
        assert!(changes.apply(&job()).unwrap_err().contains("no array"));
        let mut array = job();
        array.array = ArraySpec::parse("0-9%2").ok();
        let changed = changes.apply(&array).unwrap();
        assert_eq!(changed.array.as_ref().and_then(|a| a.throttle), Some(3));
        assert_eq!(Field::differing(&array, &changed), Some(vec![Field::Throttle]));
        let lifted = Changes { throttle: 0, ..changes }.apply(&changed).unwrap();
        assert_eq!(lifted.array.as_ref().and_then(|a| a.throttle), None);
    }

    #[test]
    fn every_field_has_its_name() {
        for (field, name) in Field::NAMES {
            assert_eq!(Field::parse(name), Some(field));
            assert_eq!(field.name(), name);
        }
        assert_eq!(Field::parse("owner"), None);
    }
}
