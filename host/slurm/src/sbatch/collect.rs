//! Takes the options of all sources in their order, checks each value, and makes the job of them.

use super::table::{Key, TABLE};
use super::{PROGRAM, Script, Submission, USAGE, environment, gpu, refused};
use crate::failure::Failure;
use crate::getopt::Given;
use crate::table::Fate;
use crate::value::{count, mail, memory, time, when};
use ephor_model::submit::{self, Caller, Dialect, JobOption, Place, hostlist};
use ephor_model::{ArraySpec, Constraint, Timestamp, WarningSignal, limits};

/// Where an option stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the script.
    Script,
    /// In the environment.
    Environment,
    /// On the command line.
    CommandLine,
}

/// The ways to ask for memory, of which one source may name one.
const MEMORY: [JobOption; 3] = [JobOption::Mem, JobOption::MemPerCpu, JobOption::MemPerGpu];

/// What is called the default name of the output file.
const OUTPUT: [&str; 2] = ["slurm-%j.out", "slurm-%A_%a.out"];

/// See the module.
pub struct Collector<'a> {
    caller: &'a Caller<'a>,
    /// Options of script and environment, and of the command line, in the model's words.
    before: Vec<submit::Given>,
    command_line: Vec<submit::Given>,
    /// Lines for standard error that stop nothing.
    pub warnings: Vec<String>,
    nodes: Option<(u32, u32)>,
    tasks: Option<u32>,
    node_list: Vec<String>,
    begin: Option<Timestamp>,
    deadline: Option<Timestamp>,
    mail: Option<String>,
    mail_user: Option<String>,
    oversubscribe: bool,
    /// What GPUs were asked for, as it was spelt: by the option that asked.
    spelt: Vec<(Key, String)>,
    mem_per_gpu: Option<u64>,
    parsable: bool,
    quiet: bool,
    wait: bool,
}

impl<'a> Collector<'a> {
    /// Nothing was given yet.
    pub fn new(caller: &'a Caller<'a>) -> Self {
        Self {
            caller,
            before: Vec::new(),
            command_line: Vec::new(),
            warnings: Vec::new(),
            nodes: None,
            tasks: None,
            node_list: Vec::new(),
            begin: None,
            deadline: None,
            mail: None,
            mail_user: None,
            oversubscribe: false,
            spelt: Vec::new(),
            mem_per_gpu: None,
            parsable: false,
            quiet: false,
            wait: false,
        }
    }

