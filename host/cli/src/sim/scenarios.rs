//! `ephor sim --scenarios FILE`: what small clusters come to under a policy, against what a file expects.

use crate::{Global, output};
use ephor_sim::policies::Policies;
use ephor_sim::read;
use ephor_sim::scenarios::{self, CaseReport};
use ephor_sim::simulate::Choice;
use std::path::Path;
use std::process::ExitCode;

/// Runs the cases of a file; the exit code is 1 where one of them fails.
pub fn run(file: &Path, choice: &Choice, global: &Global) -> anyhow::Result<ExitCode> {
    let text = String::from_utf8(read::file(file, "scenarios")?)
        .map_err(|_| anyhow::anyhow!("the scenarios '{}' are no text", file.display()))?;
    let (mut policies, chosen) = Policies::load(choice)?;
    let name = file.display().to_string();
    let report = scenarios::run(&text, &name, &chosen.scheduling, &mut policies, &mut |_, _| {})
        .map_err(|why| anyhow::anyhow!("the scenarios '{name}' cannot be read: {why}"))?;
    match global.json {
        true => output::json(&report)?,
        false => {
            report.cases.iter().try_for_each(|case| output::line(&line(case)))?;
            output::line(&format!("{} passed, {} failed under {}", report.passed, report.failed, report.policy))?;
        }
    }
    Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(case: &CaseReport) -> String {
    match case.passed {
        true => format!("ok    {}  {}", case.id, case.title),
        false => format!("FAIL  {}  {}: {}", case.id, case.title, case.why.join("; ")),
    }
}
