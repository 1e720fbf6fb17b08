//! `ephor job why`.

use super::{reference, wait};
use crate::connect::Controller;
use crate::{Global, clock, output};
use clap::Args;
use ephor_model::{JobState, Span};
use ephor_proto::v1::{Explanation, JobRef};
use std::process::ExitCode;

/// Explains jobs.
#[derive(Args)]
pub struct Why {
    /// Jobs: 123, or 123_4 for one element of an array
    #[arg(required = true, value_name = "ID", value_parser = reference::parse)]
    ids: Vec<JobRef>,
}

impl Why {
    /// Runs the command.
    ///
    /// # Errors
    /// A job is not known, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let mut controller = Controller::connect(global)?;
        for (index, id) in self.ids.iter().enumerate() {
            let explanation = controller.call(async |c| c.explain_job(*id).await)?;
            if global.json {
                output::json(&explanation)?;
                continue;
            }
            if index > 0 {
                output::line("")?;
            }
            for line in lines(&explanation, clock::now().0) {
                output::line(&line)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn lines(why: &Explanation, now: i64) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(job) = &why.job {
        let name = format!("Job {} ({})", job.display_id, job.name);
        out.push(match JobState::parse(&job.state) {
            Some(JobState::Pending) if job.reason.is_empty() || job.reason == "None" => {
                format!("{name} waits and has not been looked at yet")
            }
            Some(JobState::Pending) => format!("{name} waits: {}", job.reason),
            Some(state) if state.is_final() => format!("{name} has ended: {}", wait::end(job)),
            _ => format!("{name} is {}", job.state),
        });
    }
    out.extend(why.lines.iter().map(|line| format!("  {line}")));
    if !why.policy.is_empty() {
        out.push(format!("Said by the policy {}", why.policy));
    }
    if let Some(at) = why.earliest_start {
        out.push(match at - now {
            ahead if ahead > 0 => format!("Could start at {}, in {}", clock::show(at), Span(ahead).to_clock()),
            _ => "Could start now".into(),
        });
    }
    if !why.priority.is_empty() {
        let sum: i64 = why.priority.iter().fold(0, |sum, f| sum.saturating_add(f.value));
        out.push(format!("Priority {sum}:"));
        let name = why.priority.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
        let value = why.priority.iter().map(|f| f.value.to_string().len()).max().unwrap_or(0);
        for f in &why.priority {
            out.push(format!("  {:name$}  {:>value$}  {}", f.name, f.value, f.how).trim_end().to_owned());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_proto::v1::{Factor, Job};

    #[test]
    fn an_explanation_reads_from_top_to_bottom() {
        let job = Job {
            display_id: "7".into(),
            name: "big".into(),
            state: "PENDING".into(),
            reason: "Resources".into(),
            ..Job::default()
        };
        let factor = |name: &str, value| Factor { name: name.into(), value, how: "how".into() };
        let why = Explanation {
            job: Some(job),
            lines: vec!["needs 64 cores, 10 are free".into()],
            policy: "scheduling-backfill, generation 3".into(),
            earliest_start: Some(0),
            priority: vec![factor("age", 100), factor("queue", 7)],
        };
        assert_eq!(
            lines(&why, 1),
            [
                "Job 7 (big) waits: Resources",
                "  needs 64 cores, 10 are free",
                "Said by the policy scheduling-backfill, generation 3",
                "Could start now",
                "Priority 107:",
                "  age    100  how",
                "  queue    7  how",
            ]
        );
    }
}
