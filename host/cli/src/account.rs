//! `ephor account`.

use crate::connect::Controller;
use crate::objects::{self, EQUAL_PART, Names, start, unless_none};
use crate::{Global, output};
use clap::{Args, Subcommand};
use ephor_proto::v1::{AccountObject, ObjectSet};
use std::process::ExitCode;

/// Commands about accounts.
#[derive(Args)]
pub struct Account {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List accounts
    List,
    /// Make an account
    Create(Fields),
    /// Change an account: only what the options name
    Set(Fields),
    /// Delete accounts
    Delete(Names),
}

#[derive(Args)]
struct Fields {
    /// Name
    name: String,
    /// Account above; `none`: at the top
    #[arg(long, value_name = "NAME")]
    parent: Option<String>,
    /// Free text
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Share relative to its siblings
    #[arg(long, value_name = "N")]
    shares: Option<i64>,
}

impl Account {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List => show(global),
            Command::Create(fields) => fields.apply(true, global),
            Command::Set(fields) => fields.apply(false, global),
            Command::Delete(names) => objects::delete("account", names, global),
        }
    }
}

impl Fields {
    fn apply(self, create: bool, global: &Global) -> anyhow::Result<ExitCode> {
        let mut controller = Controller::connect(global)?;
        let found = objects::all(&mut controller)?.accounts.into_iter().find(|a| a.name == self.name);
        let new = || AccountObject { name: self.name.clone(), shares: EQUAL_PART, ..AccountObject::default() };
        let old = start(found, create, "account", &self.name, new)?;
        let account = AccountObject {
            parent: self.parent.map_or(old.parent, unless_none),
            description: self.description.unwrap_or(old.description),
            shares: self.shares.unwrap_or(old.shares),
            name: old.name,
        };
        objects::apply(&mut controller, ObjectSet { accounts: vec![account], ..ObjectSet::default() }, global)
    }
}

fn show(global: &Global) -> anyhow::Result<ExitCode> {
    let accounts = objects::all(&mut Controller::connect(global)?)?.accounts;
    if global.json {
        output::json(&ObjectSet { accounts, ..ObjectSet::default() })?;
    } else {
        let row =
            |a: AccountObject| [a.name, a.parent.unwrap_or_else(|| "-".into()), a.shares.to_string(), a.description];
        output::table(["NAME", "PARENT", "SHARES", "DESCRIPTION"], accounts.into_iter().map(row).collect())?;
    }
    Ok(ExitCode::SUCCESS)
}
