//! Where the nodes of a step find `srun`: a port, the addresses that lead to it, and what proves both sides.

use anyhow::Context;
use ephor_model::limits::STEP_ADDRESSES;
use ephor_proto::step::SERVER_NAME;
use ephor_proto::v1;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};

/// Names of hosts that are looked up to find out by which address they reach this one: nearly always one is enough.
const LOOKED_UP: usize = 16;
/// A port to ask the way to; nothing is sent.
const ANY_PORT: u16 = 9;

/// A port that is listened on, and what its step needs to know.
pub struct Listening {
    /// The port.
    pub listener: TcpListener,
    /// How nodes reach it, to be tried in order.
    pub addresses: Vec<SocketAddr>,
    /// The certificate in PEM, made for this step.
    pub certificate: String,
    /// Its private key in PEM.
    pub private_key: String,
    /// What nodes prove themselves with.
    pub key: String,
}

impl Listening {
    /// Listens: on the loopback alone where all nodes of the step are this machine.
    ///
    /// # Errors
    /// No port can be had.
    pub fn open(plan: &v1::StepPlan) -> anyhow::Result<Self> {
        let own = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let own = own.split('.').next().unwrap_or_default();
        let far: Vec<&str> = plan.parts.iter().map(|part| part.address.as_str()).filter(|host| *host != own).collect();
        let near = far.len() < plan.parts.len();
        let listener = match far.is_empty() {
            true => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
            // Without IPv6 there is no such address.
            false => {
                TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            }
        };
        let listener = listener.context("cannot listen for the nodes of the step")?;
        let port = listener.local_addr()?.port();
        let mut addresses: Vec<IpAddr> = Vec::new();
        for ip in far.iter().take(LOOKED_UP).filter_map(|host| way_to(host)) {
            if !addresses.contains(&ip) && addresses.len() + 1 < STEP_ADDRESSES {
                addresses.push(ip);
            }
        }
        if addresses.is_empty() && !far.is_empty() {
            addresses.extend(way_to(own));
        }
        if near || addresses.is_empty() {
            addresses.push(Ipv4Addr::LOCALHOST.into());
        }
        let key = rcgen::KeyPair::generate().context("cannot make a key for the step")?;
        let certificate = rcgen::CertificateParams::new(vec![SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self {
            listener,
            addresses: addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect(),
            certificate: certificate.pem(),
            private_key: key.serialize_pem(),
            key: hexadecimal(&rand::random::<[u8; 32]>()),
        })
    }

    /// The first address.
    pub fn first(&self) -> SocketAddr {
        // There is always one; the other says as much.
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))
    }
}

/// The address of this machine on the way to a host.
fn way_to(host: &str) -> Option<IpAddr> {
    let target = (host, ANY_PORT).to_socket_addrs().ok()?.next()?;
    let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(target).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_this_machine_are_served_on_the_loopback() {
        let host = nix::unistd::gethostname().unwrap().to_string_lossy().split('.').next().unwrap().to_owned();
        let part = |address: &str| v1::StepPart { address: address.into(), ..v1::StepPart::default() };
        let plan = |parts| v1::StepPlan { parts, ..v1::StepPlan::default() };
        let near = Listening::open(&plan(vec![part(&host), part(&host)])).unwrap();
        assert_eq!(near.addresses, [near.listener.local_addr().unwrap()]);
        assert!(near.listener.local_addr().unwrap().ip().is_loopback());
        assert_eq!(near.key.len(), ephor_model::limits::STEP_KEY_BYTES);
        assert!(near.certificate.len() < ephor_model::limits::STEP_CERTIFICATE_BYTES);
        let far = Listening::open(&plan(vec![part(&host), part("127.0.0.2")])).unwrap();
        assert!(far.listener.local_addr().unwrap().ip().is_unspecified());
        assert!(!far.addresses.is_empty() && far.addresses.len() <= STEP_ADDRESSES);
    }
}
