//! The corpus of directive lines with what Slurm made of them: reading the file, and holding a result against a case.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The file.
#[derive(Deserialize)]
pub struct Corpus {
    /// Its cases.
    pub cases: Vec<Case>,
}

/// One script with options.
#[derive(Deserialize)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// Lines after the first, unless that is among them.
    pub lines: Vec<String>,
    /// Options of the command line.
    #[serde(default)]
    pub argv: Vec<String>,
    /// `stdin`: the script is not a file.
    #[serde(default)]
    pub via: Option<String>,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of a case.
#[derive(Deserialize)]
pub struct Expect {
    /// It is no job.
    #[serde(default)]
    pub rejected: bool,
    /// With this exit code.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// These lines are among the errors, ` | ` between them.
    #[serde(default)]
    pub stderr: Option<String>,
    /// Fields of each component that are not those of a job without options.
    #[serde(default)]
    pub jobs: Vec<BTreeMap<String, String>>,
}

/// What came of it.
pub struct Outcome {
    /// Exit code of `sbatch`.
    pub code: i32,
    /// Its errors and warnings.
    pub stderr: String,
    /// `scontrol show job -o` for each component.
    pub jobs: Vec<String>,
}

/// What the placeholders stand for.
pub struct Place<'a> {
    /// `<script>`: the script's path as `sbatch` was given it.
    pub script: &'a str,
    /// Name of a job without a name.
    pub name: &'a str,
    /// `<cwd>`.
    pub folder: &'a str,
    /// `<user>`.
    pub user: &'a str,
    /// `<submit + 1 h>`: times that will do.
    pub in_an_hour: Vec<String>,
}

/// Fields by the names of the corpus and of `scontrol`, and what they are for a job without options.
const FIELDS: &[(&str, &str, &str)] = &[
    ("job_name", "JobName", "<name>"),
    ("num_nodes", "NumNodes", "1"),
    ("num_cpus", "NumCPUs", "1"),
    ("num_tasks", "NumTasks", "1"),
    ("cpus_per_task", "CPUs/Task", "1"),
    ("time_limit", "TimeLimit", "UNLIMITED"),
    ("tres", "TRES", "cpu=1,mem=100M,node=1,billing=1"),
    ("min_cpus_node", "MinCPUsNode", "1"),
    ("features", "Features", "(null)"),
    ("partition", "Partition", "main"),
    ("tres_per_node", "TresPerNode", ""),
    ("tres_per_job", "TresPerJob", ""),
    ("tres_per_task", "TresPerTask", ""),
    ("mem_per_tres", "MemPerTres", ""),
    ("array_task_id", "ArrayTaskId", ""),
    ("dependency", "Dependency", "(null)"),
    ("comment", "Comment", ""),
    ("licenses", "Licenses", "(null)"),
    ("oversubscribe", "OverSubscribe", "OK"),
    ("stdout", "StdOut", "<any>"),
    ("stderr", "StdErr", "<any>"),
    ("workdir", "WorkDir", "<cwd>"),
    ("nodelist", "ReqNodeList", "(null)"),
    ("requeue", "Requeue", "1"),
    ("mail_user", "MailUser", ""),
    ("mail_type", "MailType", ""),
    ("account", "Account", "<any>"),
    ("start_time", "StartTime", "Unknown"),
    ("eligible_time", "EligibleTime", "Unknown"),
    ("ntasks_per_n_b_s_c", "NtasksPerN:B:S:C", "0:0:*:*"),
    ("het_job_offset", "HetJobOffset", ""),
    ("min_memory_cpu", "MinMemoryCPU", "<memory>"),
    ("min_memory_node", "MinMemoryNode", "<memory>"),
];

impl Case {
    /// The script.
    pub fn script(&self) -> String {
        let begins = self.lines.first().is_some_and(|line| line.starts_with("#!"));
        let without =
            self.expect.stderr.as_deref().is_some_and(|text| text.contains("does not look like a batch script"));
        let first = if begins || without { "" } else { "#!/bin/bash\n" };
        format!("{first}{}\n", self.lines.join("\n"))
    }

