//! The accounting role: what use costs, what is left, and how past use fades.

use serde::de::DeserializeOwned;

use crate::bindings::accounting::ephor::accounting::usage as wit;
pub use crate::bindings::accounting::exports::ephor::accounting::accounting::{Allowance, Fading};

use crate::Timestamp;

/// An accounting policy.
pub trait Accounting {
    /// Its configuration. The default stands where the site gave none.
    type Config: DeserializeOwned + Default + Send + Sync + 'static;

    /// The price of each row, in accounting units (0 or more), in the order of the rows.
    fn charge<B: Batch>(ended: &B, config: &Self::Config) -> Vec<i64>;

    /// What may still start. What is not named has no bound, so that the default bounds nothing.
    fn allowances(_now: Timestamp, _config: &Self::Config) -> Vec<Allowance> {
        Vec::new()
    }

    /// How the ledger fades from now on. The default is that it never does.
    fn decay(_config: &Self::Config) -> Fading {
        Fading { period: 0, factor: 1 << 32 }
    }
}

/// Attempts that ended and have not been charged, as columns; `wit/accounting` lists them.
pub trait Batch {
    /// How many attempts. Rows are 0 to `count - 1`.
    fn count(&self) -> u32;
    /// One integer a row.
    ///
    /// # Errors
    /// The column is unknown; the text names the known ones.
    fn column(&self, name: &str) -> Result<Vec<i64>, String>;
}

impl Batch for wit::Batch {
    fn count(&self) -> u32 {
        self.count()
    }
    fn column(&self, name: &str) -> Result<Vec<i64>, String> {
        self.column(name)
    }
}
