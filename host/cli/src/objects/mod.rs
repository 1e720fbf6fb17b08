//! Objects of the cluster as people write them, and the calls that read, make and delete them.

pub mod bounds;
pub mod file;
pub mod noun;
pub mod write;

use crate::connect::Controller;
use crate::{Global, output};
use anyhow::bail;
use clap::Args;
use ephor_proto::v1::{ApplyReply, DeleteRequest, Empty, ObjectSet};
use std::process::ExitCode;

/// States of a queue, as the contract names them.
pub const QUEUE_STATES: [&str; 4] = ["open", "stopped", "draining", "closed"];
/// Weight of a queue and shares of an account that say nothing: as much as each sibling.
pub const EQUAL_PART: i64 = 1;

/// Names of objects of one kind.
#[derive(Args)]
pub struct Names {
    /// Names
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// All objects of the cluster.
///
/// # Errors
/// The request was refused, or no controller answers.
pub fn all(controller: &mut Controller) -> anyhow::Result<ObjectSet> {
    controller.call(async |c| c.export(Empty {}).await)
}

/// Makes or changes objects, and says how many.
///
/// # Errors
/// One of them was refused, and so all of them; or no controller answers.
pub fn apply(controller: &mut Controller, set: ObjectSet, global: &Global) -> anyhow::Result<ExitCode> {
    let reply = controller.call(async |c| c.apply(set).await)?;
    if global.json {
        output::json(&reply)?;
    } else {
        let ApplyReply { created, changed, unchanged } = reply;
        output::line(&format!("{created} created, {changed} changed, {unchanged} unchanged"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes objects of one kind, one after the other. Ends with 1 where one could not be deleted; the others are.
///
/// # Errors
/// No controller answers.
pub fn delete(kind: &str, names: Names, global: &Global) -> anyhow::Result<ExitCode> {
    let mut controller = Controller::connect(global)?;
    let mut code = ExitCode::SUCCESS;
    for name in names.names {
        let request = DeleteRequest { kind: kind.into(), name: name.clone() };
        match controller.call(async |c| c.delete(request).await) {
            Ok(Empty {}) if global.json => {}
            Ok(Empty {}) => output::line(&format!("{kind} {name} deleted"))?,
            Err(error) if error.is::<crate::exit::CliError>() => return Err(error),
            Err(error) => {
                output::problem(&format!("error: {kind} {name}: {error:#}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    if global.json {
        output::json(&Empty {})?;
    }
    Ok(code)
}

/// How many objects a set has, of all kinds.
pub fn count(set: &ObjectSet) -> usize {
    set.queues.len()
        + set.accounts.len()
        + set.users.len()
        + set.nodes.len()
        + set.qos.len()
        + set.licences.len()
        + set.reservations.len()
}

/// The object to begin with: a new one for `create`, the one that is there for `set`.
///
/// # Errors
/// `create` and it is there already; `set` and it is not.
pub fn start<T>(found: Option<T>, create: bool, kind: &str, name: &str, new: impl FnOnce() -> T) -> anyhow::Result<T> {
    match (found, create) {
        (Some(_), true) => bail!("there is a {kind} {name} already; `ephor {kind} set {name}` changes it"),
        (None, false) => bail!("there is no {kind} {name}; `ephor {kind} create {name}` makes it"),
        (Some(object), false) => Ok(object),
        (None, true) => Ok(new()),
    }
}

/// A value that the word `none` takes away.
pub fn unless_none(text: String) -> Option<String> {
    Some(text).filter(|text| text != "none")
}

/// A list with commas; `none` is empty.
pub fn list(text: &str) -> Vec<String> {
    if text == "none" { Vec::new() } else { text.split(',').map(|part| part.trim().to_owned()).collect() }
}

/// The user id of a login name on this machine.
pub fn uid_of(name: &str) -> Option<u32> {
    nix::unistd::User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}
