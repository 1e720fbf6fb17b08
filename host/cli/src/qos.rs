//! `ephor qos`.

use crate::objects::bounds::{self, Change};
use crate::objects::list;
use crate::objects::noun::{Fields, Noun, Object};
use clap::Args;
use ephor_proto::v1::{ObjectSet, PoolView, QosObject};

/// Commands about qualities of service.
pub type Qos = Noun<QosFields>;

#[derive(Args)]
pub struct QosFields {
    /// Name
    name: String,
    /// Free text
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Higher goes first, as far as the priority policy looks at it
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i64>,
    /// Accounts that may use it, with commas; `none`: any
    #[arg(long, value_name = "LIST")]
    accounts: Option<String>,
    /// Users that may use it, with commas; `none`: any
    #[arg(long, value_name = "LIST")]
    users: Option<String>,
    /// What its jobs may use together, such as running=5,cpu=64,wall=1-0; `none`: no bound
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    limits: Option<Change>,
    /// What each user's jobs in it may use
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    per_user: Option<Change>,
    /// What each account's jobs in it may use
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    per_account: Option<Change>,
}

impl Fields for QosFields {
    type Object = QosObject;

    fn name(&self) -> &str {
        &self.name
    }

    fn blank(&self) -> QosObject {
        QosObject { name: self.name.clone(), ..QosObject::default() }
    }

    fn change(self, old: QosObject) -> anyhow::Result<QosObject> {
        Ok(QosObject {
            description: self.description.unwrap_or(old.description),
            priority: self.priority.unwrap_or(old.priority),
            accounts: self.accounts.map_or(old.accounts, |names| list(&names)),
            users: self.users.map_or(old.users, |names| list(&names)),
            limits: bounds::changed(self.limits, old.limits)?,
            per_user: bounds::changed(self.per_user, old.per_user)?,
            per_account: bounds::changed(self.per_account, old.per_account)?,
            name: old.name,
        })
    }
}

impl Object for QosObject {
    const KIND: &'static str = "qos";
    const HEADINGS: &'static [&'static str] = &["NAME", "PRIORITY", "LIMITS", "PER USER", "PER ACCOUNT", "DESCRIPTION"];

    fn of(set: ObjectSet) -> Vec<Self> {
        set.qos
    }

    fn set(qos: Vec<Self>) -> ObjectSet {
        ObjectSet { qos, ..ObjectSet::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, _: &[PoolView]) -> Vec<String> {
        vec![
            self.name.clone(),
            self.priority.to_string(),
            bounds::show(self.limits.as_ref()),
            bounds::show(self.per_user.as_ref()),
            bounds::show(self.per_account.as_ref()),
            self.description.clone(),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("QOS", self.name.clone()),
            ("Description", self.description.clone()),
            ("Priority", self.priority.to_string()),
            ("Accounts", self.accounts.join(",")),
            ("Users", self.users.join(",")),
            ("Limits", bounds::show(self.limits.as_ref())),
            ("Limits per user", bounds::show(self.per_user.as_ref())),
            ("Limits per account", bounds::show(self.per_account.as_ref())),
        ]
    }
}
