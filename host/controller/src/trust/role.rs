//! What a machine is, read from the certificate that its connection proved.

use ephor_model::limits;
use tonic::Status;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What a certificate lets its holder be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineRole {
    /// The controller.
    Controller,
    /// The agent of one node.
    Agent,
    /// An agent that hosts virtual nodes.
    Simulator,
}

impl MachineRole {
    /// The organisational unit in the certificate.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Agent => "agent",
            Self::Simulator => "simulator",
        }
    }
}

/// The machine at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Name of its node.
    pub name: String,
    /// What it may be.
    pub role: MachineRole,
}

/// The machine of a request that came over TLS.
///
/// # Errors
/// The connection has no certificate, or one that names no role.
pub fn machine_of<T>(request: &tonic::Request<T>) -> Result<Machine, Status> {
    let none =
        || Status::unauthenticated("this connection has no certificate; let the node join with 'ephor node token'");
    let tls = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>().ok_or_else(none)?;
    // The handshake verified the chain; the first certificate is the peer's own.
    let certificates = tls.peer_certs().ok_or_else(none)?;
    let first = certificates.first().ok_or_else(none)?;
    read_machine(first).map_err(Status::unauthenticated)
}

/// Name and role in a certificate.
///
/// # Errors
/// There is not exactly one of each, or the role is unknown; in words.
pub(super) fn read_machine(der: &[u8]) -> Result<Machine, String> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| "the certificate cannot be read".to_owned())?;
    let subject = certificate.subject();
    let names: Vec<&str> = subject.iter_common_name().filter_map(|n| n.as_str().ok()).collect();
    let units: Vec<&str> = subject.iter_organizational_unit().filter_map(|n| n.as_str().ok()).collect();
    let ([name], [unit]) = (names.as_slice(), units.as_slice()) else {
        return Err("the certificate does not have exactly one name and one role".into());
    };
    let roles = [MachineRole::Controller, MachineRole::Agent, MachineRole::Simulator];
    let role = roles.into_iter().find(|role| role.unit() == *unit);
    let role =
        role.ok_or_else(|| format!("the certificate names a role that is not known: '{}'", unit.escape_debug()))?;
    Ok(Machine { name: (*name).to_owned(), role })
}

/// Whether a text can name a node.
pub fn is_node_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= limits::NAME_BYTES
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}