    /// Takes one option.
    ///
    /// # Errors
    /// Its value is none, or Ephor does not have it.
    pub fn take(&mut self, given: &Given<Key>, source: Source) -> Result<(), Failure> {
        let value = given.value.clone().unwrap_or_default();
        let long = given.long;
        let invalid = || Failure::error(PROGRAM, format!("Invalid --{long} specification"), USAGE);
        let mut put = |option, value: Option<String>| {
            let given = submit::Given { option, value, place: Place::CommandLine, dialect: Dialect::Slurm };
            match source {
                Source::CommandLine => self.command_line.push(given),
                Source::Script | Source::Environment => self.before.push(given),
            }
        };
        let number = |text: &str| {
            let text = format!("Invalid numeric value \"{text}\" for --{long}.");
            Failure::error(PROGRAM, text, 1)
        };
        let positive = |text: &str| count::positive(text).ok_or_else(|| number(text));
        match given.key {
            Key::Account => put(JobOption::Account, Some(value)),
            Key::Array => put(JobOption::Array, Some(array(&value)?)),
            Key::Begin | Key::Deadline => {
                let at = when::parse(&value, self.caller.now, self.caller.utc_offset)
                    .map_err(|line| invalid().after(line))?;
                match given.key {
                    Key::Begin => self.begin = Some(at).filter(|at| *at > self.caller.now),
                    _ if at > self.caller.now => self.deadline = Some(at),
                    _ => return Err(invalid().after(format!("{PROGRAM}: error: the deadline {value} is in the past"))),
                }
            }
            Key::Chdir => put(JobOption::Chdir, Some(value)),
            Key::Signal => {
                WarningSignal::parse(&value).map_err(|why| invalid().after(format!("{PROGRAM}: error: {why}")))?;
                put(JobOption::Signal, Some(value));
            }
            Key::Comment => put(JobOption::Comment, Some(value)),
            Key::Constraint => put(JobOption::Constraint, Some(constraint(&value)?)),
            Key::CpusPerGpu => put(JobOption::CpusPerGpu, Some(positive(&value)?.to_string())),
            Key::CpusPerTask => put(JobOption::CpusPerTask, Some(positive(&value)?.to_string())),
            Key::Dependency => put(JobOption::Dependency, Some(value)),
            Key::Error => put(JobOption::Error, Some(value)),
            Key::Exclude => put(JobOption::Exclude, Some(nodes(&value)?.join(","))),
            Key::Exclusive => match value.to_ascii_lowercase().as_str() {
                "" => put(JobOption::Exclusive, None),
                "user" | "mcs" => {
                    let near = "nodes are shared with nobody or with anybody; use --exclusive";
                    return Err(lacking(&format!("exclusive={value}"), near));
                }
                _ => return Err(invalid()),
            },
            Key::Export => put(JobOption::Export, Some(value).filter(|v| !v.is_empty())),
            Key::Gpus | Key::GpusPerNode | Key::GpusPerTask => {
                let (option, read) = (gpu_option(given.key), gpu::gpus(long, &value)?);
                put(option, Some(read.plain));
                self.spell(given.key, Some(read.shown));
            }
            Key::Gres => match gpu::gres(&value)? {
                Some(read) => {
                    put(JobOption::Gres, Some(format!("gpu:{}", read.plain)));
                    self.spell(given.key, Some(read.shown));
                }
                None => {
                    put(JobOption::Gres, Some("none".into()));
                    self.spell(given.key, None);
                }
            },
            Key::Hint => {
                if !["compute_bound", "memory_bound", "multithread", "nomultithread"].contains(&value.as_str()) {
                    let text = format!("unrecognized --hint argument \"{value}\", see --hint=help");
                    return Err(Failure::error(PROGRAM, text, 1));
                }
            }
            Key::Hold => put(JobOption::Hold, None),
            Key::Input => put(JobOption::Input, Some(value)),
            Key::JobName => put(JobOption::JobName, Some(value)),
            Key::KillOnInvalidDep => match value.to_ascii_lowercase().as_str() {
                "no" => {}
                "yes" => return Err(lacking("kill-on-invalid-dep=yes", "such a job waits; cancel it with scancel")),
                _ => return Err(invalid()),
            },
            Key::Licenses => put(JobOption::Licences, Some(licences(&value)?)),
            Key::MailType => {
                self.mail = Some(mail::parse(&value).ok_or_else(invalid)?).filter(|events| !events.is_empty());
            }
            Key::MailUser => self.mail_user = Some(value),
            Key::Mem | Key::MemPerCpu | Key::MemPerGpu => {
                let mib = memory::parse(&value).ok_or_else(invalid)?;
                if mib == 0 {
                    let near =
                        "all memory of a node is not there yet; name an amount such as --mem=64G, or use --exclusive";
                    return Err(lacking(&format!("{long}={value}"), near));
                }
                put(memory_option(given.key), Some(format!("{mib}M")));
                self.mem_per_gpu = (given.key == Key::MemPerGpu).then_some(mib);
            }
            Key::Nice => put(JobOption::Nice, nice(&value, invalid)?),
            Key::NoRequeue => put(JobOption::NoRequeue, None),
            Key::Requeue => put(JobOption::Requeue, None),
            Key::Nodelist => self.node_list = nodes(&value)?,
            Key::Nodes => {
                let read = count::nodes(&value).map_err(|text| Failure::error(PROGRAM, text, USAGE))?;
                self.nodes = Some(read);
            }
            Key::Ntasks => self.tasks = Some(positive(&value)?),
            Key::NtasksPerGpu => put(JobOption::TasksPerGpu, Some(positive(&value)?.to_string())),
            Key::NtasksPerNode => put(JobOption::TasksPerNode, Some(positive(&value)?.to_string())),
            Key::OpenMode => match value.bytes().next().map(|b| b.to_ascii_lowercase()) {
                Some(b'a') => put(JobOption::OpenMode, Some("append".into())),
                Some(b't') => put(JobOption::OpenMode, Some("truncate".into())),
                _ => return Err(invalid()),
            },
            Key::Output => put(JobOption::Output, Some(value)),
            Key::Oversubscribe => self.oversubscribe = true,
            Key::Partition => put(JobOption::Queue, Some(queue(&value)?)),
            Key::Qos => put(JobOption::Qos, Some(value)),
            Key::Reservation if value.contains(',') => {
                return Err(lacking(
                    &format!("reservation={value}"),
                    "a choice of reservations is not there yet; name one",
                ));
            }
            Key::Reservation => put(JobOption::Reservation, Some(value)),
            Key::ThreadsPerCore => {
                if positive(&value)? != 1 {
                    let near = "tasks get whole cores; leave it out";
                    return Err(lacking(&format!("threads-per-core={value}"), near));
                }
            }
            Key::Time => {
                let limit = time::parse(&value).ok_or_else(invalid)?;
                put(JobOption::Time, Some(limit.map_or(0, |span| span.0 / 60_000).to_string()));
            }
            Key::TimeMin => drop(time::parse(&value).ok_or_else(invalid)?),
            Key::Parsable => self.parsable = true,
            Key::Quiet => self.quiet = true,
            Key::Wait => self.wait = true,
            Key::Wrap if source != Source::CommandLine => {
                return Err(lacking("wrap", "in a script; it is the whole script on the command line"));
            }
            Key::Clusters
            | Key::Help
            | Key::IgnorePbs
            | Key::Usage
            | Key::Verbose
            | Key::Version
            | Key::Wrap
            | Key::Other(_) => {}
        }
        self.note(given)
    }

