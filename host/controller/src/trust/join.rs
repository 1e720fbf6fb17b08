//! Lets a node join: a single-use token for a certificate.

use super::authority::{Authority, TrustError, read_request};
use super::role::{MachineRole, is_node_name};
use super::token::secret_digest;
use crate::handle::Handle;
use crate::service::status_of;
use ephor_core::Command;
use ephor_model::limits;
use ephor_proto::v1;
use tonic::Status;

/// What the node's name begins with when it is an agent that hosts virtual nodes.
pub const SIMULATE: &str = "simulate:";

/// Uses the token up and signs the request. Joining again under the same name is allowed: with a new token, as before
/// the certificate of the year before ends.
///
/// # Errors
/// The token is unknown, used, expired or for another node; the name or the request makes no sense.
pub async fn join(authority: &Authority, handle: &Handle, request: v1::JoinRequest) -> Result<v1::JoinReply, Status> {
    let v1::JoinRequest { secret, node, csr } = request;
    let digest = secret_digest(&secret);
    // Who has no token gets nothing parsed.
    if secret.len() > limits::NAME_BYTES || !handle.snapshot().state.tokens.contains_key(&digest) {
        let text = "this join token is unknown or used; get a new one with 'ephor node token'";
        return Err(Status::unauthenticated(text));
    }
    let (name, role) = match node.strip_prefix(SIMULATE) {
        Some(name) => (name, MachineRole::Simulator),
        None => (node.as_str(), MachineRole::Agent),
    };
    if !is_node_name(name) {
        let text = format!(
            "'{}' cannot name a node: use letters, digits and . _ -, up to {} bytes",
            name.escape_debug(),
            limits::NAME_BYTES
        );
        return Err(Status::invalid_argument(text));
    }
    // A request that cannot be signed must not use the token up.
    read_request(&csr).map_err(|e| Status::invalid_argument(e.to_string()))?;
    handle.run(Command::UseToken { token: digest, node: node.clone() }).await.map_err(|e| match status_of(e) {
        status if status.code() == tonic::Code::NotFound => Status::unauthenticated(status.message()),
        status => status,
    })?;
    let certificate = authority.sign(&csr, name, role).map_err(|e: TrustError| Status::internal(e.to_string()))?;
    tracing::info!(node = name, role = role.unit(), "a node joined");
    Ok(v1::JoinReply { certificate, authority: authority.certificate().to_owned(), node: name.to_owned() })
}
