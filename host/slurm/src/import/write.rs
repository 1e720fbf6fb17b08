//! Writing what was read as the TOML file that `ephor apply` takes. What equals its default is left out.
//!
//! Every name was looked at when it was read: none has a character that TOML would have to escape.

use super::Site;
use ephor_model::submit::hostlist;
use ephor_model::{Queue, QueueState};
use std::fmt::Write;

/// Writes the file.
pub(super) fn toml(site: &Site) -> String {
    let mut out = String::from(
        "# Made by `ephor import` of Slurm's configuration. `ephor apply` takes it as it is; keys: docs/cli.md.\n",
    );
    site.queues.iter().for_each(|q| queue(&mut out, q));
    for licence in &site.licences {
        out.push_str(&format!("\n[[licence]]\nname = \"{}\"\ncount = {}\n", licence.name, licence.count));
    }
    for of_line in site.nodes.chunk_by(|a, b| a.line == b.line) {
        let names: Vec<&str> = of_line.iter().map(|node| node.name.as_str()).collect();
        let Some(hardware) = of_line.first().and_then(|node| site.hardware.get(node.line)) else { continue };
        let said = if hardware.text.is_empty() { "" } else { ": " };
        // Writing into a String cannot fail.
        let _ = write!(out, "\n# {}: {}{said}{}\n", hardware.place, hostlist::fold(&names), hardware.text);
        for node in of_line {
            let _ = write!(out, "[[node]]\nname = \"{}\"\n", node.name);
            list(&mut out, "features", &node.features);
        }
    }
    out
}

fn list(out: &mut String, key: &str, values: &[String]) {
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        out.push_str(&format!("{key} = [{}]\n", values.join(", ")));
    }
}

fn queue(out: &mut String, q: &Queue) {
    out.push_str(&format!("\n[[queue]]\nname = \"{}\"\n", q.name));
    let state = match q.state {
        QueueState::Open => None,
        QueueState::Stopped => Some("stopped"),
        QueueState::Draining => Some("draining"),
        QueueState::Closed => Some("closed"),
    };
    let mut lines = Vec::new();
    lines.extend(state.map(|state| format!("state = \"{state}\"")));
    lines.extend(q.default.then(|| "default = true".to_owned()));
    lines.extend((q.priority != 0).then(|| format!("priority = {}", q.priority)));
    lines.extend(q.default_time.map(|time| format!("default_time = \"{}\"", time.to_clock())));
    lines.extend(q.max_time.map(|time| format!("max_time = \"{}\"", time.to_clock())));
    lines.extend(q.max_nodes.map(|n| format!("max_nodes = {n}")));
    lines.extend(q.default_mem_per_cpu.map(|mib| format!("default_mem_per_cpu = \"{mib}M\"")));
    lines.iter().for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
    list(out, "node_features", &q.node_features);
}
