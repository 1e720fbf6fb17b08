//! Nouns whose objects are made, changed, shown and deleted alike: accounts, QOS, users, licences.

use super::{Names, all, delete, start};
use crate::connect::Controller;
use crate::{Global, output};
use clap::{Args, Subcommand};
use ephor_proto::v1::{Empty, ObjectSet, PoolView};
use std::process::ExitCode;

/// Commands of one noun; `F` are the options that give its objects their values.
#[derive(Args)]
pub struct Noun<F: Args> {
    #[command(subcommand)]
    command: Command<F>,
}

#[derive(Subcommand)]
enum Command<F: Args> {
    /// List all
    List,
    /// Show all about some, and what is in use of their limits
    Show {
        /// Names; none: all
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Make one
    Create(F),
    /// Change one: only what the options name
    Set(F),
    /// Delete some
    Delete(Names),
}

/// Objects of such a noun.
pub trait Object: Clone {
    /// Their kind, as the contract names it.
    const KIND: &'static str;
    /// Headings of a list.
    const HEADINGS: &'static [&'static str];
    /// Those of a set.
    fn of(set: ObjectSet) -> Vec<Self>;
    /// A set of these alone.
    fn set(objects: Vec<Self>) -> ObjectSet;
    /// Its name.
    fn name(&self) -> &str;
    /// Its row in a list; `used` is what is in use of its limits.
    fn row(&self, used: &[PoolView]) -> Vec<String>;
    /// Names and values for people; empty values are left out.
    fn fields(&self) -> Vec<(&'static str, String)>;
}

/// The options of such a noun.
pub trait Fields: Args {
    /// What they are about.
    type Object: Object;
    /// The name that was given.
    fn name(&self) -> &str;
    /// An object of that name that says nothing.
    fn blank(&self) -> Self::Object;
    /// The object with what the options name changed.
    ///
    /// # Errors
    /// The options make no sense together.
    fn change(self, old: Self::Object) -> anyhow::Result<Self::Object>;
}

impl<F: Fields> Noun<F> {
    /// Runs the command.
    ///
    /// # Errors
    /// The request was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List => show::<F::Object>(None, global),
            Command::Show { names } => show::<F::Object>(Some(names), global),
            Command::Create(fields) => apply(fields, true, global),
            Command::Set(fields) => apply(fields, false, global),
            Command::Delete(names) => delete(F::Object::KIND, names, global),
        }
    }
}

fn apply<F: Fields>(fields: F, create: bool, global: &Global) -> anyhow::Result<ExitCode> {
    let mut controller = Controller::connect(global)?;
    let found = F::Object::of(all(&mut controller)?).into_iter().find(|object| object.name() == fields.name());
    let old = start(found, create, F::Object::KIND, fields.name(), || fields.blank())?;
    let object = fields.change(old)?;
    super::apply(&mut controller, F::Object::set(vec![object]), global)
}

/// Lists objects (`None`), or shows those of these names, all where there are none.
fn show<O: Object>(names: Option<Vec<String>>, global: &Global) -> anyhow::Result<ExitCode> {
    let mut controller = Controller::connect(global)?;
    let mut objects = O::of(all(&mut controller)?);
    let wanted = names.as_deref().unwrap_or_default();
    if !wanted.is_empty() {
        objects.retain(|object| wanted.iter().any(|name| name == object.name()));
    }
    let missing: Vec<&String> = wanted.iter().filter(|n| !objects.iter().any(|o| o.name() == **n)).collect();
    if global.json {
        output::json(&O::set(objects.clone()))?;
    } else {
        let pools = controller.call(async |c| c.list_pools(Empty {}).await)?.pools;
        let used = |object: &O| -> Vec<PoolView> {
            pools.iter().filter(|pool| pool.kind == O::KIND && pool.name == object.name()).cloned().collect()
        };
        match names {
            None => output::rows(O::HEADINGS, objects.iter().map(|o| o.row(&used(o))).collect())?,
            Some(_) => {
                for (index, object) in objects.iter().enumerate() {
                    if index > 0 {
                        output::line("")?;
                    }
                    let mut fields = object.fields();
                    fields.extend(used(object).iter().map(|pool| ("In use", super::bounds::in_use(pool))));
                    output::fields(&fields)?;
                }
            }
        }
    }
    for name in &missing {
        output::problem(&format!("error: {} {name}: there is no such {}", O::KIND, O::KIND));
    }
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
