//! Limits as people write them: `running=5,submitted=100,wall=1-0,cpu=64,cpu-minutes=100000,licence:solver=2`.

use crate::amount;
use ephor_model::Span;
use ephor_proto::v1::{Amount, PoolView, UseLimits};

/// Behind a resource: not the amount, but the amount times the minutes that were granted.
const MINUTES: &str = "-minutes";

/// Limits on a command line: what they change of those that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// No bound at all.
    None,
    /// These bounds; `None` takes one away.
    Some(Vec<(String, Option<String>)>),
}

/// Reads `KEY=VALUE,...`; `none` as a value takes that bound away, and as the whole text all of them.
///
/// # Errors
/// Entries that make no sense, with what would.
pub fn parse(text: &str) -> Result<Change, String> {
    if text == "none" {
        return Ok(Change::None);
    }
    let mut changes = Vec::new();
    for part in text.split(',') {
        let Some((key, value)) = part.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(format!("'{part}' is not KEY=VALUE, such as running=5 or cpu=64"));
        };
        let value = (value != "none").then(|| value.to_owned());
        // Read on trial, so that what is wrong is told before anything is sent.
        if let Some(value) = &value {
            put(&mut UseLimits::default(), key, value)?;
        }
        changes.push((key.to_owned(), value));
    }
    Ok(Change::Some(changes))
}

impl Change {
    /// The limits after the change.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn of(self, old: Option<UseLimits>) -> anyhow::Result<Option<UseLimits>> {
        let Self::Some(changes) = self else { return Ok(None) };
        let mut limits = old.unwrap_or_default();
        for (key, value) in changes {
            take_away(&mut limits, &key);
            if let Some(value) = value {
                put(&mut limits, &key, &value).map_err(anyhow::Error::msg)?;
            }
        }
        Ok(Some(limits).filter(|limits| *limits != UseLimits::default()))
    }
}

/// The change that an option asks for, where it was given.
///
/// # Errors
/// As [`parse`].
pub fn changed(change: Option<Change>, old: Option<UseLimits>) -> anyhow::Result<Option<UseLimits>> {
    match change {
        None => Ok(old),
        Some(change) => change.of(old),
    }
}

/// Sets one bound.
///
/// # Errors
/// A value that makes no sense for its key.
pub fn put(limits: &mut UseLimits, key: &str, value: &str) -> Result<(), String> {
    let count = || value.parse::<u32>().map(Some).map_err(|_| format!("'{value}' of {key} is not a whole number"));
    match key {
        "running" => limits.running = count()?,
        "submitted" => limits.submitted = count()?,
        "wall" => {
            let wall = Span::parse_limit(value).map_err(|e| format!("wall: {e}"))?;
            limits.wall = wall.map(|wall| wall.0);
        }
        _ => {
            let (resource, amounts) = match key.strip_suffix(MINUTES) {
                Some(resource) => (resource, &mut limits.minutes),
                None => (key, &mut limits.in_use),
            };
            let value = amount::parse(resource, value)?;
            amounts.push(Amount { resource: resource.into(), value });
            amounts.sort_by(|a, b| a.resource.cmp(&b.resource));
        }
    }
    Ok(())
}

fn take_away(limits: &mut UseLimits, key: &str) {
    match key {
        "running" => limits.running = None,
        "submitted" => limits.submitted = None,
        "wall" => limits.wall = None,
        _ => match key.strip_suffix(MINUTES) {
            Some(resource) => limits.minutes.retain(|a| a.resource != resource),
            None => limits.in_use.retain(|a| a.resource != key),
        },
    }
}

/// Each bound with its value, as [`put`] takes them.
pub fn entries(limits: Option<&UseLimits>) -> Vec<(String, String)> {
    let Some(limits) = limits else { return Vec::new() };
    let mut out = Vec::new();
    out.extend(limits.running.map(|n| ("running".to_owned(), n.to_string())));
    out.extend(limits.submitted.map(|n| ("submitted".to_owned(), n.to_string())));
    out.extend(limits.wall.map(|ms| ("wall".to_owned(), Span(ms).to_clock())));
    let shown = |a: &Amount, behind| (format!("{}{behind}", a.resource), amount::show(&a.resource, a.value));
    out.extend(limits.in_use.iter().map(|a| shown(a, "")));
    out.extend(limits.minutes.iter().map(|a| shown(a, MINUTES)));
    out
}

/// Limits as [`parse`] reads them; nothing where nothing is bounded.
pub fn show(limits: Option<&UseLimits>) -> String {
    entries(limits).into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// What is in use of one limit: `user 'ann' in account 'lab': cpu 8 of 64`.
pub fn in_use(pool: &PoolView) -> String {
    let what = pool.what.as_str();
    let shown = |n| match what {
        "wall" => Span(n).to_clock(),
        _ => amount::show(what.strip_suffix(MINUTES).unwrap_or(what), n),
    };
    match what {
        "wall" => format!("{}: wall at most {}", pool.whose, shown(pool.most)),
        _ => format!("{}: {what} {} of {}", pool.whose, shown(pool.used), shown(pool.most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_back_as_they_were_written() {
        let text = "running=5,submitted=100,wall=1-00:00:00,cpu=64,gpu=0,licence:solver=2,mem=4G,cpu-minutes=1000.5";
        let limits = parse(text).unwrap().of(None).unwrap();
        assert_eq!(show(limits.as_ref()), text);
        let changed = parse("running=none,cpu=8").unwrap().of(limits).unwrap();
        assert_eq!(show(changed.as_ref()), text.replace("running=5,", "").replace("cpu=64", "cpu=8"));
        assert_eq!(parse("none").unwrap().of(changed).unwrap(), None);
        for (bad, part) in [
            ("running", "KEY=VALUE"),
            ("running=x", "whole number"),
            ("cpu=1.2345", "three places"),
            ("wall=2h", "time limit"),
        ] {
            assert!(parse(bad).unwrap_err().contains(part), "{bad}: {}", parse(bad).unwrap_err());
        }
    }
}
