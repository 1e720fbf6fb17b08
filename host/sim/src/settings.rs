//! Settings of policies as they are written on a command line: `key=value`.

use ephor_model::Role;
use serde_json::{Map, Value};

/// Settings of the policies that take part in a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    scheduling: Map<String, Value>,
    priority: Map<String, Value>,
    accounting: Map<String, Value>,
}

/// A text that is no setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no setting; write key=value, such as reservations=all, or priority.key=value or accounting.key=value for \
     those policies"
)]
pub struct BadSetting(String);

impl Settings {
    /// Takes one setting. A value is JSON where it can be read as such (`3`, `true`, `"3"`), else the text itself.
    ///
    /// # Errors
    /// There is no `=` in it, or nothing before it.
    pub fn set(&mut self, text: &str) -> Result<(), BadSetting> {
        let bad = || BadSetting(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(bad)?;
        let (settings, key) = match key.trim().split_once('.') {
            Some(("priority", key)) => (&mut self.priority, key),
            Some(("accounting", key)) => (&mut self.accounting, key),
            Some(("scheduling", key)) => (&mut self.scheduling, key),
            _ => (&mut self.scheduling, key.trim()),
        };
        if key.is_empty() {
            return Err(bad());
        }
        let value = value.trim();
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        settings.insert(key.to_owned(), value);
        Ok(())
    }

    /// Sets something for the scheduling policy that was not set.
    pub fn set_if_unset(&mut self, key: &str, value: &Value) {
        self.scheduling.entry(key).or_insert_with(|| value.clone());
    }

    /// The settings of a role's policy as the JSON text of its configuration.
    pub fn json(&self, role: Role) -> String {
        Value::Object(self.of(role).clone()).to_string()
    }

    /// Whether something is set for the policy of that role.
    pub fn has(&self, role: Role) -> bool {
        !self.of(role).is_empty()
    }

    /// All of it for a report: keys have their role before them, but for those of the scheduling policy.
    pub fn all(&self) -> Map<String, Value> {
        let of_others = [Role::Priority, Role::Accounting]
            .into_iter()
            .flat_map(|role| self.of(role).iter().map(move |(key, value)| (format!("{role}.{key}"), value.clone())));
        self.scheduling.clone().into_iter().chain(of_others).collect()
    }

    fn of(&self, role: Role) -> &Map<String, Value> {
        match role {
            Role::Priority => &self.priority,
            Role::Accounting => &self.accounting,
            _ => &self.scheduling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Settings {
        let mut settings = Settings::default();
        texts.iter().for_each(|text| settings.set(text).unwrap());
        settings
    }

    #[test]
    fn values_are_json_or_text_and_keys_may_name_the_role() {
        let settings =
            set(&["reservations=all", "window = 5", "scheduling.deep=true", "priority.age_weight=7", "t=a=b"]);
        assert_eq!(settings.json(Role::Scheduling), r#"{"deep":true,"reservations":"all","t":"a=b","window":5}"#);
        assert_eq!(settings.json(Role::Priority), r#"{"age_weight":7}"#);
        assert!(settings.has(Role::Priority) && !settings.has(Role::Accounting));
        assert_eq!(settings.all()["priority.age_weight"], 7);
        assert_eq!(set(&["accounting.half_life_hours=3"]).json(Role::Accounting), r#"{"half_life_hours":3}"#);
        assert_eq!(set(&[]).json(Role::Scheduling), "{}");
        assert_eq!(set(&["k=1", "k=2"]).json(Role::Scheduling), r#"{"k":2}"#);
    }

    #[test]
    fn what_is_no_setting_is_an_error() {
        let mut settings = Settings::default();
        for text in ["reservations", "=3", " = 3", "priority.=3"] {
            assert!(settings.set(text).unwrap_err().to_string().contains(text), "{text}");
        }
    }
}
