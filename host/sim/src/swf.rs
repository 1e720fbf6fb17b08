//! The Standard Workload Format: header lines that begin with `;`, then one job a line in 18 fields.

use crate::limits::PROCESSORS;
use ephor_model::limits::TIME_LIMIT_MS;

/// Fields of a job line.
const FIELDS: usize = 18;
/// What stands for an unknown value.
const UNKNOWN: i64 = -1;
/// Bytes of a bad field that an error shows.
const SHOWN: usize = 40;

/// One job as the log has it. Times in seconds; -1: unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwfJob {
    /// Its line in the file, from 1.
    pub line: u32,
    /// Field 1: its number.
    pub number: i64,
    /// Field 2: when it was submitted, from the start of the log.
    pub submit: i64,
    /// Field 4: how long it ran.
    pub run: i64,
    /// Field 5: processors that it got.
    pub allocated: i64,
    /// Field 8: processors that it asked for.
    pub requested: i64,
    /// Field 9: how long its user thought it would run.
    pub estimate: i64,
    /// Field 12: its user.
    pub user: i64,
}

impl SwfJob {
    /// The processors that it is simulated with: those asked for, else those it got; `None`: neither is known.
    pub fn processors(&self) -> Option<u32> {
        let known = [self.requested, self.allocated].into_iter().find(|n| *n > 0)?;
        u32::try_from(known).ok()
    }
}

/// A log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swf {
    /// Header lines of the form `; Name: value`, in order.
    pub header: Vec<(String, String)>,
    /// Jobs, in the order of the file.
    pub jobs: Vec<SwfJob>,
}

/// Why a text is not a log, with the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwfError {
    /// A line is wrong.
    #[error(
        "line {line}: {what}; a job of the Standard Workload Format is 18 numbers, and header lines begin with ';'"
    )]
    Line {
        /// Which, from 1.
        line: u32,
        /// What is wrong with it.
        what: String,
    },
    /// There is no job in it.
    #[error(
        "there is no job line in it; a log in the Standard Workload Format has one line of 18 numbers for each job"
    )]
    Empty,
}

impl Swf {
    /// Reads a log.
    ///
    /// # Errors
    /// The first line that is neither empty, nor a header, nor a job; or there is no job at all.
    pub fn parse(text: &[u8]) -> Result<Self, SwfError> {
        let mut log = Self::default();
        for (index, bytes) in text.split(|b| *b == b'\n').enumerate() {
            let line = index as u32 + 1;
            let bytes = bytes.trim_ascii();
            if let Some(header) = bytes.strip_prefix(b";") {
                log.header.extend(header_entry(header));
            } else if !bytes.is_empty() {
                log.jobs.push(job(line, bytes).map_err(|what| SwfError::Line { line, what })?);
            }
        }
        if log.jobs.is_empty() { Err(SwfError::Empty) } else { Ok(log) }
    }

    /// The value of the first header line of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// How many processors the machine had, where the header says so.
    pub fn processors(&self) -> Option<u32> {
        let number = |name| self.header(name)?.parse().ok().filter(|n| *n > 0);
        number("MaxProcs").or_else(|| number("MaxNodes"))
    }
}

fn header_entry(line: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(line);
    let (name, value) = text.split_once(':')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

fn job(line: u32, bytes: &[u8]) -> Result<SwfJob, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let mut fields = [UNKNOWN; FIELDS];
    let mut count = 0;
    for (index, field) in text.split_ascii_whitespace().enumerate() {
        count += 1;
        if let Some(place) = fields.get_mut(index) {
            *place = number(index + 1, field)?;
        }
    }
    if count != FIELDS {
        return Err(format!("it has {count} fields"));
    }
    let [number, submit, _, run, allocated, _, _, requested, estimate, _, _, user, ..] = fields;
    let longest = TIME_LIMIT_MS / 1000;
    for (name, seconds) in [("submit time", submit), ("run time", run), ("estimate", estimate)] {
        if seconds > longest {
            return Err(format!("a {name} of {seconds} seconds is above the {longest} that can be simulated"));
        }
    }
    for processors in [allocated, requested] {
        if processors > i64::from(PROCESSORS) {
            return Err(format!("{processors} processors are above the {PROCESSORS} that can be simulated"));
        }
    }
    Ok(SwfJob { line, number, submit, run, allocated, requested, estimate, user })
}

/// A field as a whole number. Averages may have a fraction, which nothing here needs; the other fields may not.
fn number(field: usize, text: &str) -> Result<i64, String> {
    if let Ok(whole) = text.parse() {
        return Ok(whole);
    }
    let shown = || text.chars().take(SHOWN).collect::<String>();
    match text.parse::<f64>() {
        Ok(n) if !n.is_finite() => Err(format!("field {field} is '{}', which is not a number", shown())),
        Ok(n) if !matches!(field, 6 | 7 | 10) && n.fract() != 0.0 => {
            Err(format!("field {field} is '{}', which is not a whole number", shown()))
        }
        // Saturates: what is too large is refused with the limit that it passes.
        Ok(n) => Ok(n as i64),
        Err(_) => Err(format!("field {field} is '{}', which is not a number", shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "7 100 -1 60 -1 1.5 -1 4 90 -1 1 12 3 -1 1 -1 -1 -1";

    fn error(text: &str) -> String {
        Swf::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_header_and_a_job() {
        let log = Swf::parse(format!("; MaxProcs: 100\r\n;\n; Note: x: y\n\n  {JOB}  \r\n").as_bytes()).unwrap();
        assert_eq!(log.header("maxprocs"), Some("100"));
        assert_eq!(log.header("Note"), Some("x: y"));
        assert_eq!(log.processors(), Some(100));
        let job = &log.jobs[0];
        assert_eq!((job.line, job.number, job.submit, job.run, job.estimate, job.user), (5, 7, 100, 60, 90, 12));
        assert_eq!(job.processors(), Some(4));
    }

    #[test]
    fn processors_come_from_field_8_else_5() {
        let with = |allocated, requested| SwfJob {
            line: 1,
            number: 1,
            submit: 0,
            run: 1,
            allocated,
            requested,
            estimate: 1,
            user: 1,
        };
        assert_eq!(with(3, 4).processors(), Some(4));
        assert_eq!(with(3, -1).processors(), Some(3));
        assert_eq!(with(-1, 0).processors(), None);
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(error("; header\n\n1 2 3").contains("line 3: it has 3 fields"));
        assert!(error(&format!("{JOB} 9")).contains("line 1: it has 19 fields"));
        assert!(error(&JOB.replacen("100", "x", 1)).contains("field 2 is 'x', which is not a number"));
        assert!(error(&JOB.replacen("100", "1.5", 1)).contains("field 2 is '1.5', which is not a whole number"));
        assert!(error(&JOB.replacen("100", "nan", 1)).contains("not a number"));
        assert!(error(&JOB.replacen("100", "99999999999999", 1)).contains("submit time"));
        assert!(error(&JOB.replacen(" 4 ", " 99999999999 ", 1)).contains("processors are above"));
        assert!(error("name,cpu\npod,4").contains("line 1"));
        assert!(error("; only: a header").contains("no job line"));
        assert!(error("").contains("no job line"));
        assert!(Swf::parse(b"\xff\xfe\x00").unwrap_err().to_string().contains("line 1: it is not text"));
    }
}
