//! The options of `sacct`.

use crate::table::Fate::{Refused, Void, Works};
use crate::table::Takes::{Maybe, Nothing, Value};
use crate::table::{Fate, OptionDef, Says, def, from_env as env, other};

/// The options by what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after the option that stands beside it in TABLE")]
pub enum Key {
    Accounts,
    AllUsers,
    Allocations,
    Brief,
    Delimiter,
    EndTime,
    Format,
    Help,
    HelpFormat,
    Jobs,
    Json,
    Long,
    Name,
    NoHeader,
    Nodelist,
    Parsable,
    Parsable2,
    Partitions,
    Qos,
    StartTime,
    States,
    Users,
    Version,
}

use Key as K;

const ONE_CLUSTER: Fate = Void("there is one cluster");
const UNITS: Fate = Void("amounts are shown in the unit that keeps them exact");

/// The options of `sacct` 22.05.
#[rustfmt::skip]
pub const TABLE: &[OptionDef<Says<Key>>] = &[
    def(K::Accounts, "accounts", Some('A'), Value("NAMES"), Works),
    other("allclusters", Some('L'), Nothing, ONE_CLUSTER),
    def(K::Allocations, "allocations", Some('X'), Nothing, Works),
    def(K::AllUsers, "allusers", Some('a'), Nothing, Works),
    other("batch-script", Some('B'), Nothing, Refused("`ephor job show --script ID`")),
    def(K::Brief, "brief", Some('b'), Nothing, Works),
    other("clusters", Some('M'), Value("NAMES"), ONE_CLUSTER),
    other("completion", Some('c'), Nothing, Refused("sacct without it")),
    def(K::Delimiter, "delimiter", None, Value("TEXT"), Works),
    other("duplicates", Some('D'), Nothing, Void("attempts of a job are one row")),
    def(K::EndTime, "endtime", Some('E'), Value("TIME"), Works),
    other("env-vars", None, Nothing, Refused("the environment of a job is not shown")),
    env("SACCT_FORMAT", def(K::Format, "format", Some('o'), Value("FIELDS"), Works)),
    def(K::Help, "help", Some('h'), Nothing, Works),
    def(K::HelpFormat, "helpformat", Some('e'), Nothing, Works),
    def(K::Jobs, "jobs", Some('j'), Value("IDS"), Works),
    def(K::Json, "json", None, Nothing, Works),
    other("local", None, Nothing, ONE_CLUSTER),
    def(K::Long, "long", Some('l'), Nothing, Works),
    def(K::Name, "name", None, Value("NAMES"), Works),
    other("noconvert", None, Nothing, UNITS),
    def(K::NoHeader, "noheader", Some('n'), Nothing, Works),
    def(K::Nodelist, "nodelist", Some('N'), Value("NODES"), Works),
    def(K::Parsable, "parsable", Some('p'), Nothing, Works),
    def(K::Parsable2, "parsable2", Some('P'), Nothing, Works),
    def(K::Partitions, "partition", Some('r'), Value("NAMES"), Works),
    def(K::Qos, "qos", Some('q'), Value("NAMES"), Works),
    def(K::StartTime, "starttime", Some('S'), Value("TIME"), Works),
    def(K::States, "state", Some('s'), Value("STATES"), Works),
    other("truncate", Some('T'), Nothing, Refused("sacct without it")),
    def(K::Users, "uid", Some('u'), Value("NAMES"), Works),
    other("units", None, Value("UNIT"), UNITS),
    def(K::Help, "usage", None, Nothing, Works),
    def(K::Users, "user", Some('u'), Value("NAMES"), Works),
    other("verbose", Some('v'), Nothing, Void("there is nothing more to say")),
    def(K::Version, "version", Some('V'), Nothing, Works),
    other("whole-hetjob", None, Maybe("yes|no"), Void("a job has one request")),
    other("wckeys", Some('W'), Value("KEYS"), Refused("--name")),
    other("yaml", None, Nothing, Refused("--json")),
];
