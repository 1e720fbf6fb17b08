//! `ephor queue`.

mod tree;

use crate::connect::Controller;
use crate::objects::bounds::{self, Change};
use crate::objects::{self, EQUAL_PART, Names, QUEUE_STATES, list, start, unless_none};
use crate::{Global, amount, output};
use clap::{Args, Subcommand};
use ephor_model::Span;
use ephor_model::submit::parse_mib;
use ephor_proto::v1::{Amount, Empty, ObjectSet, QueueList, QueueObject, QueueView};
use std::process::ExitCode;

/// Commands about queues.
#[derive(Args)]
pub struct Queue {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List queues
    List,
    /// Show all about queues
    Show {
        /// Names; none: all
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Show the tree of queues with what each has of a resource and what it is due
    Tree(tree::Tree),
    /// Make a queue
    Create(Fields),
    /// Change a queue: only what the options name
    Set(Fields),
    /// Delete queues
    Delete(Names),
}

#[derive(Args)]
struct Fields {
    /// Name
    name: String,
    /// Queue above; `none`: at the top
    #[arg(long, value_name = "NAME")]
    parent: Option<String>,
    /// Whether it takes and starts jobs
    #[arg(long, value_parser = QUEUE_STATES)]
    state: Option<String>,
    /// Whether jobs that name no queue go here
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    default: Option<bool>,
    /// Higher goes first
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i64>,
    /// Time limit of jobs that name none; `none`: the longest
    #[arg(long, value_name = "LIMIT", value_parser = time)]
    default_time: Option<Limit>,
    /// Longest time limit; `none`: no bound
    #[arg(long, value_name = "LIMIT", value_parser = time)]
    max_time: Option<Limit>,
    /// Most nodes of one job; `none`: no bound
    #[arg(long, value_name = "N", value_parser = count)]
    max_nodes: Option<Count>,
    /// Memory per core of jobs that name none, such as 2G; `none`: the node's memory shared out
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    default_mem_per_cpu: Option<Memory>,
    /// Features that its nodes must have, with commas; `none`: no such
    #[arg(long, value_name = "LIST")]
    node_features: Option<String>,
    /// What its jobs may count on, such as cpu=64,mem=4G; `none`: nothing
    #[arg(long, value_name = "AMOUNTS", value_parser = amounts)]
    quota: Option<Amounts>,
    /// What its jobs may not pass together; `none`: no bound
    #[arg(long, value_name = "AMOUNTS", value_parser = amounts)]
    limit: Option<Amounts>,
    /// Share of what is left over, relative to its siblings
    #[arg(long, value_name = "N")]
    weight: Option<i64>,
    /// Other limits of its jobs together, such as running=500,cpu-minutes=100000; `none`: no bound
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    limits: Option<Change>,
    /// What each user's jobs in it may use
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    per_user: Option<Change>,
    /// QOS of jobs that name none and whose account says nothing; `none`: no QOS
    #[arg(long, value_name = "NAME")]
    default_qos: Option<String>,
}

// Types of their own, because clap reads an option of an option, and a list, as something else.
#[derive(Clone)]
struct Limit(Option<i64>);
#[derive(Clone)]
struct Count(Option<u32>);
#[derive(Clone)]
struct Memory(Option<u64>);
#[derive(Clone)]
struct Amounts(Vec<Amount>);

fn time(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => Span::parse_limit(text).map(|limit| Limit(limit.map(|l| l.0))).map_err(|e| e.to_string()),
    }
}

fn count(text: &str) -> Result<Count, String> {
    match text {
        "none" => Ok(Count(None)),
        _ => text.parse().map(|n| Count(Some(n))).map_err(|_| "write a whole number, or none".to_owned()),
    }
}

fn memory(text: &str) -> Result<Memory, String> {
    if text == "none" { Ok(Memory(None)) } else { parse_mib(text).map(|mib| Memory(Some(mib))) }
}

fn amounts(text: &str) -> Result<Amounts, String> {
    amount::parse_list(text).map(Amounts)
}

impl Queue {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List => show(None, global),
            Command::Show { names } => show(Some(names), global),
            Command::Tree(tree) => tree.run(global),
            Command::Create(fields) => fields.apply(true, global),
            Command::Set(fields) => fields.apply(false, global),
            Command::Delete(names) => objects::delete("queue", names, global),
        }
    }
}

