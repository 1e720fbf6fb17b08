//! Plain data of the cluster and its parsing: ids, amounts, requests, jobs, nodes, queues and time.
//!
//! Nothing here knows a clock, does I/O or decides anything. Every other crate speaks in these words.

pub mod allocation;
pub mod array;
pub mod change;
pub mod cluster;
pub mod constraint;
pub mod id;
pub mod job;
pub mod limits;
pub mod node;
pub mod pattern;
pub mod policy;
pub mod request;
pub mod reservation;
pub mod resource;
pub mod shared;
pub mod signal;
pub mod state;
pub mod submit;
pub mod time;
pub mod use_limits;

pub use allocation::{Allocation, AllocationPart};
pub use array::ArraySpec;
pub use change::{Changes, Field};
pub use cluster::{Account, Identity, Licence, Qos, Queue, QueueState, User};
pub use constraint::{Constraint, Features};
pub use id::{AccountId, AttemptKey, Digest, Epoch, JobId, NodeId, QosId, QueueId, ReservationNo, StepKey, Uid};
pub use job::{Blobs, Dependency, DependencyKind, Draft, JobCommon, JobSpec, OpenMode, Owner, Payload};
pub use node::{Device, DeviceLink, DevicePath, NodeSpec};
pub use policy::{Generation, PolicyLimits, Role, Slot};
pub use request::{GpuRequest, MemRequest, Request, Topology};
pub use reservation::Reservation;
pub use resource::{Amounts, ResourceId};
pub use shared::Shared;
pub use signal::{SignalTo, WarningSignal};
pub use state::{EndCause, Exit, Hold, JobState, ReasonCode, Usage};
pub use time::{Span, Timestamp};
pub use use_limits::{Association, UseLimits};
