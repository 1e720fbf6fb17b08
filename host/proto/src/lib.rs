//! The gRPC contract between controller, agents and clients, and its conversion to the model.

#![allow(missing_docs, reason = "the generated code is documented in ephor.proto")]

pub mod convert;
pub mod limits;
pub mod modify;
pub mod step;

/// Messages and services of `ephor.proto`.
pub mod v1 {
    #![allow(clippy::all, reason = "generated code")]
    tonic::include_proto!("ephor.v1");
}
