//! Conditions on other jobs, such as `afterok:12:13,afterany:14_3,singleton`.

use crate::id::JobId;
use crate::job::{Dependency, DependencyKind};
use crate::limits;

/// Reads a list of conditions: `,` means all of them, `?` any one. A bare id means `afterany`. Repeats collapse.
pub fn parse(text: &str) -> Result<(Vec<Dependency>, bool), String> {
    let any = text.contains('?');
    if any && text.contains(',') {
        return Err(format!("'{text}' mixes , (all) and ? (any); use one of them"));
    }
    let mut all: Vec<Dependency> = Vec::new();
    let mut put = |dependency| {
        if !all.contains(&dependency) {
            all.push(dependency);
        }
        match all.len() > limits::DEPENDENCIES {
            true => Err(format!("more than {} dependencies", limits::DEPENDENCIES)),
            false => Ok(()),
        }
    };
    for part in text.split([',', '?']).map(str::trim) {
        let mut words = part.split(':');
        let first = words.next().unwrap_or_default();
        let (kind, ids) = if first.starts_with(|c: char| c.is_ascii_digit()) {
            (DependencyKind::AfterAny, part)
        } else {
            let kind = kind(first)?;
            let ids = part.get(first.len() + 1..).unwrap_or_default();
            (kind, ids)
        };
        match (kind, ids) {
            (DependencyKind::Singleton, "") => put(Dependency::on(kind, JobId(0)))?,
            (DependencyKind::Singleton, _) => {
                return Err(format!("'{part}': singleton names no job; leave the ids out"));
            }
            (_, "") => return Err(format!("'{part}' names no job; write {}:ID", kind.name())),
            (_, ids) => {
                for id in ids.split(':') {
                    let (job, index) = job(id)?;
                    if index.is_some() && kind == DependencyKind::AfterCorr {
                        return Err(format!(
                            "'{id}': aftercorr waits for a whole array, element by element; leave _ out"
                        ));
                    }
                    put(Dependency { kind, job, index })?;
                }
            }
        }
    }
    Ok((all, any))
}

fn kind(word: &str) -> Result<DependencyKind, String> {
    let lower = word.to_ascii_lowercase();
    if let Some((kind, _)) = DependencyKind::NAMES.iter().find(|(_, name)| *name == lower) {
        return Ok(*kind);
    }
    if ["afterburstbuffer", "expand"].contains(&lower.as_str()) {
        return Err(format!("the dependency '{lower}' does not work yet; use {}", names()));
    }
    Err(format!("'{word}' is not a dependency; use {}, such as afterok:123", names()))
}

fn names() -> String {
    let names: Vec<&str> = DependencyKind::NAMES.iter().map(|(_, name)| *name).collect();
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

/// `123`, or `123_4` for one element of an array.
fn job(text: &str) -> Result<(JobId, Option<u32>), String> {
    if text.contains('+') {
        return Err(format!("'{text}': a delay after the start of another job does not work yet"));
    }
    // `123_*` is how an array is shown in a list of dependencies.
    let whole = text.strip_suffix("_*").unwrap_or(text);
    let (id, index) = whole.split_once('_').map_or((whole, None), |(id, index)| (id, Some(index)));
    let plain = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let fail = || format!("'{text}' is not the id of a job, nor of an element of an array like 123_4");
    let id = id.parse().ok().filter(|n| plain(id) && *n > 0).ok_or_else(fail)?;
    let index = index.map(|t| t.parse().ok().filter(|_| plain(t)).ok_or_else(fail)).transpose()?;
    Ok((JobId(id), index))
}
