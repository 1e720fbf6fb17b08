//! `Licenses=a:10,b`: names with their counts.

use super::error::{Found, Wrong, short};
use super::hosts::is_name;
use super::source::Statement;
use super::value;
use ephor_model::{Licence, limits};
use std::collections::BTreeMap;

/// Reads the licences of a line.
pub(super) fn read(line: &mut Statement, found: &mut Found) -> Vec<Licence> {
    let list = line.value("Licenses").unwrap_or_default().to_owned();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for part in list.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        let (name, count) = part.split_once([':', '*']).unwrap_or((part, "1"));
        if !is_name(name) {
            found.add(&line.place, Wrong::Name { kind: "licence", name: short(name) });
            continue;
        }
        let Ok(count) = value::count(count) else {
            found.value(&line.place, "Licenses", part, "write NAME:COUNT, such as solver:10");
            continue;
        };
        if counts.contains_key(name) {
            line.outcome.near("Licenses", format!("{name} stands several times, and the counts are added"));
        }
        let sum = counts.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
    if counts.len() > usize::from(limits::LICENCES) {
        let why = format!("at most {} licences can be made", limits::LICENCES);
        found.value(&line.place, "Licenses", &list, why);
        return Vec::new();
    }
    line.outcome.take();
    counts.into_iter().map(|(name, count)| Licence { name, count }).collect()
}