    /// Refuses or warns as the table says.
    fn note(&mut self, given: &Given<Key>) -> Result<(), Failure> {
        let Some(def) = TABLE.iter().find(|def| def.key == given.key) else { return Ok(()) };
        match def.fate {
            Fate::Refused(near) => Err(lacking(given.long, near)),
            Fate::Ignored(why) => {
                let line = format!("{PROGRAM}: Warning: --{} has no effect: {why}", def.long);
                if !self.warnings.contains(&line) {
                    self.warnings.push(line);
                }
                Ok(())
            }
            Fate::Works | Fate::Differs(_) | Fate::Void(_) => Ok(()),
        }
    }

    fn spell(&mut self, key: Key, shown: Option<String>) {
        self.spelt.retain(|(other, _)| *other != key);
        self.spelt.extend(shown.map(|shown| (key, shown)));
    }

    /// Makes the job.
    ///
    /// # Errors
    /// What does not belong together.
    pub fn finish(mut self, script: Script, args: Vec<String>) -> Result<Submission, Failure> {
        for options in [&self.before, &self.command_line] {
            let named = MEMORY.iter().filter(|way| options.iter().any(|given| given.option == **way)).count();
            if named > 1 {
                return Err(Failure::fatal(PROGRAM, "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."));
            }
        }
        self.count_nodes()?;
        let Script { text, name, .. } = script;
        let draft = submit::draft_of(text, args, &name, &self.before, &self.command_line, self.caller);
        let mut draft = draft.map_err(|error| self.explain(&error))?;
        let options = self.before.iter().chain(&self.command_line);
        environment::add(&mut draft.blobs.environment, options, self.caller.work_dir);
        let spec = &mut draft.spec;
        (spec.begin, spec.deadline) = (self.begin, self.deadline);
        let default = OUTPUT[usize::from(spec.array.is_some())];
        spec.stdout.get_or_insert_with(|| default.to_owned());
        spec.words = self.words();
        Ok(Submission { draft, warnings: self.warnings, parsable: self.parsable, quiet: self.quiet, wait: self.wait })
    }

