//! Writing objects as the TOML file that `ephor apply` takes. What equals its default is left out.

use super::{EQUAL_PART, QUEUE_STATES, bounds};
use crate::amount;
use ephor_model::{Span, Timestamp};
use ephor_proto::v1::{
    AccountObject, Amount, LicenceObject, NodeObject, ObjectSet, QosObject, QueueObject, ReservationObject, UseLimits,
    UserObject,
};
use toml::Value;

/// Writes a file.
pub fn toml(set: &ObjectSet) -> String {
    let parts = set.queues.iter().map(queue);
    let parts = parts.chain(set.accounts.iter().map(account));
    let parts = parts.chain(set.users.iter().map(user));
    let parts = parts.chain(set.qos.iter().map(qos));
    let parts = parts.chain(set.licences.iter().map(licence));
    let parts = parts.chain(set.nodes.iter().map(node));
    let parts = parts.chain(set.reservations.iter().map(reservation));
    parts.collect::<Vec<_>>().join("\n")
}

/// One table of the file.
struct Entry(String);

impl Entry {
    fn new(kind: &str, name: &str) -> Self {
        let mut entry = Self(format!("[[{kind}]]\n"));
        entry.text("name", name);
        entry
    }

    fn line(&mut self, key: &str, value: &str) {
        self.0.push_str(&format!("{key} = {value}\n"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.line(key, &quote(value));
    }

    fn list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|v| quote(v)).collect();
            self.line(key, &format!("[{}]", values.join(", ")));
        }
    }

    fn amounts(&mut self, key: &str, amounts: &[Amount]) {
        if !amounts.is_empty() {
            let parts: Vec<String> =
                amounts.iter().map(|a| format!("{} = {}", quote_key(&a.resource), value(a))).collect();
            self.line(key, &format!("{{ {} }}", parts.join(", ")));
        }
    }

    fn limits(&mut self, key: &str, limits: Option<&UseLimits>) {
        let parts: Vec<String> = bounds::entries(limits)
            .iter()
            .map(|(name, value)| format!("{} = {}", quote_key(name), bare(value)))
            .collect();
        if !parts.is_empty() {
            self.line(key, &format!("{{ {} }}", parts.join(", ")));
        }
    }

    fn time(&mut self, key: &str, ms: Option<i64>) {
        if let Some(ms) = ms {
            self.text(key, &Span(ms).to_clock());
        }
    }
}

fn quote(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn quote_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if bare { key.to_owned() } else { quote(key) }
}

/// A number where the text of the amount is one, else a text.
fn value(a: &Amount) -> String {
    bare(&amount::show(&a.resource, a.value))
}

fn bare(text: &str) -> String {
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') { text.to_owned() } else { quote(text) }
}

fn queue(q: &QueueObject) -> String {
    let mut entry = Entry::new("queue", &q.name);
    q.parent.iter().for_each(|parent| entry.text("parent", parent));
    if q.state != QUEUE_STATES[0] {
        entry.text("state", &q.state);
    }
    if q.default {
        entry.line("default", "true");
    }
    if q.priority != 0 {
        entry.line("priority", &q.priority.to_string());
    }
    entry.time("default_time", q.default_time);
    entry.time("max_time", q.max_time);
    q.max_nodes.iter().for_each(|n| entry.line("max_nodes", &n.to_string()));
    if let Some(mib) = q.default_mem_per_cpu {
        entry.line("default_mem_per_cpu", &value(&Amount { resource: "mem".into(), value: mib.cast_signed() }));
    }
    entry.list("node_features", &q.node_features);
    entry.amounts("quota", &q.quota);
    entry.amounts("limit", &q.limit);
    if q.weight != EQUAL_PART {
        entry.line("weight", &q.weight.to_string());
    }
    entry.limits("limits", q.limits.as_ref());
    entry.limits("per_user", q.per_user.as_ref());
    q.default_qos.iter().for_each(|name| entry.text("default_qos", name));
    entry.0
}

fn account(a: &AccountObject) -> String {
    let mut entry = Entry::new("account", &a.name);
    a.parent.iter().for_each(|parent| entry.text("parent", parent));
    if !a.description.is_empty() {
        entry.text("description", &a.description);
    }
    if a.shares != EQUAL_PART {
        entry.line("shares", &a.shares.to_string());
    }
    entry.limits("limits", a.limits.as_ref());
    entry.limits("per_user", a.per_user.as_ref());
    a.default_qos.iter().for_each(|name| entry.text("default_qos", name));
    entry.0
}

fn user(u: &UserObject) -> String {
    let mut entry = Entry::new("user", &u.name);
    entry.line("uid", &u.uid.to_string());
    u.default_account.iter().for_each(|account| entry.text("default_account", account));
    entry.list("accounts", &u.accounts);
    entry.limits("limits", u.limits.as_ref());
    for association in &u.associations {
        entry.limits(&format!("in_account.{}", quote_key(&association.account)), association.limits.as_ref());
    }
    entry.0
}

