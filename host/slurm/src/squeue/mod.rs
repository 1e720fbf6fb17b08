//! `squeue`: its command line, which jobs it shows, and in what order.

pub mod fields;
pub mod table;

use crate::columns::{self, Format, Piece, natural};
use crate::failure::Failure;
use crate::job::{ArrayPlace, JobView};
use crate::show::Shown;
use crate::table::list;
use ephor_model::submit::hostlist;
use ephor_model::{ArraySpec, JobState, Span};
use fields::FIELDS;
use std::cmp::Ordering;
use table::{Key, TABLE};

/// Name of the command in messages.
pub const PROGRAM: &str = "squeue";
/// How long jobs that have ended are shown: what `MinJobAge` is in Slurm where nobody set it.
pub const SHOWN_AFTER_END: Span = Span::seconds(300);

const PLAIN: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
const LONG: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
const START: &str = "%.18i %.9P %.8j %.8u %.2t  %.19S %.6D %20Y %R";
const ORDER: &str = "P,t,-p";

/// One job that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId {
    /// The job or array.
    pub job: u64,
    /// The one element.
    pub index: Option<u32>,
}

/// The command line, read.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each is what the option of its name asks for; empty: everything")]
pub struct Query {
    pub jobs: Vec<JobId>,
    pub users: Vec<String>,
    pub me: bool,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
    pub qos: Vec<String>,
    pub names: Vec<String>,
    pub licences: Vec<String>,
    pub reservations: Vec<String>,
    pub nodes: Vec<String>,
    /// Empty: what is live.
    pub states: Vec<JobState>,
    pub all_states: bool,
    pub elements: bool,
    pub heading: bool,
    pub long: bool,
    pub start: bool,
    pub format: Option<String>,
    pub long_format: Option<String>,
    pub sort: Option<String>,
    pub json: bool,
    pub version: bool,
    pub help: bool,
    pub warnings: Vec<String>,
}

impl Query {
    /// Reads the words after the command's name, and the variables `SQUEUE_*`.
    ///
    /// # Errors
    /// What is no option or value, in the lines that clients know.
    pub fn read(words: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let (options, operands) = crate::table::read(PROGRAM, TABLE, words, variable)?;
        let mut query = Self { heading: true, ..Self::default() };
        for (key, value) in options {
            query.take(key, value)?;
        }
        // Ids may stand alone.
        for word in operands {
            query.take(Key::Jobs, word)?;
        }
        if let Some(sort) = query.sort.as_deref().map(|sort| columns::order(FIELDS, sort)) {
            sort.map_err(|c| Failure::error(PROGRAM, format!("Invalid sort specification: {c}"), 1))?;
        }
        Ok(query)
    }

    fn take(&mut self, key: Key, value: String) -> Result<(), Failure> {
        match key {
            Key::Jobs => self.jobs = list(&value).iter().map(|text| job_id(text)).collect::<Result<_, _>>()?,
            Key::Users => self.users = list(&value),
            Key::Me => self.me = true,
            Key::Accounts => self.accounts = list(&value),
            Key::Partitions => self.partitions = list(&value),
            Key::Qos => self.qos = list(&value),
            Key::Names => self.names = list(&value),
            Key::Licenses => self.licences = list(&value),
            Key::Reservation => self.reservations = list(&value),
            Key::Nodelist => {
                let fail = |why: String| Failure::error(PROGRAM, format!("Invalid node name: {why}"), 1);
                self.nodes = hostlist::expand(&value).map_err(fail)?;
            }
            Key::States => self.read_states(&list(&value))?,
            Key::Array => self.elements = true,
            Key::NoHeader => self.heading = false,
            Key::Long => self.long = true,
            Key::Start => self.start = true,
            Key::Format => (self.format, self.long_format) = (Some(value), None),
            Key::LongFormat => (self.format, self.long_format) = (None, Some(value)),
            Key::Sort => self.sort = Some(value),
            Key::Json => self.json = true,
            Key::Version => self.version = true,
            Key::Help => self.help = true,
        }
        Ok(())
    }

