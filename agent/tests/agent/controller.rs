//! A controller for tests: the real protocol over real mutual TLS, and every word of it chosen by the test.

use crate::wait::within;
use bytes::Bytes;
use ephor_agent::identity::CONTROLLER_NAME;
use ephor_agent::token::Token;
use ephor_proto::v1;
use ephor_proto::v1::agents_server::{Agents, AgentsServer};
use http_body_util::BodyExt;
use rcgen::{BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, IsCa, Issuer, KeyPair};
use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};
pub use v1::controller_message::Body as Say;
use v1::report::What;

/// A certificate authority of its own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    fn server(&self) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![CONTROLLER_NAME.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::OrganizationalUnitName, "controller");
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity::from_pem(certificate.pem(), key.serialize_pem())
    }

    fn certify(&self, csr: &str, role: &str, node: &str) -> String {
        let mut request = CertificateSigningRequestParams::from_pem(csr).unwrap();
        let mut name = rcgen::DistinguishedName::new();
        name.push(DnType::OrganizationalUnitName, role);
        name.push(DnType::CommonName, node);
        request.params.distinguished_name = name;
        request.signed_by(&self.issuer).unwrap().pem()
    }
}

/// The listening controller.
pub struct Controller {
    pub address: SocketAddr,
    authority: Arc<Authority>,
    shared: Arc<Shared>,
    sessions: UnboundedReceiver<Session>,
}

struct Shared {
    authority: Arc<Authority>,
    secrets: Mutex<HashSet<String>>,
    joined: Mutex<Vec<String>>,
    calls: Mutex<Vec<http::HeaderMap>>,
    sessions: UnboundedSender<Session>,
}

impl Controller {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let authority = Arc::new(Authority::new());
        let (sender, sessions) = unbounded_channel();
        let shared = Arc::new(Shared {
            authority: authority.clone(),
            secrets: Mutex::default(),
            joined: Mutex::default(),
            calls: Mutex::default(),
            sessions: sender,
        });
        let tls = ServerTlsConfig::new()
            .identity(authority.server())
            .client_ca_root(Certificate::from_pem(&authority.pem))
            .client_auth_optional(true);
        let server = Server::builder()
            .tls_config(tls)
            .unwrap()
            .tcp_nodelay(true)
            .add_service(AgentsServer::new(Service(shared.clone())))
            .add_service(Echo(shared.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { address, authority, shared, sessions }
    }

    /// A fresh token.
    pub fn token(&self) -> String {
        let secret = format!("{:x}", rand::random::<u128>());
        self.shared.secrets.lock().unwrap().insert(secret.clone());
        let authority = self.authority.pem.clone();
        Token { address: self.address.to_string(), authority, secret }.to_string()
    }

    /// Names under which agents joined.
    pub fn joined(&self) -> Vec<String> {
        self.shared.joined.lock().unwrap().clone()
    }

    /// Headers of the calls that came for the users' service.
    pub fn calls(&self) -> Vec<http::HeaderMap> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// The next session that an agent opens; its epoch is 1 until changed.
    pub async fn session(&mut self) -> Session {
        within("a session", self.sessions.recv()).await.unwrap()
    }

    /// The next session, with its registration read and welcomed.
    pub async fn welcomed(&mut self) -> (Session, v1::Register) {
        let mut session = self.session().await;
        let register = session.register().await;
        session.welcome(&register.node, &[]);
        (session, register)
    }
}

/// One agent's stream.
pub struct Session {
    pub epoch: u64,
    inbox: UnboundedReceiver<v1::AgentMessage>,
    outbox: UnboundedSender<Result<v1::ControllerMessage, Status>>,
}

impl Session {
    pub fn say(&self, body: Say) {
        // The agent may have left: some tests want that.
        let _ = self.outbox.send(Ok(v1::ControllerMessage { epoch: self.epoch, body: Some(body) }));
    }

