//! The Philly log: one line a job with its submit time, run time, GPUs and virtual cluster, in no order.

use crate::csv;
use crate::limits::{GPUS, LOG_SECONDS};
use crate::line::BadLine;
use ephor_model::time::days_from_civil;

/// How a log of this kind begins.
pub const HEADER: &str = "timestamp,duration";
const COLUMNS: [&str; 4] = ["timestamp", "duration", "num_gpus", "cluster"];

/// One job as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhillyJob {
    /// Its line in the file, from 1.
    pub line: u32,
    /// When it was submitted: seconds since 1970, the local time of the log taken as it is.
    pub submit: i64,
    /// How long it ran, in seconds.
    pub run: i64,
    /// GPUs that it had.
    pub gpus: u32,
    /// Its virtual cluster.
    pub cluster: String,
}

/// Reads a log; the jobs come by submit time, among equal times in the order of the file.
///
/// # Errors
/// The first line that is not a job.
pub fn parse(text: &[u8]) -> Result<Vec<PhillyJob>, BadLine> {
    let mut jobs = Vec::new();
    for row in csv::rows(text, &COLUMNS)? {
        let submit = seconds(row.text(0)).ok_or_else(|| {
            let what = format!("timestamp is '{}'; write it like 2017-10-09 07:01:55", row.text(0));
            BadLine::new(row.line, what)
        })?;
        let cluster = row.text(3).to_owned();
        if cluster.is_empty() {
            return Err(BadLine::new(row.line, "cluster is empty; it is the name of the job's queue"));
        }
        let run = row.number(1, LOG_SECONDS)?;
        let gpus = row.number(2, i64::from(GPUS))? as u32;
        jobs.push(PhillyJob { line: row.line, submit, run, gpus, cluster });
    }
    jobs.sort_by_key(|job| job.submit);
    Ok(jobs)
}

/// Seconds since 1970 of a date and a time of day.
fn seconds(text: &str) -> Option<i64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let good = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    let days = days_from_civil(i64::from(year), month, day);
    good.then(|| days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
}

fn numbers(text: &str, separator: char) -> Option<[u32; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_by_time() {
        let text = "timestamp,duration,num_gpus,gpu_time,cluster\n\
            2017-10-09 07:01:55,66.0,1,66.0,b\n2017-10-09 06:13:03,2951.0,8,1.0,a\n";
        let jobs = parse(text.as_bytes()).unwrap();
        let shown: Vec<_> = jobs.iter().map(|j| (j.line, j.submit, j.run, j.gpus, j.cluster.as_str())).collect();
        // `date -u -d '2017-10-09 06:13:03' +%s`
        assert_eq!(shown, [(3, 1_507_529_583, 2951, 8, "a"), (2, 1_507_532_515, 66, 1, "b")]);
    }

    #[test]
    fn bad_lines_are_named() {
        for (row, part) in [
            ("2017-10-9x,1,1,a", "line 2: timestamp is '2017-10-9x'"),
            ("2017-13-09 07:01:55,1,1,a", "line 2: timestamp"),
            ("2017-10-09 07:01,1,1,a", "line 2: timestamp"),
            ("2017-10-09 07:01:55,-1,1,a", "line 2: duration is '-1'"),
            ("2017-10-09 07:01:55,1,9999999999,a", "line 2: num_gpus is '9999999999'"),
            ("2017-10-09 07:01:55,1,1,", "line 2: cluster is empty"),
        ] {
            let error = parse(format!("timestamp,duration,num_gpus,cluster\n{row}").as_bytes()).unwrap_err();
            assert!(error.to_string().contains(part), "{row}: {error}");
        }
    }
}
