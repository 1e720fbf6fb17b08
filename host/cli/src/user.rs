//! `ephor user`.

use crate::objects::bounds::{self, Change};
use crate::objects::noun::{Fields, Noun, Object};
use crate::objects::{list, uid_of, unless_none};
use anyhow::Context;
use clap::Args;
use ephor_proto::v1::{Association, ObjectSet, PoolView, UserObject};

/// Commands about users.
pub type User = Noun<UserFields>;

#[derive(Args)]
pub struct UserFields {
    /// Login name
    name: String,
    /// User id; without it, the one that the name has on this machine
    #[arg(long, value_name = "N")]
    uid: Option<u32>,
    /// Account of jobs that name none; `none`: the site's
    #[arg(long, value_name = "NAME")]
    default_account: Option<String>,
    /// Accounts that may be named, with commas; `none`: any
    #[arg(long, value_name = "LIST")]
    accounts: Option<String>,
    /// What the user's jobs may use in all accounts, such as running=5,cpu=64; `none`: no bound
    #[arg(long, value_name = "LIMITS", value_parser = bounds::parse)]
    limits: Option<Change>,
    /// What they may use in one account, in place of what it says per user; may be given several times
    #[arg(long, value_name = "ACCOUNT:LIMITS", value_parser = in_account)]
    in_account: Vec<InAccount>,
}

/// Limits in one account.
#[derive(Clone)]
struct InAccount(String, Change);

fn in_account(text: &str) -> Result<InAccount, String> {
    match text.split_once(':') {
        Some((account, limits)) if !account.is_empty() => Ok(InAccount(account.to_owned(), bounds::parse(limits)?)),
        _ => Err(format!("'{text}' is not ACCOUNT:LIMITS, such as physics:running=5")),
    }
}

impl Fields for UserFields {
    type Object = UserObject;

    fn name(&self) -> &str {
        &self.name
    }

    fn blank(&self) -> UserObject {
        // Its user id is worked out with the other options; a user that is there keeps its own.
        let uid = uid_of(&self.name).unwrap_or(NO_UID);
        UserObject { name: self.name.clone(), uid, ..UserObject::default() }
    }

    fn change(self, old: UserObject) -> anyhow::Result<UserObject> {
        let known = Some(old.uid).filter(|uid| *uid != NO_UID);
        let uid = self.uid.or(known).with_context(|| {
            format!("there is no user {} on this machine; name the user id too: --uid 1000", self.name)
        })?;
        let mut associations = old.associations;
        for InAccount(account, change) in self.in_account {
            let before = associations.iter().position(|a| a.account == account).map(|at| associations.remove(at));
            let limits = change.of(before.and_then(|a| a.limits))?;
            associations.extend(limits.map(|limits| Association { account, limits: Some(limits) }));
        }
        Ok(UserObject {
            uid,
            default_account: self.default_account.map_or(old.default_account, unless_none),
            accounts: self.accounts.map_or(old.accounts, |accounts| list(&accounts)),
            limits: bounds::changed(self.limits, old.limits)?,
            associations,
            name: old.name,
        })
    }
}

/// The user id that stands for none; the kernel gives it to nobody.
const NO_UID: u32 = u32::MAX;

impl Object for UserObject {
    const KIND: &'static str = "user";
    const HEADINGS: &'static [&'static str] = &["NAME", "UID", "DEFAULT", "ACCOUNTS", "LIMITS", "IN ACCOUNTS"];

    fn of(set: ObjectSet) -> Vec<Self> {
        set.users
    }

    fn set(users: Vec<Self>) -> ObjectSet {
        ObjectSet { users, ..ObjectSet::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, _: &[PoolView]) -> Vec<String> {
        vec![
            self.name.clone(),
            self.uid.to_string(),
            self.default_account.clone().unwrap_or_else(|| "-".into()),
            if self.accounts.is_empty() { "any".into() } else { self.accounts.join(",") },
            bounds::show(self.limits.as_ref()),
            in_accounts(self).join(" "),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("User", self.name.clone()),
            ("User id", self.uid.to_string()),
            ("Default account", self.default_account.clone().unwrap_or_default()),
            ("Accounts", self.accounts.join(",")),
            ("Limits", bounds::show(self.limits.as_ref())),
        ];
        fields.extend(in_accounts(self).into_iter().map(|text| ("In account", text)));
        fields
    }
}

fn in_accounts(user: &UserObject) -> Vec<String> {
    user.associations.iter().map(|a| format!("{}:{}", a.account, bounds::show(a.limits.as_ref()))).collect()
}
