//! `ephor policy list` and `ephor policy show`.

use crate::connect::Controller;
use crate::{Global, clock, output};
use clap::Args;
use ephor_proto::v1::{Empty, PolicyList, PolicyView};
use std::process::ExitCode;

/// Shows policies.
#[derive(Args)]
pub struct Show {
    /// Slots; none: all
    #[arg(value_name = "SLOT", value_parser = super::slot)]
    slots: Vec<String>,
}

fn all(global: &Global) -> anyhow::Result<Vec<PolicyView>> {
    Ok(Controller::connect(global)?.call(async |c| c.list_policies(Empty {}).await)?.policies)
}

/// Lists policies.
///
/// # Errors
/// The request was refused, or no controller answers.
pub fn list(global: &Global) -> anyhow::Result<ExitCode> {
    let policies = all(global)?;
    if global.json {
        output::json(&PolicyList { policies })?;
    } else {
        let row = |p: PolicyView| {
            let numbers = [p.generation, p.calls, p.faults].map(|n| n.to_string());
            let [generation, calls, faults] = numbers;
            [p.slot, p.name, p.version, generation, p.state, calls, faults, clock::show(p.since)]
        };
        let headings = ["SLOT", "NAME", "VERSION", "GENERATION", "STATE", "CALLS", "FAULTS", "SINCE"];
        output::table(headings, policies.into_iter().map(row).collect())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Show {
    /// Runs the command. Ends with 1 where one of the slots is empty; the others are shown.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let mut policies = all(global)?;
        if !self.slots.is_empty() {
            policies.retain(|p| self.slots.contains(&p.slot));
        }
        if global.json {
            output::json(&PolicyList { policies: policies.clone() })?;
        } else {
            for (index, policy) in policies.iter().enumerate() {
                if index > 0 {
                    output::line("")?;
                }
                print(policy)?;
            }
        }
        let empty: Vec<&String> = self.slots.iter().filter(|s| !policies.iter().any(|p| p.slot == **s)).collect();
        empty.iter().for_each(|slot| output::problem(&format!("error: {slot}: no policy is there")));
        Ok(if empty.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn print(p: &PolicyView) -> anyhow::Result<()> {
    let targets: Vec<String> = p.rollback_to.iter().map(ToString::to_string).collect();
    let micros = |ns: u64| format!("{}.{:03} us", ns / 1000, ns % 1000);
    let called = |text: String| if p.calls == 0 { String::new() } else { text };
    output::fields(&[
        ("Slot", p.slot.clone()),
        ("Policy", format!("{} {}", p.name, p.version)),
        ("State", p.state.clone()),
        ("Generation", format!("{}, since {} by {}", p.generation, clock::show(p.since), p.by)),
        ("Rolls back to", if targets.is_empty() { "nothing".into() } else { targets.join(", ") }),
        ("Component", p.digest.clone()),
        ("Configuration", p.config.clone()),
        ("Grants", p.grants.join(", ")),
        ("Calls", p.calls.to_string()),
        ("Mean call", called(micros(p.mean_call_ns))),
        ("Longest call", called(micros(p.max_call_ns))),
        ("Mean fuel", called(format!("{} of {}", p.mean_fuel, p.fuel_budget))),
        ("Faults", p.faults.to_string()),
    ])?;
    for fault in &p.last_faults {
        let times = if fault.count > 1 { format!(", {} times", fault.count) } else { String::new() };
        output::line(&format!(
            "  {}  generation {}  {}{times}: {}",
            clock::show(fault.at),
            fault.generation,
            fault.kind,
            fault.message.lines().next().unwrap_or_default()
        ))?;
        for rest in fault.message.lines().skip(1) {
            output::line(&format!("      {rest}"))?;
        }
    }
    Ok(())
}
