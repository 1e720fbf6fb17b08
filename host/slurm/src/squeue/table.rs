//! The options of `squeue`.

use crate::table::Fate::{Refused, Void, Works};
use crate::table::Takes::{Nothing, Value};
use crate::table::{Fate, OptionDef, Says, def, from_env as env, other};

/// The options by what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after the option that stands beside it in TABLE")]
pub enum Key {
    Accounts,
    Array,
    Format,
    Help,
    Jobs,
    Json,
    Licenses,
    Long,
    LongFormat,
    Me,
    Names,
    NoHeader,
    Nodelist,
    Partitions,
    Qos,
    Reservation,
    Sort,
    Start,
    States,
    Users,
    Version,
}

use Key as K;

const YAML: Fate = Refused("--json");
const ONE_CLUSTER: Fate = Void("there is one cluster");

/// Every option of `squeue` 22.05.
#[rustfmt::skip]
pub const TABLE: &[OptionDef<Says<Key>>] = &[
    env("SQUEUE_ACCOUNT", def(K::Accounts, "accounts", Some('A'), Value("NAMES"), Works)),
    def(K::Accounts, "account", Some('A'), Value("NAMES"), Works),
    other("all", Some('a'), Nothing, Void("no partition is hidden")),
    env("SQUEUE_ARRAY", def(K::Array, "array", Some('r'), Nothing, Works)),
    other("array-unique", None, Nothing, Refused("--array")),
    other("clusters", Some('M'), Value("NAMES"), Refused("the command talks to one controller; leave it out")),
    other("federation", None, Nothing, ONE_CLUSTER),
    env("SQUEUE_FORMAT", def(K::Format, "format", Some('o'), Value("FORMAT"), Works)),
    env("SQUEUE_FORMAT2", def(K::LongFormat, "Format", Some('O'), Value("FIELDS"), Works)),
    def(K::Help, "help", None, Nothing, Works),
    other("hide", None, Nothing, Void("no partition is hidden")),
    other("iterate", Some('i'), Value("SECONDS"), Refused("`watch squeue`")),
    def(K::Jobs, "jobs", Some('j'), Value("IDS"), Works),
    def(K::Json, "json", None, Nothing, Works),
    env("SQUEUE_LICENSES", def(K::Licenses, "licenses", Some('L'), Value("NAMES"), Works)),
    other("local", None, Nothing, ONE_CLUSTER),
    def(K::Long, "long", Some('l'), Nothing, Works),
    def(K::Me, "me", None, Nothing, Works),
    env("SQUEUE_NAMES", def(K::Names, "name", Some('n'), Value("NAMES"), Works)),
    other("noconvert", None, Nothing, Void("amounts are shown in the unit that keeps them exact")),
    def(K::NoHeader, "noheader", Some('h'), Nothing, Works),
    def(K::Nodelist, "nodelist", Some('w'), Value("NODES"), Works),
    env("SQUEUE_PARTITION", def(K::Partitions, "partition", Some('p'), Value("NAMES"), Works)),
    other("priority", Some('P'), Nothing, Void("a job is in one partition")),
    env("SQUEUE_QOS", def(K::Qos, "qos", Some('q'), Value("NAMES"), Works)),
    def(K::Reservation, "reservation", Some('R'), Value("NAME"), Works),
    other("sibling", None, Nothing, ONE_CLUSTER),
    env("SQUEUE_SORT", def(K::Sort, "sort", Some('S'), Value("LETTERS"), Works)),
    def(K::Start, "start", None, Nothing, Works),
    env("SQUEUE_STATES", def(K::States, "states", Some('t'), Value("STATES"), Works)),
    other("steps", Some('s'), Nothing, Refused("jobs have no steps yet; squeue without it")),
    def(K::Help, "usage", None, Nothing, Works),
    env("SQUEUE_USERS", def(K::Users, "user", Some('u'), Value("NAMES"), Works)),
    def(K::Users, "users", Some('u'), Value("NAMES"), Works),
    other("verbose", Some('v'), Nothing, Void("there is nothing more to say")),
    def(K::Version, "version", Some('V'), Nothing, Works),
    other("yaml", None, Nothing, YAML),
];