    pub fn welcome(&self, node: &str, unknown: &[v1::AttemptRef]) {
        let welcome = v1::Welcome { node: node.into(), heartbeat_ms: 200, unknown: unknown.to_vec(), over: Vec::new() };
        self.say(Say::Welcome(welcome));
    }

    pub fn acknowledge(&self, number: u64) {
        self.say(Say::Acknowledge(v1::Acknowledge { number }));
    }

    /// The next message; `None` when the agent has left.
    pub async fn hear(&mut self) -> Option<v1::agent_message::Body> {
        within("a message", self.inbox.recv()).await.and_then(|m| m.body)
    }

    pub async fn register(&mut self) -> v1::Register {
        match self.hear().await {
            Some(v1::agent_message::Body::Register(register)) => register,
            other => panic!("expected a registration, got {other:?}"),
        }
    }

    /// The next report, whatever heartbeats and looks at GPUs come before it.
    pub async fn report(&mut self) -> v1::Report {
        let reports = async {
            loop {
                match self.hear().await {
                    Some(v1::agent_message::Body::Report(report)) => return report,
                    Some(v1::agent_message::Body::Heartbeat(_) | v1::agent_message::Body::Gpus(_)) => {}
                    other => panic!("expected a report, got {other:?}"),
                }
            }
        };
        within("a report", reports).await
    }

    /// Acknowledges reports up to the end of that job, and gives it.
    pub async fn ended(&mut self, job: u64) -> v1::Ended {
        let ends = async {
            loop {
                let report = self.report().await;
                self.acknowledge(report.number);
                if let (Some(What::Ended(ended)), Some(attempt)) = (report.what, report.attempt) {
                    assert_eq!(attempt.job, job, "another end came first: {ended:?}");
                    return ended;
                }
            }
        };
        within(&format!("the end of job {job}"), ends).await
    }

    /// Acknowledges reports up to the begin of that job.
    pub async fn began(&mut self, job: u64) {
        loop {
            let report = self.report().await;
            self.acknowledge(report.number);
            if matches!(report.what, Some(What::Began(_))) && report.attempt.is_some_and(|a| a.job == job) {
                return;
            }
        }
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl Agents for Service {
    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
        let request = request.into_inner();
        if !self.0.secrets.lock().unwrap().remove(&request.secret) {
            return Err(Status::permission_denied("this token was used, has expired or never was"));
        }
        self.0.joined.lock().unwrap().push(request.node.clone());
        let (role, node) = match request.node.strip_prefix("simulate:") {
            Some(node) => ("simulator", node),
            None => ("agent", request.node.as_str()),
        };
        Ok(Response::new(v1::JoinReply {
            certificate: self.0.authority.certify(&request.csr, role, node),
            authority: self.0.authority.pem.clone(),
            node: node.to_owned(),
        }))
    }

    type SessionStream = UnboundedReceiverStream<Result<v1::ControllerMessage, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::AgentMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        if request.peer_certs().is_none_or(|c| c.is_empty()) {
            return Err(Status::unauthenticated("no certificate"));
        }
        let (inbound, inbox) = unbounded_channel();
        let (outbox, outgoing) = unbounded_channel();
        let mut incoming = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(message)) = incoming.message().await {
                let _ = inbound.send(message);
            }
        });
        let _ = self.0.sessions.send(Session { epoch: 1, inbox, outbox });
        Ok(Response::new(UnboundedReceiverStream::new(outgoing)))
    }
}

/// Stands for the users' service: answers every call with the bytes of its request.
#[derive(Clone)]
struct Echo(Arc<Shared>);

impl NamedService for Echo {
    const NAME: &'static str = "ephor.v1.Ephor";
}

impl tower::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            shared.calls.lock().unwrap().push(head.headers);
            let bytes: Bytes = body.collect().await.unwrap().to_bytes();
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            let body = http_body_util::Full::new(bytes).with_trailers(async { Some(Ok(trailers)) });
            Ok(http::Response::builder().header("content-type", "application/grpc").body(Body::new(body)).unwrap())
        })
    }
}
