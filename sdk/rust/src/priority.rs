//! The priority role: which job is worth how much.

use serde::de::DeserializeOwned;

use crate::bindings::priority::ephor::priority::jobs as wit;
pub use crate::bindings::priority::exports::ephor::priority::priority::Factor;

use crate::{Row, Timestamp};

/// A priority policy.
pub trait Priority {
    /// Its configuration. The default stands where the site gave none.
    type Config: DeserializeOwned + Default + Send + Sync + 'static;

    /// One value a row, in the order of the rows; higher goes first.
    fn prioritize<B: Batch>(jobs: &B, config: &Self::Config) -> Vec<i64>;

    /// The parts of the priority of one row; they add up to what [`Priority::prioritize`] returns for it.
    fn explain<B: Batch>(jobs: &B, row: Row, config: &Self::Config) -> Vec<Factor>;
}

/// The jobs to be ordered, as columns; `wit/priority` lists them.
pub trait Batch {
    /// The time of this call.
    fn now(&self) -> Timestamp;
    /// How many jobs. Rows are 0 to `count - 1`.
    fn count(&self) -> u32;
    /// One integer a row.
    ///
    /// # Errors
    /// The column is unknown; the text names the known ones.
    fn column(&self, name: &str) -> Result<Vec<i64>, String>;
    /// A total to compare with.
    ///
    /// # Errors
    /// The total is unknown; the text names the known ones.
    fn total(&self, name: &str) -> Result<i64, String>;
}

impl Batch for wit::Batch {
    fn now(&self) -> Timestamp {
        self.now()
    }
    fn count(&self) -> u32 {
        self.count()
    }
    fn column(&self, name: &str) -> Result<Vec<i64>, String> {
        self.column(name)
    }
    fn total(&self, name: &str) -> Result<i64, String> {
        self.total(name)
    }
}
