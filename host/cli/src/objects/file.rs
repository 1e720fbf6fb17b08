//! Reading a TOML file of objects. Unknown keys and wrong values are errors with their line.

use super::{EQUAL_PART, QUEUE_STATES, bounds};
use crate::amount;
use ephor_model::{Span, Timestamp};
use ephor_proto::v1::{
    AccountObject, Amount, Association, LicenceObject, NodeObject, ObjectSet, QosObject, QueueObject,
    ReservationObject, UseLimits, UserObject,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use toml::{Spanned, Value};

type Amounts = BTreeMap<String, Spanned<Value>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    queue: Vec<QueueEntry>,
    #[serde(default)]
    account: Vec<AccountEntry>,
    #[serde(default)]
    user: Vec<UserEntry>,
    #[serde(default)]
    qos: Vec<QosEntry>,
    #[serde(default)]
    licence: Vec<LicenceEntry>,
    #[serde(default)]
    reservation: Vec<ReservationEntry>,
    #[serde(default)]
    node: Vec<NodeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueEntry {
    name: Spanned<String>,
    parent: Option<String>,
    state: Option<Spanned<String>>,
    #[serde(default)]
    default: bool,
    #[serde(default)]
    priority: i64,
    default_time: Option<Spanned<Value>>,
    max_time: Option<Spanned<Value>>,
    max_nodes: Option<u32>,
    default_mem_per_cpu: Option<Spanned<Value>>,
    #[serde(default)]
    node_features: Vec<String>,
    #[serde(default)]
    quota: Amounts,
    #[serde(default)]
    limit: Amounts,
    weight: Option<i64>,
    #[serde(default)]
    limits: Amounts,
    #[serde(default)]
    per_user: Amounts,
    default_qos: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountEntry {
    name: Spanned<String>,
    parent: Option<String>,
    #[serde(default)]
    description: String,
    shares: Option<i64>,
    #[serde(default)]
    limits: Amounts,
    #[serde(default)]
    per_user: Amounts,
    default_qos: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserEntry {
    name: Spanned<String>,
    uid: Option<u32>,
    default_account: Option<String>,
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    limits: Amounts,
    #[serde(default)]
    in_account: BTreeMap<String, Amounts>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QosEntry {
    name: Spanned<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    limits: Amounts,
    #[serde(default)]
    per_user: Amounts,
    #[serde(default)]
    per_account: Amounts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LicenceEntry {
    name: Spanned<String>,
    count: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    name: Spanned<String>,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default)]
    extra: Amounts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReservationEntry {
    name: Spanned<String>,
    start: Spanned<String>,
    end: Spanned<String>,
    #[serde(default)]
    nodes: Vec<String>,
    node_count: Option<u32>,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    maintenance: bool,
    #[serde(default)]
    ignore_running: bool,
    #[serde(default)]
    description: String,
}

/// Reads the text of a file. `uid_of` knows the users of this machine.
///
/// # Errors
/// What is wrong, beginning with its line.
pub fn read(text: &str, uid_of: impl Fn(&str) -> Option<u32>) -> Result<ObjectSet, String> {
    let file: File = toml::from_str(text).map_err(|e| {
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        match e.span() {
            Some(span) => at(text, &span, message),
            None => message,
        }
    })?;
    once(text, "queue", file.queue.iter().map(|q| &q.name))?;
    once(text, "account", file.account.iter().map(|a| &a.name))?;
    once(text, "user", file.user.iter().map(|u| &u.name))?;
    once(text, "node", file.node.iter().map(|n| &n.name))?;
    once(text, "qos", file.qos.iter().map(|q| &q.name))?;
    once(text, "licence", file.licence.iter().map(|l| &l.name))?;
    once(text, "reservation", file.reservation.iter().map(|r| &r.name))?;
    let source = Source(text);
    Ok(ObjectSet {
        queues: file.queue.into_iter().map(|q| source.queue(q)).collect::<Result<_, _>>()?,
        accounts: file.account.into_iter().map(|a| source.account(a)).collect::<Result<_, _>>()?,
        users: file.user.into_iter().map(|u| source.user(u, &uid_of)).collect::<Result<_, _>>()?,
        qos: file.qos.into_iter().map(|q| source.qos(q)).collect::<Result<_, _>>()?,
        reservations: file.reservation.into_iter().map(|r| source.reservation(r)).collect::<Result<_, _>>()?,
        licences: file
            .licence
            .into_iter()
            .map(|l| LicenceObject { name: l.name.into_inner(), count: l.count })
            .collect(),
        nodes: file
            .node
            .into_iter()
            .map(|n| {
                let extra = source.amounts(&n.extra)?;
                Ok(NodeObject { name: n.name.into_inner(), features: n.features, extra })
            })
            .collect::<Result<_, String>>()?,
    })
}

fn at(text: &str, span: &Range<usize>, message: impl std::fmt::Display) -> String {
    let before = text.get(..span.start).unwrap_or(text);
    format!("line {}: {message}", before.matches('\n').count() + 1)
}

fn once<'a>(text: &str, kind: &str, names: impl Iterator<Item = &'a Spanned<String>>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if name.get_ref().is_empty() {
            return Err(at(text, &name.span(), format!("the {kind} has an empty name")));
        }
        if !seen.insert(name.get_ref()) {
            return Err(at(text, &name.span(), format!("the {kind} {} stands in the file twice", name.get_ref())));
        }
    }
    Ok(())
}

/// The text of the file, for lines in errors and for numbers as they were written.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn queue(&self, entry: QueueEntry) -> Result<QueueObject, String> {
        let state = match entry.state {
            Some(state) if !QUEUE_STATES.contains(&state.get_ref().as_str()) => {
                let message =
                    format!("'{}' is not a state of a queue; use {}", state.get_ref(), QUEUE_STATES.join(", "));
                return Err(at(self.0, &state.span(), message));
            }
            Some(state) => state.into_inner(),
            None => QUEUE_STATES[0].to_owned(),
        };
        let mem = entry.default_mem_per_cpu.map(|v| self.amount("mem", &v)).transpose()?;
        Ok(QueueObject {
            name: entry.name.into_inner(),
            parent: entry.parent,
            state,
            default: entry.default,
            priority: entry.priority,
            default_time: self.time(entry.default_time)?,
            max_time: self.time(entry.max_time)?,
            max_nodes: entry.max_nodes,
            default_mem_per_cpu: mem.map(i64::cast_unsigned),
            node_features: entry.node_features,
            quota: self.amounts(&entry.quota)?,
            limit: self.amounts(&entry.limit)?,
            weight: entry.weight.unwrap_or(EQUAL_PART),
            limits: self.limits(&entry.limits)?,
            per_user: self.limits(&entry.per_user)?,
            default_qos: entry.default_qos,
        })
    }

    fn account(&self, entry: AccountEntry) -> Result<AccountObject, String> {
        Ok(AccountObject {
            name: entry.name.into_inner(),
            parent: entry.parent,
            description: entry.description,
            shares: entry.shares.unwrap_or(EQUAL_PART),
            limits: self.limits(&entry.limits)?,
            per_user: self.limits(&entry.per_user)?,
            default_qos: entry.default_qos,
        })
    }

    fn qos(&self, entry: QosEntry) -> Result<QosObject, String> {
        Ok(QosObject {
            name: entry.name.into_inner(),
            description: entry.description,
            priority: entry.priority,
            accounts: entry.accounts,
            users: entry.users,
            limits: self.limits(&entry.limits)?,
            per_user: self.limits(&entry.per_user)?,
            per_account: self.limits(&entry.per_account)?,
        })
    }

    fn reservation(&self, entry: ReservationEntry) -> Result<ReservationObject, String> {
        let node_count = entry.node_count.unwrap_or(u32::try_from(entry.nodes.len()).unwrap_or(u32::MAX));
        Ok(ReservationObject {
            start: self.moment(&entry.start)?,
            end: self.moment(&entry.end)?,
            name: entry.name.into_inner(),
            nodes: entry.nodes,
            node_count,
            users: entry.users,
            accounts: entry.accounts,
            maintenance: entry.maintenance,
            ignore_running: entry.ignore_running,
            description: entry.description,
        })
    }

    /// A date with its time, the same for every reader: `Z` behind it says UTC.
    fn moment(&self, text: &Spanned<String>) -> Result<i64, String> {
        let utc = text.get_ref().strip_suffix('Z').filter(|t| t.contains('T'));
        let read = utc.and_then(|t| Timestamp::parse_when(t, Timestamp(0), Span(0)).ok());
        read.map(|at| at.0).ok_or_else(|| {
            at(self.0, &text.span(), format!("'{}' is not a time in UTC like 2026-12-01T16:30:00Z", text.get_ref()))
        })
    }

    /// Limits as on a command line, a key for each bound; nothing where nothing is bounded.
    fn limits(&self, entries: &Amounts) -> Result<Option<UseLimits>, String> {
        let mut limits = UseLimits::default();
        for (key, value) in entries {
            bounds::put(&mut limits, key, &self.scalar(value)?).map_err(|e| at(self.0, &value.span(), e))?;
        }
        Ok(Some(limits).filter(|limits| *limits != UseLimits::default()))
    }

    fn user(&self, entry: UserEntry, uid_of: &impl Fn(&str) -> Option<u32>) -> Result<UserObject, String> {
        let name = entry.name.get_ref();
        let uid = entry.uid.or_else(|| uid_of(name)).ok_or_else(|| {
            let message = format!("there is no user {name} on this machine; write the user id too: uid = 1000");
            at(self.0, &entry.name.span(), message)
        })?;
        let associations = entry.in_account.iter().map(|(account, limits)| {
            Ok::<_, String>(Association { account: account.clone(), limits: self.limits(limits)? })
        });
        Ok(UserObject {
            name: name.clone(),
            uid,
            default_account: entry.default_account,
            associations: associations.collect::<Result<_, _>>()?,
            limits: self.limits(&entry.limits)?,
            accounts: entry.accounts,
        })
    }

    /// Times are texts like "1:00:00"; a plain number is minutes, as everywhere. `unlimited` is no limit.
    fn time(&self, value: Option<Spanned<Value>>) -> Result<Option<i64>, String> {
        let Some(value) = value else { return Ok(None) };
        let limit = Span::parse_limit(&self.scalar(&value)?).map_err(|e| at(self.0, &value.span(), e))?;
        Ok(limit.map(|limit| limit.0))
    }

    fn amounts(&self, amounts: &Amounts) -> Result<Vec<Amount>, String> {
        let amount = |(resource, value): (&String, &Spanned<Value>)| {
            Ok(Amount { resource: resource.clone(), value: self.amount(resource, value)? })
        };
        amounts.iter().map(amount).collect()
    }

    fn amount(&self, resource: &str, value: &Spanned<Value>) -> Result<i64, String> {
        amount::parse(resource, &self.scalar(value)?).map_err(|e| at(self.0, &value.span(), e))
    }

    /// A text or a number as it was written: a decimal number never becomes a float on its way.
    fn scalar(&self, value: &Spanned<Value>) -> Result<String, String> {
        match value.get_ref() {
            Value::String(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            Value::Float(_) => Ok(self.0.get(value.span()).unwrap_or_default().replace('_', "")),
            _ => Err(at(self.0, &value.span(), "a number or a text belongs here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text, |_| None).unwrap_err()
    }

    #[test]
    fn units_are_those_that_people_write() {
        let text = r#"
            [[queue]]
            name = "main"
            default_time = "1:00:00"
            max_time = 90
            default_mem_per_cpu = "2G"
            quota = { cpu = 2.5, mem = 4096, gpu = "0.125", licence = 3 }
            [[user]]
            name = "ann"
        "#;
        let set = read(text, |name| (name == "ann").then_some(7)).unwrap();
        let queue = &set.queues[0];
        assert_eq!((queue.default_time, queue.max_time), (Some(3_600_000), Some(5_400_000)));
        assert_eq!((queue.default_mem_per_cpu, queue.weight, queue.state.as_str()), (Some(2048), 1, "open"));
        assert_eq!(amount::show_list(&queue.quota), "cpu=2.5,gpu=0.125,licence=3,mem=4G");
        assert_eq!(set.users[0].uid, 7);
    }

    #[test]
    fn what_is_wrong_stands_with_its_line() {
        for (text, part) in [
            ("[[queue]]\nname = \"a\"\nstat = \"open\"", "line 3: unknown field `stat`"),
            ("[[queues]]\nname = \"a\"", "line 1: unknown field `queues`"),
            ("[[queue]]\nname = \"a\"\nstate = \"shut\"", "line 3: 'shut' is not a state"),
            ("[[queue]]\nname = \"a\"\nquota = { cpu = 1.2345 }", "line 3: '1.2345' of cpu"),
            ("[[queue]]\nname = \"a\"\nmax_time = \"2h\"", "line 3: '2h' is not a time limit"),
            ("[[queue]]\nname = \"a\"\n[[queue]]\nname = \"a\"", "line 4: the queue a stands in the file twice"),
            ("[[user]]\nname = \"nobody-at-all\"", "line 2: there is no user nobody-at-all"),
            ("[[queue]]\nparent = \"a\"", "missing field `name`"),
            ("[[account]]\nname = \"a\"\nlimits = { runing = \"x\" }", "line 3: 'x' of runing"),
            ("[[queue", "line 1: "),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}
