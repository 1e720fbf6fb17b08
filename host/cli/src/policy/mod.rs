//! `ephor policy`.

mod activate;
mod build;
mod show;

use crate::Global;
use crate::connect::Controller;
use crate::output;
use clap::{Args, Subcommand};
use ephor_model::Slot;
use ephor_proto::v1::{PolicyView, SlotRef};
use std::process::ExitCode;

/// Commands about policies.
#[derive(Args)]
pub struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List policies
    List,
    /// Show all about policies: calls, faults, what can be rolled back to
    Show(show::Show),
    /// Let a component decide from now on
    Activate(activate::Activate),
    /// Go back to the generation before
    Rollback(SlotArg),
    /// Take a policy out; its role falls to its stated verdict
    Disable(SlotArg),
    /// Build a policy crate into a component
    Build(build::Build),
}

#[derive(Args)]
struct SlotArg {
    /// Role, or role and name: scheduling, authentication/local, admission/50-main
    #[arg(value_parser = slot)]
    slot: String,
}

/// Checks a slot and writes it in full.
fn slot(text: &str) -> Result<String, String> {
    Slot::parse(text).map(|slot| slot.to_string()).ok_or_else(|| {
        "write a role (authentication, admission, priority, scheduling, accounting), for the first two also with a \
         name: admission/50-main"
            .into()
    })
}

impl Policy {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List => show::list(global),
            Command::Show(command) => command.run(global),
            Command::Activate(command) => command.run(global),
            Command::Build(command) => command.run(global),
            Command::Rollback(SlotArg { slot }) => {
                let view = Controller::connect(global)?.call(async |c| c.roll_back_policy(SlotRef { slot }).await)?;
                now_live(&view, global)
            }
            Command::Disable(SlotArg { slot }) => {
                let message = format!("{slot} is disabled");
                let done = Controller::connect(global)?.call(async |c| c.disable_policy(SlotRef { slot }).await)?;
                if global.json {
                    output::json(&done)?
                } else {
                    output::line(&message)?
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn now_live(view: &PolicyView, global: &Global) -> anyhow::Result<ExitCode> {
    if global.json {
        output::json(view)?;
    } else {
        let PolicyView { slot, name, version, generation, .. } = view;
        output::line(&format!("{slot} is now {name} {version}, generation {generation}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
