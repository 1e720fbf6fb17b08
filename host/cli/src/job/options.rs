//! The options of a job as options of the command: made from the model's table, so that scripts, help, completion and
//! manual have one source.

use clap::parser::ArgMatches;
use clap::{Arg, ArgAction, Args, Command, Error, FromArgMatches};
use ephor_model::submit::{Dialect, Given, JobOption, OPTIONS, OptionDef, Place, Takes, is_changeable};

/// The job options of a command line, in their order.
#[derive(Clone)]
pub struct JobOptions(pub Vec<Given>);

fn argument(def: &OptionDef) -> Arg {
    let arg = Arg::new(def.long).long(def.long).help(def.help).help_heading("Job options").action(ArgAction::Append);
    let arg = def.short.into_iter().fold(arg, Arg::short);
    let arg = def.alias.into_iter().fold(arg, Arg::visible_alias);
    match def.takes {
        Takes::Nothing => arg.num_args(0).default_missing_value(""),
        Takes::Value(name) => arg.value_name(name).allow_hyphen_values(true),
        Takes::Maybe(name) => arg.value_name(name).num_args(0..=1).require_equals(true).default_missing_value(""),
    }
}

impl Args for JobOptions {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.iter().map(argument))
    }
    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for JobOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(given(matches, |_| true)))
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Those of the job options that can change after a job was submitted.
#[derive(Clone)]
pub struct ChangeOptions(pub Vec<Given>);

impl Args for ChangeOptions {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.iter().filter(|def| is_changeable(def.option)).map(argument))
    }
    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ChangeOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(given(matches, is_changeable)))
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options that were given, in their order.
fn given(matches: &ArgMatches, takes: impl Fn(JobOption) -> bool) -> Vec<Given> {
    let mut all: Vec<(usize, Given)> = Vec::new();
    for def in OPTIONS.iter().filter(|def| takes(def.option)) {
        let values = matches.get_many::<String>(def.long).into_iter().flatten();
        for (at, value) in matches.indices_of(def.long).into_iter().flatten().zip(values) {
            let value = Some(value.clone()).filter(|v| matches!(def.takes, Takes::Value(_)) || !v.is_empty());
            let place = Place::CommandLine;
            all.push((at, Given { option: def.option, value, place, dialect: Dialect::Ephor }));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, given)| given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_every_form_is_read() {
        let command = JobOptions::augment_args(Command::new("x").infer_long_args(true));
        let matches = command
            .try_get_matches_from(["x", "--requeue", "-n2", "--no-requeue", "--nice", "--nice=-5", "--out", "-o"])
            .unwrap();
        let given = JobOptions::from_arg_matches(&matches).unwrap().0;
        let read: Vec<(JobOption, Option<&str>)> = given.iter().map(|g| (g.option, g.value.as_deref())).collect();
        assert_eq!(
            read,
            [
                (JobOption::Requeue, None),
                (JobOption::Tasks, Some("2")),
                (JobOption::NoRequeue, None),
                (JobOption::Nice, None),
                (JobOption::Nice, Some("-5")),
                (JobOption::Output, Some("-o")),
            ]
        );
    }
}
