//! What the tests of the controller share: one in this process, and clients of its socket and its port.
#![allow(dead_code, reason = "each test file uses its own part")]

use ephor_controller::trust::{CONTROLLER_NAME, Token};
use ephor_controller::{Config, Controller};
use ephor_proto::v1;
use ephor_proto::v1::agents_client::AgentsClient;
use ephor_proto::v1::ephor_client::EphorClient;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// A controller in this process, with a data folder of its own.
pub struct Cluster {
    pub folder: TempDir,
    pub controller: Controller,
}

impl Cluster {
    /// Starts one.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let controller = Controller::start(&config(folder.path()), false).await.unwrap();
        Self { folder, controller }
    }

    /// A client of the users' socket.
    pub fn user(&self) -> EphorClient<Channel> {
        EphorClient::new(local(&self.controller.socket_path))
            .max_decoding_message_size(64 << 20)
            .max_encoding_message_size(64 << 20)
    }

    /// A join token.
    pub async fn token(&self, node: &str) -> Token {
        let reply = self.user().issue_token(v1::TokenRequest { node: node.into() }).await.unwrap();
        Token::parse(&reply.into_inner().token).unwrap()
    }

    /// A connection to the agents' port, with or without a certificate.
    pub async fn tls(&self, authority: &str, identity: Option<&Joined>) -> Result<Channel, tonic::transport::Error> {
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)).domain_name(CONTROLLER_NAME);
        if let Some(joined) = identity {
            tls = tls.identity(Identity::from_pem(&joined.certificate, &joined.key));
        }
        let address = format!("https://{}", self.controller.agents_address);
        Endpoint::from_shared(address)?.tls_config(tls)?.connect().await
    }

    /// Joins with a token.
    pub async fn join(&self, token: &Token, node: &str) -> Result<Joined, tonic::Status> {
        let key = KeyPair::generate().unwrap();
        let csr = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
        let channel = self.tls(&token.authority, None).await.unwrap();
        let request = v1::JoinRequest { secret: token.secret.clone(), node: node.into(), csr };
        let reply = AgentsClient::new(channel).join(request).await?.into_inner();
        Ok(Joined { certificate: reply.certificate, key: key.serialize_pem(), node: reply.node })
    }
}

/// What a node has after it joined.
pub struct Joined {
    pub certificate: String,
    pub key: String,
    pub node: String,
}

/// Settings of a controller that takes no fixed port.
pub fn config(folder: &Path) -> Config {
    Config {
        data_folder: folder.join("data"),
        socket_path: folder.join("s"),
        agents_listen: ([127, 0, 0, 1], 0).into(),
        ..Config::default()
    }
}

/// A connection to a local socket.
pub fn local(path: &Path) -> Channel {
    let path = path.to_owned();
    Endpoint::from_static("http://controller.invalid").connect_with_connector_lazy(tower::service_fn(move |_| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
    }))
}

/// A component that the build made; `None`, with a line that says so, where it did not.
pub fn component(folder: &str, name: &str) -> Option<Vec<u8>> {
    let path: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(folder).join(format!("{name}.wasm"));
    let found = std::fs::read(&path).ok();
    if found.is_none() {
        println!("skipped: {} is not built (make build makes it)", path.display());
    }
    found
}

/// A job that runs `true`.
pub fn submission() -> v1::SubmitRequest {
    v1::SubmitRequest {
        name: "t".into(),
        argv: vec!["true".into()],
        work_dir: "/".into(),
        ..v1::SubmitRequest::default()
    }
}
