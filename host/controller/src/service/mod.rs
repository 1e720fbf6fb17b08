//! The users' service: what people and clients may ask, one file for each noun.
//!
//! Every call first finds out who is asking ([`crate::access`]), never from the message. What may take long (policy
//! calls, lists, history) runs on pools of threads, so that the async workers stay free for everybody else.

mod backup;
mod cluster;
mod explain;
mod job_view;
mod jobs;
mod list;
mod modify;
mod nodes;
mod objects;
mod policies;
mod qos;
mod reservations;
mod signals;
mod steps;
mod submit;

pub(crate) use nodes::new_token;

use crate::access::Access;
use crate::feasibility::Feasibility;
use crate::handle::{CommandError, Handle};
use crate::policies::Policies;
use crate::pool::Pool;
use crate::sessions::Sessions;
use crate::trust::Authority;
use ephor_core::RefusalKind;
use ephor_model::{Timestamp, limits};
use ephor_proto::v1;
use ephor_proto::v1::ephor_server::{Ephor, EphorServer};
use ephor_store::{History, Reader};
use std::path::PathBuf;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Bytes of the largest question: a component with its configuration.
const QUESTION_BYTES: usize = limits::COMPONENT_BYTES + limits::POLICY_CONFIG_BYTES + (1 << 16);

/// What the services work with.
pub struct Services {
    /// Commands and snapshots.
    pub handle: Handle,
    /// Who may do what.
    pub access: Arc<Access>,
    /// The policies in force.
    pub policies: Arc<Policies>,
    /// Finished jobs.
    pub history: Arc<History>,
    /// Scripts, environments, components; and copies of the live store.
    pub store: Arc<dyn Reader>,
    /// Sessions of agents.
    pub sessions: Arc<Sessions>,
    /// The certificate authority, whose certificate join tokens carry.
    pub authority: Arc<Authority>,
    /// Whether a draft could ever run.
    pub feasibility: Arc<Feasibility>,
    /// Threads of the admission chain.
    pub admission: Pool,
    /// Threads of lists and history reads.
    pub queries: Pool,
    /// `host:port` that join tokens name.
    pub agents_address: String,
    /// The data folder.
    pub data_folder: PathBuf,
    /// The cluster's name.
    pub cluster: String,
    /// When the controller started.
    pub started: Timestamp,
    /// Held while a copy is being made: one at a time.
    pub copying: Arc<tokio::sync::Mutex<()>>,
}

/// The service as gRPC sees it.
#[derive(Clone)]
pub struct UserService(Arc<Services>);

impl UserService {
    /// The service, with the limits of its messages.
    pub fn server(services: Arc<Services>) -> EphorServer<Self> {
        EphorServer::new(Self(services)).max_decoding_message_size(QUESTION_BYTES)
    }
}

/// A refused or failed command as a gRPC status.
pub(crate) fn status_of(error: CommandError) -> Status {
    match error {
        CommandError::Refused(refusal) => {
            let text = refusal.text;
            match refusal.kind {
                RefusalKind::Invalid => Status::invalid_argument(text),
                RefusalKind::NotFound => Status::not_found(text),
                RefusalKind::Conflict => Status::failed_precondition(text),
                RefusalKind::Limit => Status::resource_exhausted(text),
            }
        }
        busy @ CommandError::Busy => Status::resource_exhausted(busy.to_string()),
        failed @ CommandError::Unavailable(_) => Status::unavailable(failed.to_string()),
    }
}

/// A pool that takes no more.
fn busy(busy: crate::pool::Busy) -> Status {
    Status::resource_exhausted(busy.to_string())
}

/// Something that should not have happened, with its text for the caller and the log.
fn internal(error: impl std::fmt::Display) -> Status {
    tracing::error!(%error, "a request failed");
    Status::internal(error.to_string())
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Ephor for UserService {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Answer<v1::SubmitReply> {
        submit::submit(&self.0, request).await
    }

    async fn act_on_jobs(&self, request: Request<v1::JobActionRequest>) -> Answer<v1::JobActionReply> {
        jobs::act(&self.0, request).await
    }

    async fn signal_jobs(&self, request: Request<v1::SignalRequest>) -> Answer<v1::JobActionReply> {
        signals::send(&self.0, request).await
    }

    async fn modify_job(&self, request: Request<v1::ModifyRequest>) -> Answer<v1::ModifyReply> {
        modify::modify(&self.0, request).await
    }

    async fn list_jobs(&self, request: Request<v1::JobQuery>) -> Answer<v1::JobList> {
        list::list(&self.0, request).await
    }

    async fn explain_job(&self, request: Request<v1::JobRef>) -> Answer<v1::Explanation> {
        explain::explain(&self.0, request).await
    }

    async fn job_script(&self, request: Request<v1::JobRef>) -> Answer<v1::Blob> {
        jobs::script(&self.0, request).await
    }

    async fn list_nodes(&self, request: Request<v1::Empty>) -> Answer<v1::NodeList> {
        nodes::list(&self.0, request).await
    }

    async fn act_on_nodes(&self, request: Request<v1::NodeActionRequest>) -> Answer<v1::Empty> {
        nodes::act(&self.0, request).await
    }

    async fn issue_token(&self, request: Request<v1::TokenRequest>) -> Answer<v1::Token> {
        nodes::issue_token(&self.0, request).await
    }

    async fn apply(&self, request: Request<v1::ObjectSet>) -> Answer<v1::ApplyReply> {
        objects::apply(&self.0, request).await
    }

    async fn delete(&self, request: Request<v1::DeleteRequest>) -> Answer<v1::Empty> {
        objects::delete(&self.0, request).await
    }

    async fn export(&self, request: Request<v1::Empty>) -> Answer<v1::ObjectSet> {
        objects::export(&self.0, request).await
    }

    async fn list_queues(&self, request: Request<v1::Empty>) -> Answer<v1::QueueList> {
        cluster::queues(&self.0, request).await
    }

    async fn list_pools(&self, request: Request<v1::Empty>) -> Answer<v1::PoolList> {
        qos::pools(&self.0, request).await
    }

    async fn list_policies(&self, request: Request<v1::Empty>) -> Answer<v1::PolicyList> {
        policies::list(&self.0, request).await
    }

    async fn activate_policy(&self, request: Request<v1::ComponentUpload>) -> Answer<v1::PolicyView> {
        policies::activate(&self.0, request).await
    }

    async fn roll_back_policy(&self, request: Request<v1::SlotRef>) -> Answer<v1::PolicyView> {
        policies::roll_back(&self.0, request).await
    }

    async fn disable_policy(&self, request: Request<v1::SlotRef>) -> Answer<v1::Empty> {
        policies::disable(&self.0, request).await
    }

    async fn status(&self, request: Request<v1::Empty>) -> Answer<v1::StatusReply> {
        cluster::status(&self.0, request).await
    }

    async fn plan_step(&self, request: Request<v1::StepRequest>) -> Answer<v1::StepPlan> {
        steps::plan(&self.0, request).await
    }

    async fn start_step(&self, request: Request<v1::StepStart>) -> Answer<v1::Empty> {
        steps::start(&self.0, request).await
    }

    async fn end_step(&self, request: Request<v1::StepRef>) -> Answer<v1::Empty> {
        steps::end(&self.0, request).await
    }

    type BackupStream = backup::Pieces;

    async fn backup(&self, request: Request<v1::Empty>) -> Answer<Self::BackupStream> {
        backup::backup(&self.0, request).await
    }
}