    /// Puts the options about nodes and tasks together, as `sbatch` does before it submits.
    fn count_nodes(&mut self) -> Result<(), Failure> {
        let mut put = |option, value: String| {
            self.command_line.push(submit::Given {
                option,
                value: Some(value),
                place: Place::CommandLine,
                dialect: Dialect::Slurm,
            });
        };
        let listed = u32::try_from(self.node_list.len()).unwrap_or(u32::MAX);
        if let Some((_, max)) = self.nodes.filter(|(_, max)| *max < listed) {
            let text = format!("invalid number of nodes (-N {listed}-{max})");
            return Err(Failure::error(PROGRAM, text, 1));
        }
        let min = self.nodes.map_or(0, |(min, _)| min).max(listed);
        if let Some(tasks) = self.tasks.filter(|tasks| *tasks < min) {
            let text = format!("can't run {tasks} processes on {min} nodes, setting nnodes to {tasks}");
            self.warnings.push(format!("{PROGRAM}: Warning: {text}"));
            self.nodes = Some((tasks, tasks));
            self.node_list.truncate(tasks as usize);
        }
        if let Some((min, max)) = self.nodes {
            put(JobOption::Nodes, format!("{min}-{max}"));
        }
        if let Some(tasks) = self.tasks {
            put(JobOption::Tasks, tasks.to_string());
        }
        if !self.node_list.is_empty() {
            put(JobOption::NodeList, self.node_list.join(","));
        }
        Ok(())
    }

    /// A refusal of the model, and below it the line of Slurm that clients know for it.
    fn explain(&self, error: &submit::SubmitError) -> Failure {
        let mut failure = refused(error);
        let given = |option| self.before.iter().chain(&self.command_line).any(|given| given.option == option);
        // The model names the option where it is about several.
        let gpus = given(JobOption::Gpus) || given(JobOption::GpusPerTask) || given(JobOption::TasksPerGpu);
        let known = match error.message.as_str() {
            text if text.contains("GPU") || text.contains("gpu") && gpus => {
                Some("Invalid generic resource (gres) specification")
            }
            text if text.contains("dependency") || text.contains("aftercorr") || text.contains("singleton") => {
                Some("Batch job submission failed: Job dependency problem")
            }
            _ => None,
        };
        failure.lines.extend(known.map(|known| format!("{PROGRAM}: error: {known}")));
        failure
    }

    /// What is kept to be shown again.
    fn words(&self) -> Vec<(String, String)> {
        let mut words = Vec::new();
        let mut put = |name: &str, text: String| words.push((name.to_owned(), text));
        let spelt = |key| self.spelt.iter().find(|(other, _)| *other == key).map(|(_, text)| format!("gres:{text}"));
        let per_node: Vec<String> = [Key::GpusPerNode, Key::Gres].into_iter().filter_map(spelt).collect();
        if !per_node.is_empty() {
            put("TresPerNode", per_node.join(","));
        }
        spelt(Key::Gpus).into_iter().for_each(|text| put("TresPerJob", text));
        spelt(Key::GpusPerTask).into_iter().for_each(|text| put("TresPerTask", text));
        if let Some(mib) = self.mem_per_gpu {
            put("MemPerTres", format!("gres:gpu:{mib}"));
        }
        if self.oversubscribe {
            put("OverSubscribe", "YES".into());
        }
        if let Some(events) = &self.mail {
            // An empty one stands for who submitted it.
            put("MailUser", self.mail_user.clone().unwrap_or_default());
            put("MailType", events.clone());
        }
        words
    }
}

