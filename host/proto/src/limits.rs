//! Limits and licences on the wire.

use crate::convert::Malformed;
use crate::v1;
use ephor_model::{Association, Span, UseLimits, limits};
use std::collections::BTreeMap;

/// Writes a record of limits; one that bounds nothing is left out.
pub fn limits_to_wire(l: &UseLimits) -> Option<v1::UseLimits> {
    let amounts = |amounts: &BTreeMap<String, i64>| {
        amounts.iter().map(|(name, value)| v1::Amount { resource: name.clone(), value: *value }).collect()
    };
    (!l.is_empty()).then(|| v1::UseLimits {
        running: l.running,
        submitted: l.submitted,
        in_use: amounts(&l.in_use),
        minutes: amounts(&l.minutes),
        wall: l.wall.map(|t| t.0),
    })
}

/// Reads a record of limits. Whether its resources are there is not known here.
///
/// # Errors
/// A resource that is named twice, amounts and times out of range, too many names.
pub fn limits_from_wire(wire: Option<v1::UseLimits>) -> Result<UseLimits, Malformed> {
    let Some(w) = wire else { return Ok(UseLimits::default()) };
    let amounts = |wire: Vec<v1::Amount>| {
        let mut out = BTreeMap::new();
        if wire.len() > limits::NAMES_PER_OBJECT {
            return Err(Malformed(format!("limits name more than {} resources", limits::NAMES_PER_OBJECT)));
        }
        for v1::Amount { resource, value } in wire {
            if !(0..=limits::AMOUNT).contains(&value) {
                return Err(Malformed(format!("a limit of {value} {resource} is out of range")));
            }
            if out.insert(resource.clone(), value).is_some() {
                return Err(Malformed(format!("limits name '{resource}' twice")));
            }
        }
        Ok(out)
    };
    if w.wall.is_some_and(|ms| ms <= 0 || ms > limits::TIME_LIMIT_MS) {
        return Err(Malformed("the longest time limit must be above 0 and at most 100 years".into()));
    }
    Ok(UseLimits {
        running: w.running,
        submitted: w.submitted,
        in_use: amounts(w.in_use)?,
        minutes: amounts(w.minutes)?,
        wall: w.wall.map(Span),
    })
}

/// Writes a user's limits in single accounts.
pub fn associations_to_wire(associations: &[Association]) -> Vec<v1::Association> {
    let write = |a: &Association| v1::Association { account: a.account.clone(), limits: limits_to_wire(&a.limits) };
    associations.iter().map(write).collect()
}

/// Reads a user's limits in single accounts.
///
/// # Errors
/// As [`limits_from_wire`]; an account that is named twice.
pub fn associations_from_wire(wire: Vec<v1::Association>) -> Result<Vec<Association>, Malformed> {
    if wire.len() > limits::NAMES_PER_OBJECT {
        return Err(Malformed(format!("a user has limits in more than {} accounts", limits::NAMES_PER_OBJECT)));
    }
    let mut out: Vec<Association> = Vec::with_capacity(wire.len());
    for v1::Association { account, limits } in wire {
        out.push(Association { account, limits: limits_from_wire(limits)? });
    }
    out.sort_by(|a, b| a.account.cmp(&b.account));
    match out.windows(2).find(|pair| pair[0].account == pair[1].account) {
        Some(pair) => Err(Malformed(format!("account '{}' is named twice", pair[0].account))),
        None => Ok(out),
    }
}

/// Writes the licences that a job takes.
pub fn licences_to_wire(licences: &[(String, u32)]) -> Vec<v1::LicenceObject> {
    licences.iter().map(|(name, count)| v1::LicenceObject { name: name.clone(), count: *count }).collect()
}

/// Reads the licences that a job takes. What is there is not known here.
///
/// # Errors
/// Too many kinds, or a name that is too long.
pub fn licences_from_wire(wire: Vec<v1::LicenceObject>) -> Result<Vec<(String, u32)>, Malformed> {
    if wire.len() > limits::LICENCES_PER_JOB || wire.iter().any(|l| l.name.len() > limits::NAME_BYTES) {
        let (kinds, bytes) = (limits::LICENCES_PER_JOB, limits::NAME_BYTES);
        return Err(Malformed(format!("a job takes at most {kinds} kinds of licences, with names of {bytes} bytes")));
    }
    Ok(wire.into_iter().map(|l| (l.name, l.count)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive_the_wire_and_bad_ones_are_named() {
        let limits = UseLimits {
            running: Some(0),
            submitted: Some(7),
            in_use: [("gpu".to_owned(), 0), ("licence:x".to_owned(), 3)].into(),
            minutes: [("cpu".to_owned(), 1000)].into(),
            wall: Some(Span::minutes(5)),
        };
        assert_eq!(limits_from_wire(limits_to_wire(&limits)), Ok(limits));
        assert_eq!(limits_to_wire(&UseLimits::default()), None);
        let bad = |w: v1::UseLimits| limits_from_wire(Some(w)).unwrap_err().0;
        let cpu = |value| v1::Amount { resource: "cpu".into(), value };
        assert!(bad(v1::UseLimits { in_use: vec![cpu(1), cpu(2)], ..Default::default() }).contains("'cpu' twice"));
        assert!(bad(v1::UseLimits { minutes: vec![cpu(-1)], ..Default::default() }).contains("out of range"));
        assert!(bad(v1::UseLimits { wall: Some(0), ..Default::default() }).contains("above 0"));
    }
}
