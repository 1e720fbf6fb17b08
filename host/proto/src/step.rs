//! What whoever starts a step and the nodes that run it must agree on, beside the messages.

/// The name in the certificate of a step's streams, wherever they are served.
pub const SERVER_NAME: &str = "step.ephor";
/// Metadata in which a node's part of a step proves itself.
pub const KEY: &str = "ephor-step-key";
/// Metadata in which it says which node it is.
pub const NODE: &str = "ephor-step-node";
