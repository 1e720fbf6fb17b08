//! Who this agent is to the controller: its key and certificate, whom it trusts, and how it came by them.

use crate::files::{self, Keep};
use crate::limits::{CONFIG_BYTES, CONNECT, KEEP_ALIVE, KEEP_ALIVE_ANSWER};
use crate::session::{describe, with_sources};
use crate::token::Token;
use anyhow::{Context, bail, ensure};
use ephor_proto::v1;
use ephor_proto::v1::agents_client::AgentsClient;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

/// The name in every controller's certificate, wherever it runs.
pub const CONTROLLER_NAME: &str = "controller.ephor";
/// Begins the name under which an agent joins that hosts virtual nodes.
const SIMULATE: &str = "simulate:";

/// What is kept beside key and certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    node: String,
    address: String,
    simulate: bool,
}

/// A joined agent's identity.
#[derive(Clone)]
pub struct Identity {
    /// The node that the certificate is for.
    pub node: String,
    /// `host:port` of the controller.
    pub address: String,
    /// Whether it hosts virtual nodes.
    pub simulate: bool,
    authority: String,
    certificate: String,
    key: String,
}

/// How a new agent joins.
pub struct Joining<'a> {
    /// The token.
    pub token: &'a Token,
    /// Name of the node.
    pub node: &'a str,
    /// Whether it hosts virtual nodes.
    pub simulate: bool,
    /// Replaces the token's address.
    pub address: Option<&'a str>,
}

impl Identity {
    /// Reads the identity of a data folder; `None`: it has not joined.
    ///
    /// # Errors
    /// One that cannot be read or is not whole.
    pub fn load(data: &Path) -> anyhow::Result<Option<Self>> {
        let folder = data.join("identity");
        if !folder.exists() {
            return Ok(None);
        }
        let read = |file: &str| -> anyhow::Result<String> {
            let path = folder.join(file);
            let bytes = files::read(&path, CONFIG_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
            let missing = || format!("{} is missing: remove {} and join again", path.display(), folder.display());
            Ok(String::from_utf8(bytes.with_context(missing)?)?)
        };
        let about: About = serde_json::from_str(&read("about.json")?)
            .with_context(|| format!("{} does not read: remove the folder and join again", folder.display()))?;
        Ok(Some(Self {
            node: about.node,
            address: about.address,
            simulate: about.simulate,
            authority: read("authority.pem")?,
            certificate: read("certificate.pem")?,
            key: read("key.pem")?,
        }))
    }

    /// Joins: makes a key, has it certified, and keeps everything, or nothing, in the data folder.
    ///
    /// # Errors
    /// The controller cannot be reached, is another one than the token's, or refuses the token.
    pub async fn join(data: &Path, joining: &Joining<'_>) -> anyhow::Result<Self> {
        let key = rcgen::KeyPair::generate().context("cannot make a key")?;
        let mut request = rcgen::CertificateParams::new(Vec::new())?;
        request.distinguished_name = rcgen::DistinguishedName::new();
        request.distinguished_name.push(rcgen::DnType::CommonName, joining.node);
        let csr = request.serialize_request(&key).and_then(|r| r.pem()).context("cannot make a certificate request")?;

        let address = joining.address.unwrap_or(&joining.token.address);
        let tls = ClientTlsConfig::new()
            .domain_name(CONTROLLER_NAME)
            .ca_certificate(Certificate::from_pem(&joining.token.authority));
        let channel = endpoint(address, tls)?
            .connect()
            .await
            .map_err(|e| anyhow::anyhow!("cannot join at {address}: {}", with_sources(&e)))?;
        let node = if joining.simulate { format!("{SIMULATE}{}", joining.node) } else { joining.node.to_owned() };
        let request = v1::JoinRequest { secret: joining.token.secret.clone(), node, csr };
        let reply = AgentsClient::new(channel)
            .join(request)
            .await
            .map_err(|status| {
                anyhow::anyhow!(
                    "the controller at {address} did not let this node join: {}; a token is good for one join within a \
                     day: get a new one with `ephor node token`",
                    describe(&status)
                )
            })?
            .into_inner();
        ensure!(
            reply.authority.trim() == joining.token.authority.trim(),
            "the controller at {address} named another authority than the token: ask its administrator for a new token"
        );
        let identity = Self {
            node: reply.node.strip_prefix(SIMULATE).unwrap_or(&reply.node).to_owned(),
            address: address.to_owned(),
            simulate: joining.simulate,
            authority: reply.authority,
            certificate: reply.certificate,
            key: key.serialize_pem(),
        };
        // Found out here and not at the first session, when the token is of no use any more.
        identity.endpoint(None).context("the controller answered with a certificate that does not fit")?;
        identity.keep(data)?;
        Ok(identity)
    }

    fn keep(&self, data: &Path) -> anyhow::Result<()> {
        let (fresh, folder) = (data.join("identity.new"), data.join("identity"));
        if fresh.exists() {
            std::fs::remove_dir_all(&fresh).with_context(|| format!("cannot remove {}", fresh.display()))?;
        }
        let about = About { node: self.node.clone(), address: self.address.clone(), simulate: self.simulate };
        let keep = || -> anyhow::Result<()> {
            std::fs::DirBuilder::new().mode(0o700).create(&fresh)?;
            files::replace(&fresh.join("key.pem"), self.key.as_bytes(), 0o600, Keep::Always)?;
            files::replace(&fresh.join("certificate.pem"), self.certificate.as_bytes(), 0o644, Keep::Always)?;
            files::replace(&fresh.join("authority.pem"), self.authority.as_bytes(), 0o644, Keep::Always)?;
            files::replace(&fresh.join("about.json"), &serde_json::to_vec(&about)?, 0o644, Keep::Always)?;
            std::fs::rename(&fresh, &folder)?;
            Ok(std::fs::File::open(data)?.sync_all()?)
        };
        keep().with_context(|| format!("joined, but the identity cannot be kept in {}", folder.display()))
    }

    /// Whether a token is from the controller that this identity belongs to.
    pub fn belongs_with(&self, token: &Token) -> bool {
        self.authority.trim() == token.authority.trim()
    }

    /// The controller, by mutual TLS; `address` replaces the one from joining.
    ///
    /// # Errors
    /// An address or certificate that does not read.
    pub fn endpoint(&self, address: Option<&str>) -> anyhow::Result<Endpoint> {
        let tls = ClientTlsConfig::new()
            .domain_name(CONTROLLER_NAME)
            .ca_certificate(Certificate::from_pem(&self.authority))
            .identity(tonic::transport::Identity::from_pem(&self.certificate, &self.key));
        endpoint(address.unwrap_or(&self.address), tls)
    }
}

fn endpoint(address: &str, tls: ClientTlsConfig) -> anyhow::Result<Endpoint> {
    let port = address.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
    if port.is_none_or(|p| p.parse::<u16>().is_err()) {
        bail!("'{address}' is no address of a controller; write HOST:PORT");
    }
    let endpoint = Endpoint::from_shared(format!("https://{address}"))
        .with_context(|| format!("'{address}' is no address of a controller; write HOST:PORT"))?;
    endpoint
        .tls_config(tls)
        .map(|e| {
            e.connect_timeout(CONNECT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE_ANSWER)
                .keep_alive_while_idle(true)
        })
        .map_err(|e| anyhow::anyhow!("cannot set up TLS: {}", with_sources(&e)))
}
