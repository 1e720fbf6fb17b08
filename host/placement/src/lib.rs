//! Answers what fits where and when on a set of nodes, with savepoints and exact rollback.
//!
//! A [`Cluster`] holds the nodes, what runs on them and until when, and what is reserved. Facts (`set_node`, `occupy`,
//! `vacate`, `promise`, ...) never fail. Planning (`try_start`, `earliest_start`, `reserve`, `lift`) changes the same cluster and
//! can be taken back to any savepoint. Nothing here reads a clock: the caller says what time it is, at the latest at the
//! beginning of a plan ([`Cluster::advance`]).
//!
//! ```
//! use ephor_model::id::{JobId, NodeId};
//! use ephor_model::request::Request;
//! use ephor_model::resource::{Amounts, ResourceId};
//! use ephor_model::time::{Span, Timestamp};
//! use ephor_placement::{Cluster, Need, NodeView, Placing, Work};
//!
//! let mut cluster = Cluster::new();
//! let capacity = Amounts::new().with(ResourceId::CPU, 4000);
//! cluster.set_node(NodeId(0), NodeView { name: "n0".into(), capacity, up: true, ..NodeView::default() });
//! let request = Request { cpus_per_task: 3, ..Request::default() };
//! let class = cluster.intern(&Need { request: request.into(), queue_features: Vec::new() });
//!
//! let (now, limit, how, mut work) = (Timestamp(0), Span::minutes(1), Placing::default(), Work(1000));
//! let mark = cluster.savepoint();
//! assert!(cluster.try_start(JobId(1), class, now, limit, &how, &mut work).is_ok());
//! assert!(cluster.try_start(JobId(2), class, now, limit, &how, &mut work).is_err());
//! let slot = cluster.earliest_start(class, now, limit, &how, &mut work)?;
//! assert_eq!(slot.start, now + limit);
//! cluster.rollback(mark);
//! # Ok::<(), ephor_placement::NoFit>(())
//! ```

mod bits;
mod choose;
mod class;
mod cluster;
mod demand;
mod domains;
mod earliest;
mod explain;
mod facts;
mod fit;
mod groups;
mod index;
mod need;
mod node;
mod place;
mod placing;
mod profile;
mod promise;
mod shape;
mod share;
mod start;
mod undo;
mod wording;
mod work;

pub use cluster::Cluster;
pub use need::{ClassId, Need};
pub use node::NodeView;
pub use placing::Placing;
pub use start::{ReservationId, Slot};
pub use undo::Mark;
pub use work::{NoFit, Work};
