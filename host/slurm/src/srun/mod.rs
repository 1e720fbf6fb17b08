//! `srun` inside a job: from a command line and the environment to a step, and what is said of its tasks.
//!
//! The command line wins over the environment. The job's own variables are the defaults, so that a step without options
//! has the shape of its job.

mod collect;
pub mod environment;
pub mod label;
pub mod report;
pub mod table;

use crate::failure::Failure;
use crate::getopt::{self, Operands, Reader};
use table::{Key, TABLE};

/// Name of the command in messages.
pub const PROGRAM: &str = "srun";
/// Exit code of a wrong option or value.
pub const USAGE: u8 = 255;

const READER: Reader<Key> = Reader { program: PROGRAM, table: TABLE, operands: Operands::Stop, usage_code: USAGE };

/// The command line, read.
pub type CommandLine = getopt::CommandLine<Key>;

impl CommandLine {
    /// Reads the words after the command's name.
    ///
    /// # Errors
    /// Unknown options, missing values.
    pub fn read(words: &[String]) -> Result<Self, Failure> {
        let (given, operands) = READER.read(words)?;
        Ok(Self { given, operands })
    }
}

/// A step as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The job that it belongs to.
    pub job: u64,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Tasks in all.
    pub tasks: Option<u32>,
    /// Fewest and most nodes.
    pub nodes: Option<(u32, u32)>,
    /// Cores for each task; `None`: nobody spoke of them, and each has one.
    pub cpus_per_task: Option<u32>,
    /// Most tasks of a node.
    pub tasks_per_node: Option<u32>,
    /// Nodes that must be part of it.
    pub node_list: Vec<String>,
    /// Nodes that must not.
    pub exclude: Vec<String>,
    /// It takes nothing from other steps.
    pub overlap: bool,
    /// More tasks than cores.
    pub overcommit: bool,
    /// GPUs of its own for each task.
    pub gpus_per_task: Option<u32>,
    /// GPUs of its own on each node.
    pub gpus_per_node: Option<u32>,
    /// Tasks go to the nodes in turn.
    pub cyclic: bool,
    /// Where standard output goes.
    pub output: Mode,
    /// Where standard error goes; `None`: where standard output goes, but to standard error.
    pub error: Option<Mode>,
    /// Where standard input comes from.
    pub input: Mode,
    /// Output files keep what they hold.
    pub append: bool,
    /// Each line begins with the rank of its task.
    pub label: bool,
    /// Output is passed on as it comes.
    pub unbuffered: bool,
    /// The folder to run in; `None`: the caller's.
    pub chdir: Option<String>,
    /// What of the environment the tasks get.
    pub export: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// A task that fails ends all.
    pub kill_on_bad_exit: bool,
    /// Seconds from the first end of a task to the end of all; 0: none.
    pub wait: u32,
    /// The first ^C ends the step.
    pub quit_on_interrupt: bool,
    /// The first ^C goes to the tasks.
    pub disable_status: bool,
    /// Nothing is said but errors.
    pub quiet: bool,
    /// Lines for standard error that stop nothing.
    pub warnings: Vec<String>,
}

/// Where a standard stream of the tasks leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All tasks have the command's own.
    #[default]
    All,
    /// One task has it, the others have none.
    Task(u32),
    /// A file, with patterns.
    File(String),
    /// None has any.
    Nothing,
}

/// Makes the step of a command line and the caller's environment, whose entries are `NAME=value`.
///
/// # Errors
/// What Ephor does not have or cannot read, in Slurm's words where it has words for it.
pub fn read(line: &CommandLine, environment: &[String]) -> Result<Step, Failure> {
    collect::read(line, environment)
}

/// The help of the command.
pub fn help() -> String {
    crate::table::help(PROGRAM, "program [args...]", TABLE)
}
