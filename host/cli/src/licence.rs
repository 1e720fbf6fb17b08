//! `ephor licence`.

use crate::objects::noun::{Fields, Noun, Object};
use clap::Args;
use ephor_proto::v1::{LicenceObject, ObjectSet, PoolView};

/// Commands about licences.
pub type Licence = Noun<LicenceFields>;

#[derive(Args)]
pub struct LicenceFields {
    /// Name
    name: String,
    /// How many there are; 0 gives none out
    #[arg(long, value_name = "N")]
    count: Option<u32>,
}

impl Fields for LicenceFields {
    type Object = LicenceObject;

    fn name(&self) -> &str {
        &self.name
    }

    fn blank(&self) -> LicenceObject {
        LicenceObject { name: self.name.clone(), count: 1 }
    }

    fn change(self, old: LicenceObject) -> anyhow::Result<LicenceObject> {
        Ok(LicenceObject { count: self.count.unwrap_or(old.count), name: old.name })
    }
}

impl Object for LicenceObject {
    const KIND: &'static str = "licence";
    const HEADINGS: &'static [&'static str] = &["NAME", "COUNT", "USED"];

    fn of(set: ObjectSet) -> Vec<Self> {
        set.licences
    }

    fn set(licences: Vec<Self>) -> ObjectSet {
        ObjectSet { licences, ..ObjectSet::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, used: &[PoolView]) -> Vec<String> {
        let used: i64 = used.iter().map(|pool| pool.used).sum();
        vec![self.name.clone(), self.count.to_string(), used.to_string()]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![("Licence", self.name.clone()), ("Count", self.count.to_string())]
    }
}
