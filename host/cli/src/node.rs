//! `ephor node`.

use crate::connect::Controller;
use crate::exit::CliError;
use crate::{Global, amount, clock, device, output};
use clap::{Args, Subcommand};
use ephor_model::submit::hostlist;
use ephor_proto::v1::{self, Empty, NodeAction, NodeActionRequest, NodeList, TokenRequest};
use std::process::ExitCode;

/// Commands about nodes. Names may be lists: n[1-3,5].
#[derive(Args)]
pub struct Node {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List nodes with what they have and what is taken
    List,
    /// Show all about nodes
    Show {
        /// Names or lists; none: all
        #[arg(value_name = "NODES")]
        nodes: Vec<String>,
    },
    /// Start no more jobs on nodes; those that run there go on
    Drain {
        /// Names or lists, such as n[1-3,5]
        #[arg(required = true, value_name = "NODES")]
        nodes: Vec<String>,
        /// Why, for whoever looks at the node next
        #[arg(long, short)]
        reason: String,
        /// Only this GPU of each, counted from 0: no job is given it, the others go on
        #[arg(long, value_name = "N")]
        gpu: Option<u32>,
    },
    /// Take nodes back into use
    Resume {
        /// Names or lists, such as n[1-3,5]
        #[arg(required = true, value_name = "NODES")]
        nodes: Vec<String>,
        /// Only this GPU of each, counted from 0; what its agent says of it now is no ground any more to take it out
        #[arg(long, value_name = "N")]
        gpu: Option<u32>,
    },
    /// Print a token with which one node may join, once
    Token {
        /// Node that it is for; none: any one
        node: Option<String>,
    },
}

impl Node {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List => list(None, global),
            Command::Show { nodes } => list(Some(expand(&nodes)?), global),
            Command::Drain { nodes, reason, gpu } => act(NodeAction::Drain, &nodes, reason, gpu, global),
            Command::Resume { nodes, gpu } => act(NodeAction::Resume, &nodes, String::new(), gpu, global),
            Command::Token { node } => token(node.unwrap_or_default(), global),
        }
    }
}

fn expand(lists: &[String]) -> Result<Vec<String>, CliError> {
    let mut all = Vec::new();
    for list in lists {
        all.extend(hostlist::expand(list).map_err(CliError::Usage)?);
    }
    Ok(all)
}

fn act(
    action: NodeAction,
    nodes: &[String],
    reason: String,
    gpu: Option<u32>,
    global: &Global,
) -> anyhow::Result<ExitCode> {
    let request = NodeActionRequest { action: action.into(), nodes: expand(nodes)?, reason, gpu };
    let done = Controller::connect(global)?.call(async |c| c.act_on_nodes(request).await)?;
    if global.json {
        output::json(&done)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn token(node: String, global: &Global) -> anyhow::Result<ExitCode> {
    let token = Controller::connect(global)?.call(async |c| c.issue_token(TokenRequest { node }).await)?;
    if global.json {
        output::json(&token)?;
    } else {
        output::line(&token.token)?;
        output::problem(&format!("Good for one node until {}.", clock::show(token.expires)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists nodes (`None`), or shows those of these names, all where there are none.
fn list(wanted: Option<Vec<String>>, global: &Global) -> anyhow::Result<ExitCode> {
    let mut nodes = Controller::connect(global)?.call(async |c| c.list_nodes(Empty {}).await)?.nodes;
    let names = wanted.as_deref().unwrap_or_default();
    if !names.is_empty() {
        nodes.retain(|node| names.contains(&node.name));
    }
    if global.json {
        output::json(&NodeList { nodes: nodes.clone() })?;
    } else if wanted.is_none() {
        let headings = ["NAME", "STATE", "CPUS", "MEMORY", "GPUS", "JOBS", "FEATURES", "REASON"];
        output::table(headings, nodes.iter().map(row).collect())?;
    } else {
        for (index, node) in nodes.iter().enumerate() {
            if index > 0 {
                output::line("")?;
            }
            output::fields(&fields(node))?;
        }
    }
    let missing: Vec<&String> = names.iter().filter(|name| !nodes.iter().any(|node| node.name == **name)).collect();
    missing.iter().for_each(|name| output::problem(&format!("error: node {name}: there is no such node")));
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Taken of all, such as `2/8`.
fn use_of(node: &v1::Node, resource: &str) -> String {
    let shown = |amounts| amount::show(resource, amount::of(amounts, resource));
    match amount::of(&node.capacity, resource) {
        0 => "-".into(),
        _ => format!("{}/{}", shown(&node.allocated), shown(&node.capacity)),
    }
}

/// As [`use_of`], and how many are out of service, such as `2/8 (1 out)`.
fn use_of_gpus(node: &v1::Node) -> String {
    let out = node.devices.iter().filter(|device| device.out.is_some()).count();
    let tail = if out > 0 { format!(" ({out} out)") } else { String::new() };
    use_of(node, "gpu") + &tail
}

fn row(node: &v1::Node) -> [String; 8] {
    [
        node.name.clone(),
        node.state.clone(),
        use_of(node, "cpu"),
        use_of(node, "mem"),
        use_of_gpus(node),
        node.jobs.len().to_string(),
        node.features.join(","),
        node.reason.clone(),
    ]
}

fn fields(node: &v1::Node) -> Vec<(&'static str, String)> {
    let by = match (node.reason_by.as_str(), node.reason_since) {
        ("", None) => String::new(),
        (by, since) => format!("{by} {}", clock::show_optional(since)).trim().to_owned(),
    };
    let jobs: Vec<String> = node.jobs.iter().map(ToString::to_string).collect();
    let mut all = vec![
        ("Node", node.name.clone()),
        ("State", node.state.clone()),
        ("Reason", node.reason.clone()),
        ("Set by", by),
        ("Has", amount::show_list(&node.capacity)),
        ("Taken", amount::show_list(&node.allocated)),
        ("Features", node.features.join(",")),
        ("GPUs", device::summary(&node.devices)),
        ("GPUs from", node.device_source.clone()),
        ("Jobs", jobs.join(",")),
        ("Address", node.address.clone()),
        ("Boot id", node.boot_id.clone()),
        ("Agent", node.agent_version.clone()),
        ("Last seen", clock::show_optional(node.last_seen)),
    ];
    all.extend(node.device_notes.iter().map(|note| ("GPUs", note.clone())));
    let lines = node.devices.iter().enumerate().flat_map(|(index, d)| device::lines(index, d));
    all.extend(lines);
    all
}
