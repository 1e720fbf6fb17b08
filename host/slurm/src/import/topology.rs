//! `topology.conf`: each level of switches, and each block, becomes a feature of the nodes below it.
//!
//! A switch to which nodes are connected is on level `switch`, one above such switches on level `switch2`, and so on:
//! jobs then ask for `--topology=switch`.

use super::error::{Found, Wrong, short};
use super::hosts::{Hosts, is_name};
use super::known::{self, TOPOLOGY};
use super::node::Nodes;
use super::report::Place;
use super::source::Statement;
use ephor_model::submit::hostlist;
use std::collections::BTreeMap;

/// A switch.
#[derive(Debug)]
struct Switch {
    name: String,
    place: Place,
    above: Option<usize>,
    /// 1: nothing but nodes below.
    height: usize,
}

/// Reads the file and gives the nodes their features.
pub(super) fn read(lines: &mut [Statement], nodes: &mut Nodes, hosts: &mut Hosts, found: &mut Found) {
    for line in lines.iter_mut() {
        for pair in &line.pairs {
            known::note(TOPOLOGY, pair, &mut line.outcome);
        }
    }
    let Some(switches) = tree(lines, hosts, found) else { return };
    // The switch, or the block, that each node is below.
    let mut leaves: BTreeMap<usize, usize> = BTreeMap::new();
    let mut blocks: BTreeMap<usize, String> = BTreeMap::new();
    for line in lines.iter_mut() {
        let Some(members) = members(line, nodes, hosts, found) else { continue };
        if let Some(name) = line.value("BlockName").map(str::to_owned) {
            if !is_name(&name) {
                found.add(&line.place, Wrong::Name { kind: "feature", name: short(&name) });
                continue;
            }
            let twice = members.iter().any(|node| blocks.insert(*node, name.clone()).is_some());
            if twice {
                line.outcome.near("Nodes", "some nodes are in another block too; the last counts");
            }
            line.outcome.take_as(format!("nodes have the feature block={name}"));
        } else if let Some(name) = line.value("SwitchName").map(str::to_owned) {
            let Some(at) = switches.by_name.get(&name).copied() else { continue };
            let mut twice = false;
            for node in members {
                twice |= *leaves.entry(node).or_insert(at) != at;
            }
            if twice {
                line.outcome.near("Nodes", "some nodes are below another switch too; the first counts");
            }
            let level = switches.all.get(at).map_or(1, |switch| switch.height);
            line.outcome.take_as(format!("nodes below have the feature {}={name}", level_name(level)));
        }
    }
    for (node, block) in blocks {
        nodes.add_feature(node, &format!("block={block}"));
    }
    for (node, leaf) in leaves {
        let mut at = Some(leaf);
        while let Some(switch) = at.and_then(|at| switches.all.get(at)) {
            if !hosts.spend(&switch.place, 1, found) {
                return;
            }
            nodes.add_feature(node, &format!("{}={}", level_name(switch.height), switch.name));
            at = switch.above;
        }
    }
}

fn level_name(height: usize) -> String {
    if height == 1 { "switch".into() } else { format!("switch{height}") }
}

#[derive(Debug, Default)]
struct Switches {
    all: Vec<Switch>,
    by_name: BTreeMap<String, usize>,
}

/// The switches with what is above each; `None`: something was wrong with them, and that is told.
fn tree(lines: &mut [Statement], hosts: &mut Hosts, found: &mut Found) -> Option<Switches> {
    let mut switches = Switches::default();
    for line in lines.iter().filter(|line| line.is_about("SwitchName")) {
        let name = line.value("SwitchName").unwrap_or_default().to_owned();
        if !is_name(&name) {
            found.add(&line.place, Wrong::Name { kind: "feature", name: short(&name) });
            continue;
        }
        if let Some(first) = switches.by_name.get(&name).and_then(|at| switches.all.get(*at)) {
            let first = first.place.clone();
            found.add(&line.place, Wrong::Twice { kind: "switch", name, first });
            continue;
        }
        switches.by_name.insert(name.clone(), switches.all.len());
        switches.all.push(Switch { name, place: line.place.clone(), above: None, height: 1 });
    }
    let mut below: Vec<usize> = vec![0; switches.all.len()];
    for line in lines.iter_mut().filter(|line| line.is_about("SwitchName")) {
        let Some(at) = line.value("SwitchName").and_then(|name| switches.by_name.get(name).copied()) else { continue };
        let Some(list) = line.value("Switches").map(str::to_owned) else { continue };
        for name in hosts.expand(&line.place, "Switches", &list, found)? {
            let Some(child) = switches.by_name.get(&name).and_then(|child| switches.all.get_mut(*child)) else {
                found.add(&line.place, Wrong::UnknownSwitch(short(&name)));
                continue;
            };
            match child.above {
                Some(other) if other != at => {
                    line.outcome.near("Switches", "some switches are below another one too; the first counts");
                }
                Some(_) => {}
                None => {
                    child.above = Some(at);
                    below[at] += 1;
                }
            }
        }
    }
    // From the leaves up: a switch is done when all below it are. Those that never are lie below themselves. All
    // numbers are places in `switches.all` and `below`, which are of one length.
    let mut ready: Vec<usize> = (0..below.len()).filter(|at| below[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = ready.pop() {
        done += 1;
        let (above, height) = (switches.all[at].above, switches.all[at].height);
        if let Some(above) = above {
            switches.all[above].height = switches.all[above].height.max(height + 1);
            below[above] -= 1;
            if below[above] == 0 {
                ready.push(above);
            }
        }
    }
    if done < switches.all.len()
        && let Some(switch) = below.iter().position(|n| *n > 0).and_then(|at| switches.all.get(at))
    {
        found.add(&switch.place, Wrong::SwitchCycle(switch.name.clone()));
    }
    found.none().then_some(switches)
}

/// The nodes of a line's list; nodes that are not there are told and left out.
fn members(line: &mut Statement, nodes: &Nodes, hosts: &mut Hosts, found: &mut Found) -> Option<Vec<usize>> {
    let Some(list) = line.value("Nodes").map(str::to_owned) else { return Some(Vec::new()) };
    if list.eq_ignore_ascii_case("ALL") {
        return hosts.spend(&line.place, nodes.all.len(), found).then(|| (0..nodes.all.len()).collect());
    }
    let names = hosts.expand(&line.place, "Nodes", &list, found)?;
    let strange: Vec<&String> = names.iter().filter(|name| nodes.find(name).is_none()).collect();
    if !strange.is_empty() {
        let folded = short(&hostlist::fold(&strange));
        line.outcome.near("Nodes", format!("no NodeName line has {folded}; left out"));
    }
    Some(names.iter().filter_map(|name| nodes.find(name)).collect())
}
