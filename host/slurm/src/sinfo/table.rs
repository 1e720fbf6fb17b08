//! The options of `sinfo`.

use crate::table::Fate::{Refused, Void, Works};
use crate::table::Takes::{Nothing, Value};
use crate::table::{Fate, OptionDef, Says, def, from_env as env, other};

/// The options by what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after the option that stands beside it in TABLE")]
pub enum Key {
    Format,
    Help,
    Json,
    Long,
    LongFormat,
    NoHeader,
    Node,
    Nodes,
    Partitions,
    Reasons,
    Sort,
    States,
    Summarize,
    Version,
}

use Key as K;

const YAML: Fate = Refused("--json");
const ONE_CLUSTER: Fate = Void("there is one cluster");

/// Every option of `sinfo` 22.05.
#[rustfmt::skip]
pub const TABLE: &[OptionDef<Says<Key>>] = &[
    other("all", Some('a'), Nothing, Void("no partition is hidden")),
    other("clusters", Some('M'), Value("NAMES"), Refused("the command talks to one controller; leave it out")),
    other("dead", Some('d'), Nothing, Refused("--states=down")),
    other("exact", Some('e'), Nothing, Void("only nodes that look alike stand on one line")),
    other("federation", None, Nothing, ONE_CLUSTER),
    env("SINFO_FORMAT", def(K::Format, "format", Some('o'), Value("FORMAT"), Works)),
    def(K::LongFormat, "Format", Some('O'), Value("FIELDS"), Works),
    def(K::Help, "help", None, Nothing, Works),
    other("hide", None, Nothing, Void("no partition is hidden")),
    other("iterate", Some('i'), Value("SECONDS"), Refused("`watch sinfo`")),
    def(K::Json, "json", None, Nothing, Works),
    def(K::Reasons, "list-reasons", Some('R'), Nothing, Works),
    other("local", None, Nothing, ONE_CLUSTER),
    def(K::Long, "long", Some('l'), Nothing, Works),
    other("noconvert", None, Nothing, Void("amounts are shown in MiB")),
    def(K::Node, "Node", Some('N'), Nothing, Works),
    def(K::Nodes, "nodes", Some('n'), Value("NODES"), Works),
    def(K::NoHeader, "noheader", Some('h'), Nothing, Works),
    env("SINFO_PARTITION", def(K::Partitions, "partition", Some('p'), Value("NAMES"), Works)),
    other("reservation", Some('T'), Nothing, Refused("`ephor reservation list`")),
    other("responding", Some('r'), Nothing, Refused("--states=idle,mixed,allocated")),
    env("SINFO_SORT", def(K::Sort, "sort", Some('S'), Value("LETTERS"), Works)),
    def(K::States, "states", Some('t'), Value("STATES"), Works),
    def(K::Summarize, "summarize", Some('s'), Nothing, Works),
    def(K::Help, "usage", None, Nothing, Works),
    other("verbose", Some('v'), Nothing, Void("there is nothing more to say")),
    def(K::Version, "version", Some('V'), Nothing, Works),
    other("yaml", None, Nothing, YAML),
];
