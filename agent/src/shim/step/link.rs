//! The connection to whoever started the step: found among its addresses, encrypted, and proven on both sides.

use crate::limits::{KEEP_ALIVE, KEEP_ALIVE_ANSWER, STEP_CONNECT, STEP_OUTBOX, STEP_WINDOW_BYTES};
use crate::session::{describe, with_sources};
use crate::spool::StepOrder;
use ephor_model::limits::STEP_MESSAGE_BYTES;
use ephor_proto::step::{KEY, NODE, SERVER_NAME};
use ephor_proto::v1;
use ephor_proto::v1::step_streams_client::StepStreamsClient;
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Streaming};

/// A connection on which the step was let in.
pub struct Link {
    /// What goes out.
    pub outbox: Sender<v1::StepOutput>,
    /// What comes in.
    pub input: Streaming<v1::StepInput>,
}

/// Connects. An address may lead to somebody else's step on another host: that one has another certificate, and the next
/// address is tried.
///
/// # Errors
/// No address leads there, or the step is not let in.
pub async fn connect(order: &StepOrder) -> Result<Link, String> {
    let mut tried = Vec::new();
    for address in &order.addresses {
        match tokio::time::timeout(STEP_CONNECT, open(address, &order.certificate)).await {
            Ok(Ok(channel)) => return attach(channel, order).await,
            Ok(Err(why)) => tried.push(format!("{address}: {why}")),
            Err(_) => tried.push(format!("{address}: no answer in {} s", STEP_CONNECT.as_secs())),
        }
    }
    Err(format!("whoever started the step cannot be reached: {}", tried.join(", ")))
}

async fn open(address: &str, certificate: &str) -> Result<Channel, String> {
    let tls = ClientTlsConfig::new().domain_name(SERVER_NAME).ca_certificate(Certificate::from_pem(certificate));
    Endpoint::from_shared(format!("https://{address}"))
        .and_then(|endpoint| endpoint.tls_config(tls))
        .map_err(|e| with_sources(&e))?
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER)
        .initial_stream_window_size(STEP_WINDOW_BYTES)
        .initial_connection_window_size(STEP_WINDOW_BYTES)
        .connect()
        .await
        .map_err(|e| with_sources(&e))
}

async fn attach(channel: Channel, order: &StepOrder) -> Result<Link, String> {
    let (outbox, outgoing) = mpsc::channel(STEP_OUTBOX);
    let mut request = Request::new(ReceiverStream::new(outgoing));
    let text = |value: &str| MetadataValue::try_from(value).map_err(|_| "the step's key or node is no text".to_owned());
    request.metadata_mut().insert(KEY, text(&order.key)?);
    request.metadata_mut().insert(NODE, text(&order.node)?);
    let mut client = StepStreamsClient::new(channel).max_decoding_message_size(STEP_MESSAGE_BYTES);
    let response =
        client.attach(request).await.map_err(|status| format!("the step was not let in: {}", describe(&status)));
    Ok(Link { outbox, input: response?.into_inner() })
}