    fn read_states(&mut self, words: &[String]) -> Result<(), Failure> {
        (self.states, self.all_states) = (Vec::new(), false);
        for word in words {
            if word.eq_ignore_ascii_case("all") {
                self.all_states = true;
            } else if let Some(state) = JobState::parse(word) {
                self.states.push(state);
            } else if !SLURM_ONLY.iter().any(|names| names.iter().any(|name| name.eq_ignore_ascii_case(word))) {
                let valid: Vec<&str> = JobState::ALL.iter().map(|state| state.name()).collect();
                let failure = Failure::error(PROGRAM, format!("Valid job states include: {}", valid.join(",")), 1);
                return Err(failure.after(format!("{PROGRAM}: error: Invalid job state specified: {word}")));
            }
        }
        Ok(())
    }

    /// The format of a line.
    pub fn pieces(&self) -> Format<JobView> {
        match (&self.format, &self.long_format) {
            (Some(format), _) if format == "%all" => all(),
            (Some(format), _) => columns::short(FIELDS, format),
            (None, Some(format)) => columns::long(FIELDS, format),
            (None, None) if self.long => columns::short(FIELDS, LONG),
            (None, None) if self.start => columns::short(FIELDS, START),
            (None, None) => columns::short(FIELDS, PLAIN),
        }
    }

    /// The rows to show of those that are known, in their order.
    pub fn select(&self, known: Vec<JobView>, shown: &Shown) -> Vec<JobView> {
        let mut rows: Vec<JobView> =
            known.into_iter().filter(|job| self.wants(job)).flat_map(|job| self.split(job)).collect();
        let text = self.sort.as_deref().unwrap_or(if self.start { "S" } else { ORDER });
        // A letter that is no column was refused when the command line was read.
        let keys = columns::order(FIELDS, text).unwrap_or_default();
        rows.sort_by(|a, b| {
            let by_keys = keys.iter().map(|(column, descending)| {
                let ordering = compare(column.code, a, b, || ((column.value)(a, shown), (column.value)(b, shown)));
                if *descending { ordering.reverse() } else { ordering }
            });
            let first = by_keys.into_iter().find(|ordering| *ordering != Ordering::Equal);
            first.unwrap_or_else(|| natural(&a.display_id(), &b.display_id()))
        });
        rows
    }

    fn wants(&self, job: &JobView) -> bool {
        let among = |list: &[String], value: &str| list.is_empty() || list.iter().any(|wanted| wanted == value);
        let state = match (self.all_states, self.states.as_slice()) {
            (true, _) => true,
            (false, []) => !job.state.is_final(),
            (false, states) => states.contains(&job.state),
        };
        let licence = |name: &String| job.licences.iter().any(|(other, _)| other == name);
        state
            && (among(&self.users, &job.user) || self.users.contains(&job.uid.to_string()))
            && among(&self.accounts, &job.account)
            && among(&self.partitions, &job.queue)
            && among(&self.qos, job.qos.as_deref().unwrap_or_default())
            && among(&self.names, &job.name)
            && among(&self.reservations, job.reservation.as_deref().unwrap_or_default())
            && (self.licences.is_empty() || self.licences.iter().any(licence))
            && (self.nodes.is_empty() || self.nodes.iter().any(|node| job.nodes.contains(node)))
            && (self.jobs.is_empty() || self.jobs.iter().any(|id| names(*id, job)))
    }

