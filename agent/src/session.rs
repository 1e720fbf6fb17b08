//! The stream to the controller: register, report, obey, and come back when it breaks.

use crate::backoff::Backoff;
use crate::epoch::{EpochError, EpochKeeper};
use crate::facts::now_ms;
use crate::limits::HEARTBEAT;
use crate::nodes::{News, Nodes};
use ephor_model::limits::MESSAGE_BYTES;
use ephor_proto::v1;
use ephor_proto::v1::agents_client::AgentsClient;
use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Endpoint;
use v1::agent_message::Body as Out;
use v1::controller_message::Body as In;

/// Heartbeats come no faster than this, whatever the controller asks for.
const HEARTBEAT_LEAST: Duration = Duration::from_millis(100);

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("cannot reach the controller: {0}")]
    Unreachable(String),
    #[error("the controller ended the session: {0}")]
    Broken(String),
    #[error("the controller closed the session")]
    Closed,
    #[error("the controller refused the session: {0}")]
    Refused(String),
    #[error(transparent)]
    Epoch(#[from] EpochError),
}

/// Serves the controller until `stop` is there; attempts go on whatever happens to the connection.
pub async fn serve(
    endpoint: &Endpoint,
    nodes: &mut impl Nodes,
    epoch: &mut EpochKeeper,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut backoff = Backoff::default();
    loop {
        let ended = tokio::select! {
            () = &mut stop => return,
            ended = session(endpoint, nodes, epoch, &mut backoff) => ended,
        };
        let wait = backoff.wait();
        match ended {
            Ended::Closed | Ended::Unreachable(_) => tracing::warn!("{ended}; trying again in {} ms", wait.as_millis()),
            _ => tracing::error!("{ended}; trying again in {} ms", wait.as_millis()),
        }
        tokio::select! {
            () = &mut stop => return,
            () = meanwhile(nodes, tokio::time::sleep(wait)) => {}
        }
    }
}

/// Goes on with the nodes until `done` is: reports that come up stay open, and go out at the next welcome.
async fn meanwhile<T>(nodes: &mut impl Nodes, done: impl Future<Output = T>) -> T {
    let mut done = pin!(done);
    loop {
        tokio::select! {
            result = &mut done => return result,
            _ = nodes.next() => {}
        }
    }
}

/// The same, but for news of steps, which go out.
async fn pass_steps_on<T>(
    nodes: &mut impl Nodes,
    out: &UnboundedSender<v1::AgentMessage>,
    done: impl Future<Output = T>,
) -> T {
    let mut done = pin!(done);
    loop {
        tokio::select! {
            result = &mut done => return result,
            news = nodes.next() => if let News::Step(step) = news {
                send(out, Out::Step(step));
            },
        }
    }
}

async fn session(endpoint: &Endpoint, nodes: &mut impl Nodes, epoch: &mut EpochKeeper, backoff: &mut Backoff) -> Ended {
    // A connection for each session: what an old controller still holds of it ends with the session.
    let channel = match meanwhile(nodes, endpoint.connect()).await {
        Ok(channel) => channel,
        Err(e) => return Ended::Unreachable(with_sources(&e)),
    };
    // What waits here is bounded by what the nodes hold: registrations and open reports.
    let (out, outgoing) = unbounded_channel();
    for register in nodes.registrations() {
        let register = v1::Register { epoch: epoch.highest(), clock: now_ms(), ..register };
        send(&out, Out::Register(register));
    }
    let mut client = AgentsClient::new(channel).max_decoding_message_size(MESSAGE_BYTES);
    let stream = client.session(UnboundedReceiverStream::new(outgoing));
    // From the registrations on nothing of steps may be left out.
    let stream = pass_steps_on(nodes, &out, stream).await;
    let mut incoming = match stream {
        Ok(response) => response.into_inner(),
        Err(status) => return Ended::Broken(describe(&status)),
    };
    let mut welcomed = HashSet::new();
    let mut beat = ticks(HEARTBEAT);
    let mut gpus = nodes.gpus();
    loop {
        tokio::select! {
            message = incoming.message() => {
                let message = match message {
                    Ok(Some(message)) => message,
                    Ok(None) => return Ended::Closed,
                    Err(status) => return Ended::Broken(describe(&status)),
                };
                if let Err(e) = epoch.admit(message.epoch) {
                    return e.into();
                }
                match message.body {
                    Some(In::Welcome(welcome)) => {
                        backoff.reset();
                        nodes.forget(&welcome.node, &welcome.unknown);
                        for attempt in welcome.over {
                            let (node, attempt) = (welcome.node.clone(), Some(attempt));
                            nodes.end_steps(v1::EndSteps { node, attempt, step: None });
                        }
                        for report in nodes.open_reports(&welcome.node) {
                            send(&out, Out::Report(report));
                        }
                        if let Ok(asked @ 1..) = u64::try_from(welcome.heartbeat_ms) {
                            beat = retimed(beat, Duration::from_millis(asked).max(HEARTBEAT_LEAST));
                        }
                        if welcomed.is_empty() {
                            tracing::info!(node = welcome.node, epoch = message.epoch, "registered");
                        }
                        // What was measured since the registration; and then each time that something is.
                        if let Some(gpus) = &mut gpus {
                            gpus.mark_changed();
                        }
                        welcomed.insert(welcome.node);
                    }
                    Some(In::Launch(launch)) => nodes.launch(launch),
                    Some(In::Terminate(order)) => nodes.terminate(order),
                    Some(In::Adjust(order)) => nodes.adjust(order),
                    Some(In::Signal(order)) => nodes.signal(order),
                    Some(In::Step(launch)) => nodes.launch_step(launch),
                    Some(In::EndSteps(order)) => nodes.end_steps(order),
                    Some(In::Acknowledge(done)) => nodes.acknowledge(done.number),
                    Some(In::Refused(refused)) => return Ended::Refused(refused.reason),
                    None => tracing::warn!("the controller sent something that this version does not know"),
                }
            }
            news = nodes.next() => match news {
                // Before its welcome a node's reports wait: they are all sent with it.
                News::Report(report) if welcomed.contains(&report.node) => send(&out, Out::Report(report)),
                News::Report(_) => {}
                News::Step(step) => send(&out, Out::Step(step)),
            },
            report = changed(&mut gpus), if !welcomed.is_empty() => send(&out, Out::Gpus(report)),
            _ = beat.tick(), if !welcomed.is_empty() => send(&out, Out::Heartbeat(v1::Heartbeat { clock: now_ms() })),
        }
    }
}

/// Waits for news of the GPUs.
async fn changed(gpus: &mut Option<watch::Receiver<v1::GpuReport>>) -> v1::GpuReport {
    if let Some(news) = gpus {
        if news.changed().await.is_ok() {
            return news.borrow_and_update().clone();
        }
        // Nobody looks after them any more.
        *gpus = None;
    }
    std::future::pending().await
}

fn send(out: &UnboundedSender<v1::AgentMessage>, body: Out) {
    // Fails only when the stream has ended, which the receiving side is about to say.
    let _ = out.send(v1::AgentMessage { body: Some(body) });
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The same rhythm, or a new one where another is asked for.
fn retimed(beat: Interval, every: Duration) -> Interval {
    if beat.period() == every { beat } else { ticks(every) }
}

/// An error with everything that caused it: the outermost alone says little.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}

/// What a status says, for a person.
pub fn describe(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => with_sources(source),
        None if status.message().is_empty() => status.code().description().to_owned(),
        None => status.message().to_owned(),
    }
}
