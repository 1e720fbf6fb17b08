//! The agents' service: joining with a token, and sessions of those who have joined.

use crate::handle::Handle;
use crate::sessions::{Outgoing, Sessions};
use crate::trust::{Authority, MachineRole, join, machine_of};
use ephor_model::limits;
use ephor_proto::v1;
use ephor_proto::v1::agents_server::{Agents, AgentsServer};
use std::sync::Arc;
use tonic::{Request, Response, Status, Streaming};

/// See the module. Served over TLS only.
#[derive(Clone)]
pub struct AgentService {
    handle: Handle,
    sessions: Arc<Sessions>,
    authority: Arc<Authority>,
}

impl AgentService {
    /// The service, with the limits of its messages.
    pub fn server(handle: Handle, sessions: Arc<Sessions>, authority: Arc<Authority>) -> AgentsServer<Self> {
        AgentsServer::new(Self { handle, sessions, authority }).max_decoding_message_size(limits::MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl Agents for AgentService {
    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
        join(&self.authority, &self.handle, request.into_inner()).await.map(Response::new)
    }

    type SessionStream = Outgoing;

    async fn session(&self, request: Request<Streaming<v1::AgentMessage>>) -> Result<Response<Outgoing>, Status> {
        let machine = machine_of(&request)?;
        let simulator = match machine.role {
            MachineRole::Agent => false,
            MachineRole::Simulator => true,
            MachineRole::Controller => return Err(Status::permission_denied("this certificate is not an agent's")),
        };
        let incoming = request.into_inner();
        self.sessions.session(&self.handle, machine.name, simulator, incoming).map(Response::new)
    }
}