    /// Whether it has a script at all.
    pub fn wraps(&self) -> bool {
        self.argv.iter().any(|word| word == "--wrap")
    }

    /// Every way in which the outcome is not what it must be.
    pub fn differences(&self, outcome: &Outcome, place: &Place<'_>) -> Vec<String> {
        let mut wrong = Vec::new();
        for line in self.expect.stderr.iter().flat_map(|text| text.split(" | ")) {
            let line = line.replace("<script>", place.script);
            if !outcome.stderr.lines().any(|said| said == line) {
                wrong.push(format!("must say '{line}', says '{}'", outcome.stderr.trim().replace('\n', " | ")));
            }
        }
        let code = self.expect.exit_code.unwrap_or(0);
        if outcome.code != code {
            wrong.push(format!(
                "must end with {code}, ends with {}: {}",
                outcome.code,
                outcome.stderr.trim().replace('\n', " | ")
            ));
        }
        if outcome.jobs.len() != self.expect.jobs.len() && !self.expect.rejected {
            wrong.push(format!("must make {} jobs, makes {}", self.expect.jobs.len(), outcome.jobs.len()));
        }
        if self.expect.rejected && !outcome.jobs.is_empty() {
            wrong.push("must be refused, is taken".into());
        }
        for (fields, shown) in self.expect.jobs.iter().zip(&outcome.jobs) {
            compare(fields, shown, place, &mut wrong);
        }
        wrong
    }
}

fn compare(fields: &BTreeMap<String, String>, shown: &str, place: &Place<'_>, wrong: &mut Vec<String>) {
    for name in fields.keys().filter(|name| !FIELDS.iter().any(|(known, _, _)| known == name)) {
        wrong.push(format!("the corpus has a field {name} that is not known here"));
    }
    let id = field(shown, "JobId").unwrap_or_default();
    let memory_named = fields.contains_key("min_memory_cpu") || fields.contains_key("min_memory_node");
    for (name, slurm, default) in FIELDS {
        let is = field(shown, slurm).unwrap_or_default();
        let must = match (fields.get(*name), *default) {
            (Some(must), _) => must.as_str(),
            (None, "<any>") => continue,
            (None, "<name>") => place.name,
            (None, "<memory>") => match (*name, memory_named) {
                ("min_memory_cpu", false) => "100M",
                _ => "",
            },
            (None, default) => default,
        };
        if must == "<submit + 1 h>" {
            if !place.in_an_hour.contains(&is) {
                wrong.push(format!("{slurm} must be in an hour, is {is}"));
            }
            continue;
        }
        let must = must.replace("<cwd>", place.folder).replace("<jobid>", &id).replace("<submitting user>", place.user);
        let must = must.replace("<user>", place.user);
        if is.trim() != must.trim() {
            wrong.push(format!("{slurm} must be '{must}', is '{is}'"));
        }
    }
}

/// A field of a line of `scontrol show job -o`: until the next name of a field.
fn field(shown: &str, name: &str) -> Option<String> {
    let whole = format!(" {shown}");
    let start = whole.find(&format!(" {name}="))? + name.len() + 2;
    let rest = &whole[start..];
    let names = ["JobId=", "Power=", "UserId=", "BatchHost=", "NumNodes=", "AllocNode:Sid=", "ReqB:S:C:T="];
    let is_name = |word: &str| {
        names.iter().any(|n| word.starts_with(n))
            || FIELDS.iter().any(|(_, n, _)| word.starts_with(&format!("{n}=")))
            || word
                .split_once('=')
                .is_some_and(|(n, _)| n.chars().next().is_some_and(char::is_uppercase) && !n.contains('('))
    };
    let mut end = rest.len();
    let mut at = 0_usize;
    for word in rest.split(' ') {
        if at > 0 && is_name(word) {
            end = at.saturating_sub(1);
            break;
        }
        at += word.len() + 1;
    }
    Some(rest[..end.min(rest.len())].to_owned())
}
