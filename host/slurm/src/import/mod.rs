//! A site's `slurm.conf`, `gres.conf`, `topology.conf` and `cgroup.conf` as objects of Ephor, with a report on them.
//!
//! Nothing is read but through the caller. What is wrong is told with its file and line, and then nothing is made; what
//! has no place here is told in the report, and never left out in silence.

mod error;
mod hosts;
mod known;
mod licence;
mod node;
mod pairs;
mod partition;
mod report;
mod set;
mod source;
mod text;
mod topology;
mod value;
mod write;

pub use error::{Mistake, Mistakes, Wrong};
pub use node::{Hardware, Node};
pub use report::{Entry, Place, Report, Verdict};

use error::{Found, short};
use hosts::Hosts;
use node::Nodes;
use partition::Queues;
use source::{Source, Statement};
use std::collections::BTreeMap;

use ephor_model::{Licence, Queue, limits};

/// What a site's files say, in Ephor's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// A queue for each partition.
    pub queues: Vec<Queue>,
    /// The licences.
    pub licences: Vec<Licence>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What the files say of their hardware, which agents find out by themselves.
    pub hardware: Vec<Hardware>,
}

impl Site {
    /// The file that `ephor apply` takes.
    pub fn to_toml(&self) -> String {
        write::toml(self)
    }
}

/// A site with the report on its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// What was read.
    pub site: Site,
    /// What became of each line.
    pub report: Report,
}

/// Reads the files of a site. `main` is the name of its `slurm.conf`; `read` gives the text of a file by its name as it
/// stands in the files, `None` where there is none. The other files are asked for by their own names and need not be
/// there.
///
/// # Errors
/// Every mistake that was found, each with its file and line.
pub fn import(main: &str, mut read: impl FnMut(&str) -> Result<Option<String>, String>) -> Result<Imported, Mistakes> {
    let mut found = Found::default();
    let mut source = Source::new(&mut read);
    let Some(mut general) = source.file(main, &mut found) else {
        found.add(&Place { file: main.to_owned(), line: 1 }, Wrong::Missing(short(main)));
        return Err(found.into_mistakes());
    };
    let [mut topology, mut gres, mut cgroup] =
        ["topology.conf", "gres.conf", "cgroup.conf"].map(|name| source.file(name, &mut found).unwrap_or_default());

    let mut hosts = Hosts::new();
    let site = slurm_conf(&mut general, &mut topology, &mut hosts, &mut found);
    of_gres(&mut gres, &mut hosts, &mut found);
    for line in &mut cgroup {
        for pair in &line.pairs {
            known::note(known::CGROUP, pair, &mut line.outcome);
        }
    }
    let objects = site.queues.len() + site.licences.len() + site.nodes.len();
    if objects > limits::APPLY_OBJECTS {
        found.add(&Place { file: main.to_owned(), line: 1 }, Wrong::TooManyObjects(objects));
    }
    if !found.none() {
        return Err(found.into_mistakes());
    }
    let lines = general.into_iter().chain(gres).chain(topology).chain(cgroup);
    let entries = lines.map(|line| line.outcome.entry(line.place, line.says, line.pairs.len())).collect();
    Ok(Imported { site, report: Report { entries } })
}

/// Reads `slurm.conf` in the order of what hangs on what: nodes, where they lie, sets of them, partitions.
fn slurm_conf(lines: &mut [Statement], topology: &mut [Statement], hosts: &mut Hosts, found: &mut Found) -> Site {
    let mut nodes = Nodes::default();
    let (mut sets, mut queues) = (set::NodeSets::new(), Queues::default());
    lines.iter_mut().filter(|line| line.is_about("NodeName")).for_each(|line| nodes.read(line, hosts, found));
    lines
        .iter_mut()
        .filter(|line| line.is_about("NodeSet"))
        .for_each(|line| set::read(line, &nodes, &mut sets, hosts, found));
    let (licences, memory) = of_the_cluster(lines, found);
    lines
        .iter_mut()
        .filter(|line| line.is_about("PartitionName"))
        .for_each(|line| queues.read(line, memory, &mut nodes, &sets, hosts, found));
    topology::read(topology, &mut nodes, hosts, found);
    let mut lost = queues.settle();
    for line in lines.iter_mut().filter(|line| line.is_about("PartitionName")) {
        if let Some(why) = lost.remove(&line.place) {
            line.outcome.near("Default", why);
        }
    }
    let Nodes { all, hardware, .. } = nodes;
    Site { queues: queues.all, licences, nodes: all, hardware }
}

/// Reads the parameters of the whole cluster: licences, and the memory for each core.
fn of_the_cluster(lines: &mut [Statement], found: &mut Found) -> (Vec<Licence>, Option<u64>) {
    let (mut licences, mut memory) = (Vec::new(), None);
    let objects = ["NodeName", "PartitionName", "NodeSet"];
    let mine = |line: &Statement| !line.pairs.is_empty() && !objects.iter().any(|key| line.is_about(key));
    // A parameter that stands twice counts as it stands last.
    let mut last: BTreeMap<String, Place> = BTreeMap::new();
    for line in lines.iter().filter(|line| mine(line)) {
        last.extend(line.pairs.iter().map(|pair| (pair.lower(), line.place.clone())));
    }
    for line in lines.iter_mut().filter(|line| mine(line)) {
        // Of lines about other things the first key says all.
        let about_others = line.is_about("DownNodes") || line.is_about("FrontendName");
        let pairs = if about_others { line.pairs[..1].to_vec() } else { line.pairs.clone() };
        for pair in pairs {
            let later = last.get(&pair.lower()).filter(|place| **place != line.place);
            let many = about_others || pair.is("SlurmctldHost");
            if let Some(later) = later.filter(|_| !many) {
                line.outcome.nothing(&pair.key, format!("{later} says it again, and the last counts"));
                continue;
            }
            if !known::note(known::GENERAL, &pair, &mut line.outcome) {
                continue;
            }
            if pair.is("Licenses") {
                licences = licence::read(line, found);
            } else if pair.is("DefMemPerCPU") {
                match partition::mib(&pair.value) {
                    Ok(None) => line.outcome.near(&pair.key, partition::NO_AMOUNT),
                    Ok(mib) => {
                        memory = mib;
                        line.outcome.take_as("`default_mem_per_cpu` of queues that say nothing else");
                    }
                    Err(why) => found.value(&line.place, &pair.key, &pair.value, why),
                }
            }
        }
    }
    (licences, memory)
}

/// Reads `gres.conf`, of which nothing is taken: its lists are looked at for mistakes alone.
fn of_gres(lines: &mut [Statement], hosts: &mut Hosts, found: &mut Found) {
    for line in lines {
        for pair in &line.pairs {
            if !known::note(known::GRES, pair, &mut line.outcome) {
                continue;
            }
            if pair.is("NodeName") {
                let _ = hosts.expand(&line.place, &pair.key, &pair.value, found);
            } else if pair.value.eq_ignore_ascii_case("gpu") {
                line.outcome.nothing(&pair.key, known::GPUS);
            } else {
                line.outcome.nothing(&pair.key, "only GPUs are counted; a part of one is --gpus=0.5");
            }
        }
    }
}
