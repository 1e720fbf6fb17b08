//! `sacct`: its command line, which jobs it shows, and how.

pub mod fields;
pub mod table;

use crate::failure::Failure;
use crate::job::JobView;
use crate::show::Shown;
use crate::squeue::{JobId, names, parse_id};
use crate::table::list;
use crate::value::when;
use ephor_model::submit::hostlist;
use ephor_model::{JobState, Span, Timestamp};
use fields::{FIELDS, Field};
use table::{Key, TABLE};

/// Name of the command in messages.
pub const PROGRAM: &str = "sacct";

const PLAIN: &str = "jobid,jobname,partition,account,alloccpus,state,exitcode";
const BRIEF: &str = "jobid,state,exitcode";
const LONG: &str = "jobid,jobidraw,jobname,partition,maxrss,ntasks,alloccpus,elapsed,state,exitcode,reqmem,alloctres";

/// A job, or its batch script, which is a row of its own.
#[derive(Clone, Debug)]
pub struct Row {
    /// The job.
    pub job: JobView,
    /// Whether its script is meant.
    pub batch: bool,
}

/// How columns are parted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Cut and filled.
    #[default]
    Columns,
    /// `|` behind each.
    Parsable,
    /// `|` between them.
    Parsable2,
}

/// The command line, read.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each is what the option of its name asks for; empty: everything")]
pub struct Query {
    pub jobs: Vec<JobId>,
    pub users: Vec<String>,
    pub all_users: bool,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
    pub qos: Vec<String>,
    pub names: Vec<String>,
    pub nodes: Vec<String>,
    pub states: Vec<JobState>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub allocations: bool,
    pub heading: bool,
    pub style: Style,
    pub delimiter: Option<String>,
    pub format: Option<String>,
    pub help_format: bool,
    pub json: bool,
    pub version: bool,
    pub help: bool,
}

