//! `ephor job modify`.

use super::options::ChangeOptions;
use super::reference;
use crate::connect::Controller;
use crate::exit::CliError;
use crate::{Global, clock, output};
use clap::Args;
use ephor_model::Field;
use ephor_model::submit::{self, Caller};
use ephor_proto::modify::changes_to_wire;
use ephor_proto::v1::{JobRef, JobValues, ModifyRequest};
use std::process::ExitCode;

/// The end of the command's help.
pub const HELP: &str = "\
An empty value takes away what a job can be without: --dependency=, --begin=, --deadline=, --constraint=, --nodelist=,
--exclude=, --qos=, --comment=. Of a job that runs only the time limit, nice, begin, deadline, comment, throttle and
requeue can change; its owner may lower the time limit, an operator may also raise it.

  ephor job modify 123 --time-limit 2:00:00 --nice=50
  ephor job modify 123 -p long -N 2-4
  ephor job modify 200 --throttle 16";

/// Changes jobs that were submitted.
#[derive(Args)]
pub struct Modify {
    /// Jobs: 123; of an array the whole of it
    #[arg(required = true, value_name = "ID", value_parser = reference::parse)]
    ids: Vec<JobRef>,
    #[command(flatten)]
    options: ChangeOptions,
    /// Elements of the array that may run at once; 0: any number
    #[arg(long, value_name = "N", help_heading = "Job options")]
    throttle: Option<u32>,
}

impl Modify {
    /// Runs the command. Ends with 1 where one of the jobs could not be changed; the others were.
    ///
    /// # Errors
    /// An option is wrong, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (fields, values) = self.changes()?;
        let mut controller = Controller::connect(global)?;
        let mut failed = false;
        let mut replies = Vec::new();
        for id in self.ids {
            let job = Some(id);
            let request = ModifyRequest { job, fields: fields.clone(), values: Some(values.clone()) };
            match controller.call(async |c| c.modify_job(request).await) {
                Ok(reply) => {
                    reply.messages.iter().for_each(|message| output::problem(message));
                    replies.push(reply);
                }
                Err(error) if error.is::<CliError>() => return Err(error),
                Err(error) => {
                    failed = true;
                    output::problem(&format!("error: job {}: {error:#}", reference::show(&id)));
                }
            }
        }
        if global.json {
            output::json(&replies)?;
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn changes(&self) -> Result<(Vec<String>, JobValues), CliError> {
        let now = clock::now();
        let caller = Caller { now, utc_offset: clock::offset(now), work_dir: "/", environment: &[] };
        let read = submit::changes(&self.options.0, &caller);
        let mut changes = read.map_err(|error| CliError::Usage(error.to_string()))?;
        if let Some(throttle) = self.throttle {
            changes.fields.push(Field::Throttle);
            changes.throttle = throttle;
        }
        if changes.fields.is_empty() {
            return Err(CliError::Usage(
                "nothing is to be changed: name an option, such as --time-limit 2:00:00".into(),
            ));
        }
        Ok(changes_to_wire(&changes))
    }
}