impl Fields {
    fn apply(self, create: bool, global: &Global) -> anyhow::Result<ExitCode> {
        let mut controller = Controller::connect(global)?;
        let found = objects::all(&mut controller)?.queues.into_iter().find(|q| q.name == self.name);
        let new = || QueueObject {
            name: self.name.clone(),
            state: QUEUE_STATES[0].into(),
            weight: EQUAL_PART,
            ..QueueObject::default()
        };
        let old = start(found, create, "queue", &self.name, new)?;
        let queue = QueueObject {
            parent: self.parent.map_or(old.parent, unless_none),
            state: self.state.unwrap_or(old.state),
            default: self.default.unwrap_or(old.default),
            priority: self.priority.unwrap_or(old.priority),
            default_time: self.default_time.map_or(old.default_time, |t| t.0),
            max_time: self.max_time.map_or(old.max_time, |t| t.0),
            max_nodes: self.max_nodes.map_or(old.max_nodes, |n| n.0),
            default_mem_per_cpu: self.default_mem_per_cpu.map_or(old.default_mem_per_cpu, |m| m.0),
            node_features: self.node_features.map_or(old.node_features, |features| list(&features)),
            quota: self.quota.map_or(old.quota, |a| a.0),
            limit: self.limit.map_or(old.limit, |a| a.0),
            weight: self.weight.unwrap_or(old.weight),
            limits: bounds::changed(self.limits, old.limits)?,
            per_user: bounds::changed(self.per_user, old.per_user)?,
            default_qos: self.default_qos.map_or(old.default_qos, unless_none),
            name: old.name,
        };
        objects::apply(&mut controller, ObjectSet { queues: vec![queue], ..ObjectSet::default() }, global)
    }
}

/// Lists queues (`None`), or shows those of these names, all where there are none.
fn show(names: Option<Vec<String>>, global: &Global) -> anyhow::Result<ExitCode> {
    let mut queues = Controller::connect(global)?.call(async |c| c.list_queues(Empty {}).await)?.queues;
    let wanted = names.as_deref().unwrap_or_default();
    let name = |view: &QueueView| view.queue.as_ref().map(|q| q.name.clone()).unwrap_or_default();
    if !wanted.is_empty() {
        queues.retain(|view| wanted.contains(&name(view)));
    }
    if global.json {
        output::json(&QueueList { queues: queues.clone() })?;
    } else if names.is_none() {
        let headings = ["NAME", "PARENT", "STATE", "PRIORITY", "TIMELIMIT", "PENDING", "RUNNING", "CPUS", "GPUS"];
        output::table(headings, queues.iter().map(row).collect())?;
    } else {
        for (index, view) in queues.iter().enumerate() {
            if index > 0 {
                output::line("")?;
            }
            output::fields(&fields(view))?;
        }
    }
    let missing: Vec<&String> = wanted.iter().filter(|n| !queues.iter().any(|view| name(view) == **n)).collect();
    missing.iter().for_each(|name| output::problem(&format!("error: queue {name}: there is no such queue")));
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(view: &QueueView) -> [String; 9] {
    let q = view.queue.clone().unwrap_or_default();
    let allocated = |resource| amount::show(resource, amount::of(&view.allocated, resource));
    [
        if q.default { format!("{}*", q.name) } else { q.name },
        q.parent.unwrap_or_else(|| "-".into()),
        q.state,
        q.priority.to_string(),
        q.max_time.map_or_else(|| "none".into(), |ms| Span(ms).to_clock()),
        view.pending.to_string(),
        view.running.to_string(),
        allocated("cpu"),
        allocated("gpu"),
    ]
}

fn fields(view: &QueueView) -> Vec<(&'static str, String)> {
    let q = view.queue.clone().unwrap_or_default();
    let time = |ms: Option<i64>| ms.map_or_else(|| "none".into(), |ms| Span(ms).to_clock());
    vec![
        ("Queue", q.name),
        ("Parent", q.parent.unwrap_or_default()),
        ("State", q.state),
        ("Default", if q.default { "yes".into() } else { String::new() }),
        ("Priority", q.priority.to_string()),
        ("Weight", q.weight.to_string()),
        ("Default time", time(q.default_time)),
        ("Longest time", time(q.max_time)),
        ("Most nodes", q.max_nodes.map(|n| n.to_string()).unwrap_or_default()),
        (
            "Memory per core",
            q.default_mem_per_cpu.map(|mib| amount::show("mem", mib.cast_signed())).unwrap_or_default(),
        ),
        ("Node features", q.node_features.join("&")),
        ("Quota", amount::show_list(&q.quota)),
        ("Limit", amount::show_list(&q.limit)),
        ("Limits", bounds::show(q.limits.as_ref())),
        ("Limits per user", bounds::show(q.per_user.as_ref())),
        ("Default QOS", q.default_qos.unwrap_or_default()),
        ("Pending", view.pending.to_string()),
        ("Running", view.running.to_string()),
        ("Allocated", amount::show_list(&view.allocated)),
        ("Wanted", amount::show_list(&view.wanted)),
        ("Fair share", amount::show_list(&view.fair)),
        ("Used in the mean", amount::show_list(&view.used)),
    ]
}
