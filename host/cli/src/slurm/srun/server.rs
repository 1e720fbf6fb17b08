//! The service that the nodes of a step call: lets in whoever has the key, once for each node, and hands on what they say.

use super::files::{Files, Place};
use super::listen::Listening;
use super::writer::Piece;
use anyhow::Context;
use ephor_model::limits::STEP_MESSAGE_BYTES;
use ephor_proto::step::{KEY, NODE};
use ephor_proto::v1;
use ephor_proto::v1::step_streams_server::{StepStreams, StepStreamsServer};
use ephor_slurm::srun::label::Labels;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{Sender, UnboundedSender, channel};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};
use v1::step_output::Body as Out;

/// A connection on which nothing was heard for this long is asked whether it lives, and is given up after as long again.
const PING: Duration = Duration::from_secs(10);
/// Bytes of output on their way from one node.
const WINDOW: u32 = 1 << 20;
/// Messages to a node that wait: signals, and one piece of input.
const INBOX: usize = 64;

/// What a node says, but for output.
#[derive(Debug)]
pub enum News {
    /// It was let in; the way to it.
    Attached(Sender<Result<v1::StepInput, Status>>),
    /// Anything but output.
    Said(Out),
    /// Its connection is over.
    Closed,
}

/// What a connection needs of the step.
struct Shared {
    key: String,
    /// Ranks of each node's tasks.
    nodes: BTreeMap<String, Vec<u32>>,
    /// Nodes that were let in.
    attached: Mutex<BTreeSet<String>>,
    news: UnboundedSender<(String, News)>,
    pieces: Sender<Piece>,
    labels: Option<Labels>,
    /// The only task whose output, and errors, are written.
    only: [Option<u32>; 2],
}

#[derive(Clone)]
struct Service(Arc<Shared>);

/// Serves until the process ends. News are bounded by what nodes have to say: a few words for each task.
///
/// # Errors
/// The port or the certificate cannot be used.
pub fn start(
    plan: &v1::StepPlan,
    listening: Listening,
    files: &Files,
    label: bool,
    pieces: Sender<Piece>,
    news: UnboundedSender<(String, News)>,
) -> anyhow::Result<()> {
    let tasks = plan.parts.iter().map(|part| part.tasks.len() as u32).sum();
    let only = |place: &Place| place.only();
    let shared = Shared {
        key: listening.key,
        nodes: plan.parts.iter().map(|part| (part.node.clone(), part.tasks.clone())).collect(),
        attached: Mutex::default(),
        news,
        pieces,
        labels: label.then(|| Labels::new(tasks)),
        only: [only(&files.stdout), only(&files.stderr)],
    };
    listening.listener.set_nonblocking(true)?;
    let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(listening.listener)?);
    let incoming = incoming.map(|stream| stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream)));
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(&listening.certificate, &listening.private_key));
    let service = StepStreamsServer::new(Service(Arc::new(shared))).max_decoding_message_size(STEP_MESSAGE_BYTES);
    let server = Server::builder()
        .tls_config(tls)
        .context("cannot use the certificate of the step")?
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PING))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(1)
        .add_service(service);
    tokio::spawn(server.serve_with_incoming(incoming));
    Ok(())
}

#[tonic::async_trait]
impl StepStreams for Service {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<v1::StepInput, Status>> + Send>>;

    async fn attach(
        &self,
        request: Request<Streaming<v1::StepOutput>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let shared = self.0.clone();
        let text = |name| request.metadata().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !is_same(text(KEY), &shared.key) {
            return Err(Status::unauthenticated("this is not the key of the step"));
        }
        let node = text(NODE).to_owned();
        let Some(tasks) = shared.nodes.get(&node).cloned() else {
            return Err(Status::permission_denied(format!("node '{node}' is none of the step's")));
        };
        if !shared.attached.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone()) {
            return Err(Status::already_exists(format!("node {node} is connected already")));
        }
        let (inbox, input) = channel(INBOX);
        // Fails when the command has ended.
        let _ = shared.news.send((node.clone(), News::Attached(inbox)));
        let mut connection = Connection { shared, node, tasks, inside: BTreeSet::new() };
        let mut said = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(message)) = said.message().await {
                match message.body {
                    Some(Out::Data(data)) => connection.write(data).await,
                    Some(said) => connection.tell(News::Said(said)),
                    // Something that this version does not know.
                    None => {}
                }
            }
            connection.tell(News::Closed);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(input))))
    }
}

/// What one node's connection is about.
struct Connection {
    shared: Arc<Shared>,
    node: String,
    tasks: Vec<u32>,
    /// Streams that are inside a line.
    inside: BTreeSet<(u32, bool)>,
}

impl Connection {
    fn tell(&self, news: News) {
        // Fails when the command has ended.
        let _ = self.shared.news.send((self.node.clone(), news));
    }

    async fn write(&mut self, data: v1::StepData) {
        let v1::StepData { task, errors, data } = data;
        let wanted = self.shared.only[usize::from(errors)].is_none_or(|only| only == task);
        if !wanted || !self.tasks.contains(&task) {
            return;
        }
        let data = match &self.shared.labels {
            None => data,
            Some(labels) => {
                let mut inside = self.inside.contains(&(task, errors));
                let labelled = labels.put(task, &data, &mut inside);
                match inside {
                    true => self.inside.insert((task, errors)),
                    false => self.inside.remove(&(task, errors)),
                };
                labelled
            }
        };
        // Fails when nobody writes any more.
        let _ = self.shared.pieces.send(Piece::Said(errors, data)).await;
    }
}

/// Compares in a time that says nothing of where two texts differ.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_is_the_key() {
        assert!(is_same("0af", "0af"));
        for other in ["", "0ae", "0a", "0aff"] {
            assert!(!is_same(other, "0af"), "{other}");
        }
    }
}