/// A column: a field and its width.
type Column = (&'static Field, i32);

impl Query {
    /// Reads the words after the command's name, and `SACCT_FORMAT`.
    ///
    /// # Errors
    /// What is no option or value.
    pub fn read(words: &[String], variable: impl Fn(&str) -> Option<String>, shown: &Shown) -> Result<Self, Failure> {
        let (options, operands) = crate::table::read(PROGRAM, TABLE, words, variable)?;
        let mut query = Self { heading: true, ..Self::default() };
        for (key, value) in options {
            query.take(key, value, shown)?;
        }
        for word in operands {
            query.take(Key::Jobs, word, shown)?;
        }
        if query.since.is_none() && query.jobs.is_empty() {
            // Without a word about it, today.
            query.since = when::parse("today", shown.now, shown.offset).ok();
        }
        Ok(query)
    }

    fn take(&mut self, key: Key, value: String, shown: &Shown) -> Result<(), Failure> {
        let at = || past(&value, shown).map_err(|line| Failure { lines: vec![line], code: 1 });
        match key {
            Key::Jobs => {
                for text in list(&value) {
                    // A step belongs to its job.
                    let job = text.split('.').next().unwrap_or_default();
                    let bad = || Failure::fatal(PROGRAM, format!("Bad job/step specified: {text}"));
                    self.jobs.push(parse_id(job).ok_or_else(bad)?);
                }
            }
            Key::Users => self.users.extend(list(&value)),
            Key::AllUsers => self.all_users = true,
            Key::Accounts => self.accounts = list(&value),
            Key::Partitions => self.partitions = list(&value),
            Key::Qos => self.qos = list(&value),
            Key::Name => self.names = list(&value),
            Key::Nodelist => {
                let fail = |why: String| Failure::error(PROGRAM, why, 1);
                self.nodes = hostlist::expand(&value).map_err(fail)?;
            }
            Key::States => {
                for word in list(&value) {
                    let bad = || Failure::fatal(PROGRAM, "unrecognized job state value");
                    self.states.push(JobState::parse(&word).ok_or_else(bad)?);
                }
            }
            Key::StartTime => self.since = Some(at()?),
            Key::EndTime => self.until = Some(at()?),
            Key::Allocations => self.allocations = true,
            Key::NoHeader => self.heading = false,
            Key::Parsable => self.style = Style::Parsable,
            Key::Parsable2 => self.style = Style::Parsable2,
            Key::Delimiter => self.delimiter = Some(value),
            Key::Format => self.format = Some(value),
            Key::Brief => self.format = Some(BRIEF.into()),
            Key::Long => self.format = Some(LONG.into()),
            Key::HelpFormat => self.help_format = true,
            Key::Json => self.json = true,
            Key::Version => self.version = true,
            Key::Help => self.help = true,
        }
        Ok(())
    }

    /// The columns.
    ///
    /// # Errors
    /// The name of a field that there is not.
    pub fn columns(&self) -> Result<Vec<Column>, Failure> {
        let format = self.format.as_deref().unwrap_or(PLAIN);
        format.split(',').filter(|item| !item.is_empty()).map(column).collect()
    }

    /// The rows of the jobs that were asked for, in the order of their ids.
    pub fn select(&self, jobs: Vec<JobView>) -> Vec<Row> {
        let mut jobs: Vec<JobView> = jobs.into_iter().filter(|job| self.wants(job)).collect();
        jobs.sort_by_key(|job| job.id);
        let mut rows = Vec::new();
        for job in jobs {
            let has_script = !self.allocations && job.started.is_some();
            let script = has_script.then(|| Row { job: job.clone(), batch: true });
            rows.push(Row { job, batch: false });
            rows.extend(script);
        }
        rows
    }

    /// The states of jobs to ask for; none: any.
    pub fn asked_states(&self) -> Vec<JobState> {
        let live = [JobState::Configuring, JobState::Running, JobState::Completing];
        let each = |state: &JobState| if *state == JobState::Running { live.to_vec() } else { vec![*state] };
        self.states.iter().flat_map(each).collect()
    }

    fn wants(&self, job: &JobView) -> bool {
        let among = |list: &[String], value: &str| list.is_empty() || list.iter().any(|wanted| wanted == value);
        (self.states.is_empty() || self.states.contains(&recorded(job.state)))
            && (among(&self.users, &job.user) || self.users.contains(&job.uid.to_string()))
            && among(&self.accounts, &job.account)
            && among(&self.partitions, &job.queue)
            && among(&self.qos, job.qos.as_deref().unwrap_or_default())
            && among(&self.names, &job.name)
            && (self.nodes.is_empty() || self.nodes.iter().any(|node| job.nodes.contains(node)))
            && (self.jobs.is_empty() || self.jobs.iter().any(|id| names(*id, job)))
    }

    /// Writes the rows, below a heading where one is wanted.
    pub fn text(&self, columns: &[Column], rows: &[Row], shown: &Shown) -> String {
        let mut text = String::new();
        if self.heading {
            self.line(&mut text, columns, |(field, _)| field.name.to_owned());
            if self.style == Style::Columns {
                self.line(&mut text, columns, |(_, width)| "-".repeat(width.unsigned_abs() as usize));
            }
        }
        for row in rows {
            self.line(&mut text, columns, |(field, _)| (field.value)(row, shown));
        }
        text
    }

    fn line(&self, out: &mut String, columns: &[Column], value: impl Fn(&Column) -> String) {
        let delimiter = self.delimiter.as_deref().unwrap_or("|");
        for (at, column) in columns.iter().enumerate() {
            let text = value(column);
            match self.style {
                Style::Columns => out.push_str(&fit(&text, column.1)),
                Style::Parsable => out.extend([&text, delimiter]),
                Style::Parsable2 if at == 0 => out.push_str(&text),
                Style::Parsable2 => out.extend([delimiter, &text]),
            }
        }
        out.push('\n');
    }
}

/// Reads a time as those of jobs are meant: `now-2days` too, and a clock alone is one that has been.
fn past(text: &str, shown: &Shown) -> Result<Timestamp, String> {
    let Shown { now, offset, .. } = *shown;
    if let Some(back) = text.strip_prefix("now-") {
        let ahead = when::parse(&format!("now+{back}"), now, offset)?;
        return Ok(now + (now - ahead));
    }
    let at = when::parse(text, now, offset)?;
    let is_clock = text.contains(':') && !text.contains(['-', '/', 'T']);
    Ok(if is_clock && at > now { at + Span(-86_400_000) } else { at })
}

/// Reads `Field[%[-]width]`; names may be cut short.
fn column(item: &str) -> Result<Column, Failure> {
    let (name, width) = item.trim().split_once('%').map_or((item.trim(), None), |(name, width)| (name, Some(width)));
    let bad = || Failure::error(PROGRAM, format!("Invalid field requested: \"{name}\""), 1);
    let lower = name.to_ascii_lowercase();
    let like = |exact: bool| {
        FIELDS.iter().find(|field| {
            let known = field.name.to_ascii_lowercase();
            if exact { known == lower } else { !lower.is_empty() && known.starts_with(&lower) }
        })
    };
    let field = like(true).or_else(|| like(false)).ok_or_else(bad)?;
    let width = match width {
        None => field.width,
        Some(text) => text.parse().ok().filter(|n: &i32| n.unsigned_abs() <= WIDEST).ok_or_else(bad)?,
    };
    Ok((field, width))
}

/// Widest column: a bound on what a format can make of a list.
const WIDEST: u32 = 65_536;

/// Cut, with a `+` in the place of the last character that fits, filled, and a blank behind.
fn fit(text: &str, width: i32) -> String {
    let wide = width.unsigned_abs() as usize;
    let mut text = text.to_owned();
    if text.chars().count() > wide {
        text = text.chars().take(wide.saturating_sub(1)).chain(['+']).collect();
    }
    if width < 0 { format!("{text:<wide$} ") } else { format!("{text:>wide$} ") }
}

/// The names of all fields, four on a line.
pub fn help_format() -> String {
    let lines = FIELDS.chunks(4).map(|names| {
        let line: String = names.iter().map(|field| format!("{:<19} ", field.name)).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// The help of the command.
pub fn help() -> String {
    crate::table::help(PROGRAM, "", TABLE)
}

/// The state that accounts have of a job: it runs from its start to its end. Clients take any word but a few for an end.
pub fn recorded(state: JobState) -> JobState {
    match state {
        JobState::Configuring | JobState::Completing => JobState::Running,
        state => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::TimeFormat;

    fn shown() -> Shown {
        Shown { now: Timestamp(1_796_079_849_000), offset: Span(0), times: TimeFormat::Iso }
    }

    fn read(line: &str) -> Result<Query, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Query::read(&words, |_| None, &shown())
    }

    /// A job that its node had not confirmed yet was CONFIGURING here. submitit takes any state but a few for an end, and
    /// never looked at the job again: it waited for ever for one that ran.
    #[test]
    fn accounts_know_nothing_between_waiting_running_and_an_end() {
        let live = [JobState::Configuring, JobState::Running, JobState::Completing];
        assert!(live.iter().all(|state| recorded(*state) == JobState::Running));
        for state in [JobState::Pending, JobState::Completed, JobState::Timeout, JobState::Cancelled] {
            assert_eq!(recorded(state), state);
        }
        assert_eq!(read("-s R").unwrap().asked_states(), live);
        assert_eq!(read("-s CA,PD").unwrap().asked_states(), [JobState::Cancelled, JobState::Pending]);
    }

    #[test]
    fn what_clients_ask_is_read() {
        let query = read("-o JobID,State,NodeList --parsable2 -j 12 -j 13_4 -j 14.batch").unwrap();
        let ids: Vec<(u64, Option<u32>)> = query.jobs.iter().map(|id| (id.job, id.index)).collect();
        assert_eq!(ids, [(12, None), (13, Some(4)), (14, None)]);
        assert_eq!(query.since, None);
        let columns = query.columns().unwrap();
        assert_eq!(query.text(&columns, &[], &shown()), "JobID|State|NodeList\n");
        let today = read("-X --parsable2 --clusters all --noheader --format=JobIdRaw,State --endtime now").unwrap();
        assert_eq!(today.since.map(|t| t.to_iso(Span(0))).as_deref(), Some("2026-11-30T00:00:00"));
        let cut = read("-X -n --format=jobid%20,state%-6,cputim").unwrap();
        let names: Vec<(&str, i32)> =
            cut.columns().unwrap().iter().map(|(field, width)| (field.name, *width)).collect();
        assert_eq!(names, [("JobID", 20), ("State", -6), ("CPUTime", 10)]);
        let back = read("-S now-1hour -E 23:00").unwrap();
        let times = [back.since, back.until].map(|t| t.unwrap().to_iso(Span(0)));
        assert_eq!(times, ["2026-11-30T22:04:09", "2026-11-30T23:00:00"]);
        let unknown = read("-o foo").unwrap().columns().err().unwrap();
        assert_eq!(unknown.lines, ["sacct: error: Invalid field requested: \"foo\""]);
    }

    #[test]
    fn columns_are_cut_and_filled() {
        assert_eq!(fit("COMPLETED", 10), " COMPLETED ");
        assert_eq!(fit("OUT_OF_MEMORY", 10), "OUT_OF_ME+ ");
        assert_eq!(fit("12", -5), "12    ");
    }
}