    /// The rest of an array as its elements, where single ones are asked for.
    fn split(&self, job: JobView) -> Vec<JobView> {
        let Some(ArrayPlace { id, pending: Some(pending), .. }) = job.array.clone() else { return vec![job] };
        let whole = self.jobs.iter().any(|wanted| wanted.job == id && wanted.index.is_none());
        let single: Vec<u32> =
            self.jobs.iter().filter(|wanted| wanted.job == id).filter_map(|wanted| wanted.index).collect();
        if !self.elements && (single.is_empty() || whole) {
            return vec![job];
        }
        let plain = pending.split('%').next().unwrap_or_default();
        let Ok(indices) = ArraySpec::parse(plain) else { return vec![job] };
        let all = (0..indices.count()).filter_map(|ordinal| indices.index(ordinal));
        all.filter(|index| whole || single.is_empty() || single.contains(index))
            .map(|index| {
                let place = ArrayPlace { id, index: Some(index), pending: None };
                JobView { array: Some(place), ..job.clone() }
            })
            .collect()
    }
}

/// States that Slurm has and no job here is ever in.
const SLURM_ONLY: &[[&str; 2]] = &[
    ["SUSPENDED", "S"],
    ["BOOT_FAIL", "BF"],
    ["RESIZING", "RS"],
    ["RESV_DEL_HOLD", "RD"],
    ["REQUEUED", "RQ"],
    ["REQUEUE_FED", "RF"],
    ["REQUEUE_HOLD", "RH"],
    ["REVOKED", "RV"],
    ["SIGNALING", "SI"],
    ["SPECIAL_EXIT", "SE"],
    ["STAGE_OUT", "SO"],
    ["STOPPED", "ST"],
];

/// Whether a row is, or belongs to, a job that was asked for.
pub fn names(id: JobId, job: &JobView) -> bool {
    match (id.index, &job.array) {
        (None, array) => job.id == id.job || array.as_ref().is_some_and(|array| array.id == id.job),
        (Some(index), Some(array)) if array.id == id.job => match &array.pending {
            None => array.index == Some(index),
            Some(list) => {
                let plain = list.split('%').next().unwrap_or_default();
                ArraySpec::parse(plain).is_ok_and(|indices| indices.ordinal(index).is_some())
            }
        },
        _ => false,
    }
}

/// Reads `123` or `123_4`.
fn job_id(text: &str) -> Result<JobId, Failure> {
    let fail = || Failure::error(PROGRAM, format!("Invalid job id: {text}"), 1);
    parse_id(text).ok_or_else(fail)
}

/// Reads `123` or `123_4`; `None`: it is neither.
pub fn parse_id(text: &str) -> Option<JobId> {
    let (job, index) = text.split_once('_').map_or((text, None), |(job, index)| (job, Some(index)));
    let plain = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !plain(job) || !index.is_none_or(plain) {
        return None;
    }
    let index = match index {
        Some(index) => Some(index.parse().ok()?),
        None => None,
    };
    Some(JobId { job: job.parse().ok()?, index })
}

fn compare(code: Option<char>, a: &JobView, b: &JobView, texts: impl Fn() -> (String, String)) -> Ordering {
    match code {
        Some('t' | 'T') => a.state.cmp(&b.state),
        Some('p' | 'Q') => a.priority.cmp(&b.priority),
        Some('l' | 'L') => a.time_limit.cmp(&b.time_limit),
        Some('S') => a.started.or(a.promised_start).cmp(&b.started.or(b.promised_start)),
        Some('V') => a.submitted.cmp(&b.submitted),
        Some('M') => b.started.cmp(&a.started),
        Some('m') => a.memory().cmp(&b.memory()),
        _ => {
            let (a, b) = texts();
            natural(&a, &b)
        }
    }
}

/// Every field with a letter, `|` between them.
fn all() -> Format<JobView> {
    let mut pieces = Vec::new();
    for column in FIELDS.iter().filter(|column| column.code.is_some()) {
        if !pieces.is_empty() {
            pieces.push(Piece::Text("|".into()));
        }
        pieces.push(Piece::Column(column, columns::Width { chars: None, right: false }));
    }
    Format { pieces, unknown: Vec::new() }
}

/// What a line says whose format names no column.
pub fn unknown_field(name: &str) -> String {
    format!("{PROGRAM}: error: Invalid job format specification: {name}")
}

/// The help of the command.
pub fn help() -> String {
    crate::table::help(PROGRAM, "", TABLE)
}
