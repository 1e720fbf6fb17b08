//! `ephor account`.

use crate::objects::bounds::{self, Change};
use crate::objects::noun::{Fields, Noun, Object};
use crate::objects::{EQUAL_PART, unless_none};
use clap::Args;
use ephor_proto::v1::{AccountObject, ObjectSet, PoolView};

/// Commands about accounts.
pub type Account = Noun<AccountFields>;

#[derive(Args)]
pub struct AccountFields {
    /// Name
    name: String,
    /// Account above; `none`: at the top
    #[arg(long, value_name = "NAME")]
    parent: Option<String>,
    /// Free text
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Share relative to its siblings
    #[arg(long, value_name = "N")]
    shares: Option<i64>,
    /// What its jobs may use together, such as running=5,cpu=64,wall=1-0; `none`: no bound
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    limits: Option<Change>,
    /// What each user's jobs in it may use
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    per_user: Option<Change>,
    /// QOS of jobs that name none; `none`: that of the account above or of the queue
    #[arg(long, value_name = "NAME")]
    default_qos: Option<String>,
}

impl Fields for AccountFields {
    type Object = AccountObject;

    fn name(&self) -> &str {
        &self.name
    }

    fn blank(&self) -> AccountObject {
        AccountObject { name: self.name.clone(), shares: EQUAL_PART, ..AccountObject::default() }
    }

    fn change(self, old: AccountObject) -> anyhow::Result<AccountObject> {
        Ok(AccountObject {
            parent: self.parent.map_or(old.parent, unless_none),
            description: self.description.unwrap_or(old.description),
            shares: self.shares.unwrap_or(old.shares),
            limits: bounds::changed(self.limits, old.limits)?,
            per_user: bounds::changed(self.per_user, old.per_user)?,
            default_qos: self.default_qos.map_or(old.default_qos, unless_none),
            name: old.name,
        })
    }
}

impl Object for AccountObject {
    const KIND: &'static str = "account";
    const HEADINGS: &'static [&'static str] = &["NAME", "PARENT", "SHARES", "LIMITS", "PER USER", "DESCRIPTION"];

    fn of(set: ObjectSet) -> Vec<Self> {
        set.accounts
    }

    fn set(accounts: Vec<Self>) -> ObjectSet {
        ObjectSet { accounts, ..ObjectSet::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, _: &[PoolView]) -> Vec<String> {
        vec![
            self.name.clone(),
            self.parent.clone().unwrap_or_else(|| "-".into()),
            self.shares.to_string(),
            bounds::show(self.limits.as_ref()),
            bounds::show(self.per_user.as_ref()),
            self.description.clone(),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Account", self.name.clone()),
            ("Parent", self.parent.clone().unwrap_or_default()),
            ("Description", self.description.clone()),
            ("Shares", self.shares.to_string()),
            ("Default QOS", self.default_qos.clone().unwrap_or_default()),
            ("Limits", bounds::show(self.limits.as_ref())),
            ("Limits per user", bounds::show(self.per_user.as_ref())),
        ]
    }
}
