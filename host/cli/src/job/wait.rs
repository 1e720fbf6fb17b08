//! Waiting for the end of a job, and its exit code as ours.

use super::reference;
use crate::connect::Controller;
use crate::exit::CliError;
use crate::output;
use anyhow::bail;
use ephor_model::JobState;
use ephor_proto::v1::{Job, JobQuery, JobRef};
use std::process::ExitCode;
use std::time::Duration;

/// Between two looks at first: short jobs are seen at once.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at last: a thousand waiting clients stay a light load.
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// Looks in a row that may find no controller: about a minute, enough for a restart.
const UNREACHABLE_LOOKS: u32 = 40;

/// Waits until a job, or every element of an array, has ended. The worst exit code is ours.
///
/// # Errors
/// The job is not known, or the controller stays away.
pub fn until_end(controller: &mut Controller, job: JobRef) -> anyhow::Result<ExitCode> {
    let query = JobQuery { jobs: vec![job], finished: true, ..JobQuery::default() };
    let mut pause = FIRST_PAUSE;
    let mut missed = 0;
    loop {
        match controller.call(async |c| c.list_jobs(query.clone()).await) {
            Ok(list) if list.jobs.is_empty() => bail!("job {} is not known any more", reference::show(&job)),
            Ok(list) if list.jobs.iter().all(has_ended) => {
                for job in list.jobs.iter().filter(|job| code(job) != 0) {
                    output::problem(&format!("Job {}: {}", job.display_id, end(job)));
                }
                return Ok(ExitCode::from(list.jobs.iter().map(code).max().unwrap_or(0)));
            }
            Ok(_) => missed = 0,
            Err(error) if error.is::<CliError>() && missed < UNREACHABLE_LOOKS => missed += 1,
            Err(error) => return Err(error),
        }
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(LAST_PAUSE);
    }
}

fn has_ended(job: &Job) -> bool {
    JobState::parse(&job.state).is_some_and(JobState::is_final)
}

/// How a job ended, in words.
pub fn end(job: &Job) -> String {
    match (job.exit_code, job.exit_signal) {
        (_, signal) if signal != 0 => format!("{}, signal {signal}", job.state),
        (0, _) => job.state.clone(),
        (code, _) => format!("{}, exit code {code}", job.state),
    }
}

/// As a shell tells it: the exit code, 128 + N for signal N; 1 where a job failed without either.
fn code(job: &Job) -> u8 {
    let completed = JobState::parse(&job.state) == Some(JobState::Completed);
    let code = match (job.exit_code, job.exit_signal) {
        (_, signal) if signal != 0 => signal.saturating_add(128),
        (0, _) if !completed => 1,
        (code, _) => code,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_become_exit_codes() {
        let job =
            |state: &str, exit_code, exit_signal| Job { state: state.into(), exit_code, exit_signal, ..Job::default() };
        assert_eq!(code(&job("COMPLETED", 0, 0)), 0);
        assert_eq!(code(&job("FAILED", 3, 0)), 3);
        assert_eq!(code(&job("TIMEOUT", 0, 15)), 143);
        assert_eq!(code(&job("CANCELLED", 0, 0)), 1);
        assert!(!has_ended(&job("COMPLETING", 0, 0)));
    }
}
