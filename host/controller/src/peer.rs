//! Who is at the other end of a request, as the operating system or a certificate attests it; never as a message says.

use crate::trust::{MachineRole, machine_of};
use ephor_core::roles::Peer;
use ephor_model::Uid;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Status};

/// Metadata in which an agent attests the user id of the caller on its local socket.
pub const ATTESTED_UID: &str = "ephor-attested-uid";
/// The same for the group id.
pub const ATTESTED_GID: &str = "ephor-attested-gid";

/// The peer of a request to the users' service.
///
/// On the controller's own socket the kernel says who it is, and metadata counts for nothing. Over TLS only an agent
/// can speak for its node's users, and must.
///
/// # Errors
/// The connection proves nobody.
pub fn peer_of<T>(request: &Request<T>) -> Result<Peer, Status> {
    if let Some(local) = request.extensions().get::<UdsConnectInfo>() {
        let credentials =
            local.peer_cred.ok_or_else(|| Status::unauthenticated("the kernel does not say who you are"))?;
        return Ok(Peer { uid: Uid(credentials.uid()), gid: credentials.gid(), node: None });
    }
    let machine = machine_of(request)?;
    match machine.role {
        MachineRole::Agent | MachineRole::Simulator => {}
        MachineRole::Controller => {
            return Err(Status::permission_denied("a controller's certificate cannot speak for users"));
        }
    }
    let uid = attested(request, ATTESTED_UID)?;
    let gid = attested(request, ATTESTED_GID)?;
    Ok(Peer { uid: Uid(uid), gid, node: Some(machine.name) })
}

fn attested<T>(request: &Request<T>, key: &str) -> Result<u32, Status> {
    let mut values = request.metadata().get_all(key).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Status::unauthenticated(format!(
            "the agent does not attest who is calling: {key} is not there once"
        )));
    };
    let number = value.to_str().ok().and_then(|text| text.parse::<u32>().ok());
    // The largest id stands for "nobody" in the operating system's calls.
    number.filter(|n| *n != u32::MAX).ok_or_else(|| Status::unauthenticated(format!("{key} is no id")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attestations_must_be_one_id() {
        let with = |values: &[&str]| {
            let mut request = Request::new(());
            for value in values {
                request.metadata_mut().append(ATTESTED_UID, value.parse().unwrap());
            }
            attested(&request, ATTESTED_UID)
        };
        assert_eq!(with(&["1000"]).unwrap(), 1000);
        for bad in [&[][..], &["0", "1000"], &["-1"], &["4294967295"], &["4294967296"], &["x"], &[" 0"]] {
            assert_eq!(with(bad).unwrap_err().code(), tonic::Code::Unauthenticated, "{bad:?}");
        }
        // Neither socket nor certificate.
        assert_eq!(peer_of(&Request::new(())).unwrap_err().code(), tonic::Code::Unauthenticated);
    }
}