fn qos(q: &QosObject) -> String {
    let mut entry = Entry::new("qos", &q.name);
    if !q.description.is_empty() {
        entry.text("description", &q.description);
    }
    if q.priority != 0 {
        entry.line("priority", &q.priority.to_string());
    }
    entry.list("accounts", &q.accounts);
    entry.list("users", &q.users);
    entry.limits("limits", q.limits.as_ref());
    entry.limits("per_user", q.per_user.as_ref());
    entry.limits("per_account", q.per_account.as_ref());
    entry.0
}

fn licence(l: &LicenceObject) -> String {
    let mut entry = Entry::new("licence", &l.name);
    entry.line("count", &l.count.to_string());
    entry.0
}

fn reservation(r: &ReservationObject) -> String {
    let mut entry = Entry::new("reservation", &r.name);
    let utc = |ms| format!("{}Z", Timestamp(ms).to_iso(Span(0)));
    entry.text("start", &utc(r.start));
    entry.text("end", &utc(r.end));
    entry.list("nodes", &r.nodes);
    entry.list("users", &r.users);
    entry.list("accounts", &r.accounts);
    if r.maintenance {
        entry.line("maintenance", "true");
    }
    if r.ignore_running {
        entry.line("ignore_running", "true");
    }
    if !r.description.is_empty() {
        entry.text("description", &r.description);
    }
    entry.0
}

fn node(n: &NodeObject) -> String {
    let mut entry = Entry::new("node", &n.name);
    entry.list("features", &n.features);
    entry.amounts("extra", &n.extra);
    entry.0
}

#[cfg(test)]
mod tests {
    use super::super::file::read;
    use super::*;
    use ephor_proto::v1::Association;

    fn limits(text: &str) -> Option<UseLimits> {
        bounds::parse(text).unwrap().of(None).unwrap()
    }

    fn amount(resource: &str, value: i64) -> Amount {
        Amount { resource: resource.into(), value }
    }

    #[test]
    fn an_export_reads_back_as_what_it_was() {
        let set = ObjectSet {
            queues: vec![
                QueueObject {
                    name: "a \"b\" \\ \n é".into(),
                    parent: Some("root".into()),
                    state: "draining".into(),
                    default: true,
                    priority: -3,
                    default_time: Some(3_600_000),
                    max_time: Some(90_061_000),
                    max_nodes: Some(4),
                    default_mem_per_cpu: Some(2048),
                    node_features: vec!["a".into(), "b".into()],
                    quota: vec![amount("cpu", 2500), amount("gpu:h100", 125), amount("mem", 1500)],
                    limit: vec![amount("gpu", 1000), amount("mem", 0)],
                    weight: 0,
                    limits: limits("submitted=9,cpu-minutes=1.5"),
                    per_user: limits("wall=1-00:00:00"),
                    default_qos: Some("high".into()),
                },
                QueueObject { name: "plain".into(), state: "open".into(), weight: 1, ..QueueObject::default() },
            ],
            accounts: vec![AccountObject {
                name: "p".into(),
                parent: Some("q".into()),
                description: "it's \"free\"".into(),
                shares: 5,
                limits: limits("cpu=0"),
                per_user: limits("licence:x=2"),
                default_qos: None,
            }],
            users: vec![UserObject {
                name: "root".into(),
                uid: 0,
                default_account: Some("p".into()),
                accounts: vec!["p".into()],
                limits: limits("running=0"),
                associations: vec![Association { account: "a b".into(), limits: limits("mem=2G,running=3") }],
            }],
            qos: vec![QosObject {
                name: "high".into(),
                description: "fast".into(),
                priority: -4,
                accounts: vec!["p".into()],
                users: vec!["root".into()],
                limits: limits("running=1"),
                per_user: limits("running=2"),
                per_account: limits("running=3"),
            }],
            licences: vec![LicenceObject { name: "x".into(), count: 4 }],
            reservations: vec![ReservationObject {
                name: "maint".into(),
                start: 1_800_000_000_000,
                end: 1_800_003_600_000,
                nodes: vec!["n1".into(), "n2".into()],
                node_count: 2,
                users: vec!["root".into()],
                accounts: vec!["p".into()],
                maintenance: true,
                ignore_running: true,
                description: "new disks".into(),
            }],
            nodes: vec![NodeObject { name: "n1".into(), features: vec![], extra: vec![amount("licence", 3)] }],
        };
        let text = toml(&set);
        assert_eq!(read(&text, |_| None), Ok(set), "{text}");
        assert!(text.contains("quota = { cpu = 2.5, \"gpu:h100\" = 0.125, mem = \"1500M\" }"), "{text}");
    }
}
