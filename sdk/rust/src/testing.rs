//! Doubles of the host for native tests: policies run against them without WebAssembly.

mod columns;
mod cycle;
mod directory;
mod draft;
mod manifest;
mod site;

pub use columns::FakeBatch;
pub use cycle::{FakeCycle, FakeJob, FakePlacing, FakeSlot};
pub use directory::FakeDirectory;
pub use draft::{FakeDraft, JobValues};
pub use manifest::schema_defaults;
pub use site::{FakeSite, queue};
