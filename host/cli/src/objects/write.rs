//! Writing objects as the TOML file that `ephor apply` takes. What equals its default is left out.

use super::{EQUAL_PART, QUEUE_STATES};
use crate::amount;
use ephor_model::Span;
use ephor_proto::v1::{AccountObject, Amount, NodeObject, ObjectSet, QueueObject, UserObject};
use toml::Value;

/// Writes a file.
pub fn toml(set: &ObjectSet) -> String {
    let parts = set.queues.iter().map(queue);
    let parts = parts.chain(set.accounts.iter().map(account));
    let parts = parts.chain(set.users.iter().map(user));
    let parts = parts.chain(set.nodes.iter().map(node));
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
    let text = amount::show(&a.resource, a.value);
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') { text } else { quote(&text) }
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
    entry.0
}

fn user(u: &UserObject) -> String {
    let mut entry = Entry::new("user", &u.name);
    entry.line("uid", &u.uid.to_string());
    u.default_account.iter().for_each(|account| entry.text("default_account", account));
    entry.list("accounts", &u.accounts);
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
                },
                QueueObject { name: "plain".into(), state: "open".into(), weight: 1, ..QueueObject::default() },
            ],
            accounts: vec![AccountObject {
                name: "p".into(),
                parent: Some("q".into()),
                description: "it's \"free\"".into(),
                shares: 5,
            }],
            users: vec![UserObject {
                name: "root".into(),
                uid: 0,
                default_account: Some("p".into()),
                accounts: vec!["p".into()],
            }],
            nodes: vec![NodeObject { name: "n1".into(), features: vec![], extra: vec![amount("licence", 3)] }],
        };
        let text = toml(&set);
        assert_eq!(read(&text, |_| None), Ok(set), "{text}");
        assert!(text.contains("quota = { cpu = 2.5, \"gpu:h100\" = 0.125, mem = \"1500M\" }"), "{text}");
    }
}
