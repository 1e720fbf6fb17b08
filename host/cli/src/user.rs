//! `ephor user`.

use crate::connect::Controller;
use crate::objects::{self, Names, list, start, uid_of, unless_none};
use crate::{Global, output};
use anyhow::Context;
use clap::{Args, Subcommand};
use ephor_proto::v1::{ObjectSet, UserObject};
use std::process::ExitCode;

/// Commands about users.
#[derive(Args)]
pub struct User {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List users
    List,
    /// Make a user known
    Create(Fields),
    /// Change a user: only what the options name
    Set(Fields),
    /// Forget users
    Delete(Names),
}

#[derive(Args)]
struct Fields {
    /// Login name
    name: String,
    /// User id; without it, the one that the name has on this machine
    #[arg(long, value_name = "N")]
    uid: Option<u32>,
    /// Account of jobs that name none; `none`: the site's
    #[arg(long, value_name = "NAME")]
    default_account: Option<String>,
    /// Accounts that may be named, with commas; `none`: any
    #[arg(long, value_name = "LIST")]
    accounts: Option<String>,
}

impl User {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List => show(global),
            Command::Create(fields) => fields.apply(true, global),
            Command::Set(fields) => fields.apply(false, global),
            Command::Delete(names) => objects::delete("user", names, global),
        }
    }
}

impl Fields {
    fn apply(self, create: bool, global: &Global) -> anyhow::Result<ExitCode> {
        let mut controller = Controller::connect(global)?;
        let found = objects::all(&mut controller)?.users.into_iter().find(|u| u.name == self.name);
        let known = found.as_ref().map(|u| u.uid);
        let new = || UserObject { name: self.name.clone(), ..UserObject::default() };
        let old = start(found, create, "user", &self.name, new)?;
        let uid = self.uid.or(known).or_else(|| uid_of(&self.name)).with_context(|| {
            format!("there is no user {} on this machine; name the user id too: --uid 1000", self.name)
        })?;
        let user = UserObject {
            uid,
            default_account: self.default_account.map_or(old.default_account, unless_none),
            accounts: self.accounts.map_or(old.accounts, |accounts| list(&accounts)),
            name: old.name,
        };
        objects::apply(&mut controller, ObjectSet { users: vec![user], ..ObjectSet::default() }, global)
    }
}

fn show(global: &Global) -> anyhow::Result<ExitCode> {
    let users = objects::all(&mut Controller::connect(global)?)?.users;
    if global.json {
        output::json(&ObjectSet { users, ..ObjectSet::default() })?;
    } else {
        let row = |u: UserObject| {
            let accounts = if u.accounts.is_empty() { "any".into() } else { u.accounts.join(",") };
            [u.name, u.uid.to_string(), u.default_account.unwrap_or_else(|| "-".into()), accounts]
        };
        output::table(["NAME", "UID", "DEFAULT", "ACCOUNTS"], users.into_iter().map(row).collect())?;
    }
    Ok(ExitCode::SUCCESS)
}