fn gpu_option(key: Key) -> JobOption {
    match key {
        Key::GpusPerNode => JobOption::GpusPerNode,
        Key::GpusPerTask => JobOption::GpusPerTask,
        _ => JobOption::Gpus,
    }
}

fn memory_option(key: Key) -> JobOption {
    match key {
        Key::MemPerCpu => JobOption::MemPerCpu,
        Key::MemPerGpu => JobOption::MemPerGpu,
        _ => JobOption::Mem,
    }
}

/// An option, or a value of one, that Ephor does not have.
fn lacking(option: &str, near: &str) -> Failure {
    Failure::error(PROGRAM, format!("--{option} is not there in Ephor: {near}"), USAGE)
}

/// What the controller of Slurm says to a job that it cannot take, below the reason.
fn submission_failed(why: Option<&str>, text: &str) -> Failure {
    let failure = Failure::error(PROGRAM, format!("Batch job submission failed: {text}"), 1);
    why.into_iter().fold(failure, |failure, why| failure.after(format!("{PROGRAM}: error: {why}")))
}

fn array(text: &str) -> Result<String, Failure> {
    let text = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    // A throttle of 0, or what is no number, is none.
    let list = match text.split_once('%') {
        Some((list, throttle)) if !throttle.parse().is_ok_and(|n: u32| n > 0) => list,
        _ => text,
    };
    let plain = list.bytes().all(|b| b.is_ascii_digit() || b"-,:%".contains(&b));
    let failed = |why: Option<&str>| submission_failed(why, "Invalid job array specification");
    if !plain {
        return Err(failed(None));
    }
    ArraySpec::parse(list).map(|_| list.to_owned()).map_err(|error| failed(Some(&error.to_string())))
}

fn constraint(text: &str) -> Result<String, Failure> {
    // Outside brackets a comma is an and.
    let mut depth = 0_i32;
    let plain: String = text
        .chars()
        .map(|c| match c {
            '[' | '(' => {
                depth += 1;
                c
            }
            ']' | ')' => {
                depth -= 1;
                c
            }
            ',' if depth == 0 => '&',
            _ => c,
        })
        .collect();
    match Constraint::parse(&plain) {
        Ok(_) => Ok(plain),
        Err(why) => Err(submission_failed(Some(&why), "Invalid feature specification")),
    }
}

fn nodes(text: &str) -> Result<Vec<String>, Failure> {
    let mut names =
        hostlist::expand(text).map_err(|why| submission_failed(Some(&why), "Invalid node name specified"))?;
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    names.dedup();
    Ok(names)
}

fn licences(text: &str) -> Result<String, Failure> {
    let failed = |why: Option<&str>| submission_failed(why, "Invalid license specification");
    if text.contains(['|', ';']) {
        return Err(failed(Some("a choice of licences is not there: name all that the job takes")));
    }
    match text.contains('=') {
        true => Err(failed(None)),
        false => Ok(text.to_owned()),
    }
}

fn nice(text: &str, invalid: impl Fn() -> Failure) -> Result<Option<String>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<i64>() {
        Ok(n) if n.abs() <= limits::NICE => Ok(Some(n.to_string())),
        Ok(_) => {
            let text = format!("Invalid --nice value, out of range (+/- {})", limits::NICE);
            Err(Failure::error(PROGRAM, text, USAGE))
        }
        Err(_) => Err(invalid()),
    }
}

fn queue(text: &str) -> Result<String, Failure> {
    let names: Vec<&str> = text.split(',').filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [] => Ok(String::new()),
        [one] => Ok((*one).to_owned()),
        _ => Err(lacking(&format!("partition={text}"), "a choice of partitions is not there yet; name one")),
    }
}
