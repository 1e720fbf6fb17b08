//! The metrics page: Prometheus text on a port of its own.

use crate::handle::Handle;
use crate::service::Services;
use bytes::Bytes;
use ephor_core::{NodeHealth, State};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time; more wait.
const CONNECTIONS: usize = 16;
/// Longest time for a request's head.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the page until the controller stops.
pub async fn serve(listener: TcpListener, services: Arc<Services>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the metrics port did not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let services = services.clone();
        tokio::spawn(async move {
            let page = service_fn(|request| answer(request, &services));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            // A reader that went away is nobody's problem.
            let _ = http.serve_connection(TokioIo::new(stream), page).await;
            drop(place);
        });
    }
}

async fn answer(request: Request<Incoming>, services: &Arc<Services>) -> Result<Response<Full<Bytes>>, Infallible> {
    let plain = |status: StatusCode, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
        response
    };
    if request.uri().path() != "/metrics" {
        return Ok(plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n".into()));
    }
    if request.method() != Method::GET {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return Ok(response);
    }
    let inner = services.clone();
    Ok(match services.queries.run(u32::MAX, move || page(&inner)).await {
        Ok(text) => plain(StatusCode::OK, text),
        Err(busy) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{busy}\n")),
    })
}

/// The whole page.
pub fn page(services: &Services) -> String {
    let mut out = Page::default();
    let snapshot = services.handle.snapshot();
    states(&mut out, &snapshot.state);
    threads(&mut out, &services.handle);
    out.family("ephor_waiting_calls", "gauge", "Calls that wait for a thread");
    out.value("ephor_waiting_calls", &[("pool", "admission")], services.admission.waiting());
    out.value("ephor_waiting_calls", &[("pool", "queries")], services.queries.waiting());
    out.value("ephor_waiting_calls", &[("pool", "access")], services.access.waiting());
    policies(&mut out, services);
    out.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{braces} {value}");
    }
}

fn states(out: &mut Page, state: &State) {
    let running = state.attempts.len() as u64;
    out.family("ephor_jobs", "gauge", "Jobs in the live state; each element of an array counts");
    out.value("ephor_jobs", &[("state", "pending")], state.derived.unfinished.saturating_sub(running));
    out.value("ephor_jobs", &[("state", "running")], running);
    out.value("ephor_jobs", &[("state", "finished")], state.derived.finished);
    let mut nodes = [("up", 0u64), ("drained", 0), ("down", 0)];
    for node in state.nodes.values() {
        let index = match (node.health, &node.drain) {
            (NodeHealth::Down, _) => 2,
            (NodeHealth::Up, Some(_)) => 1,
            (NodeHealth::Up, None) => 0,
        };
        nodes[index].1 += 1;
    }
    out.family("ephor_nodes", "gauge", "Nodes");
    nodes.iter().for_each(|(name, n)| out.value("ephor_nodes", &[("state", name)], n));
    out.family("ephor_attempts_uncharged", "gauge", "Ended attempts that are not charged yet");
    out.value("ephor_attempts_uncharged", &[], state.uncharged.len());
    out.family("ephor_epoch", "gauge", "Epoch of this controller");
    out.value("ephor_epoch", &[], state.meta.epoch.0);
    out.family("ephor_events_in_all", "counter", "Events since the cluster began");
    out.value("ephor_events_in_all", &[], state.meta.events);
    out.family("ephor_jobs_submitted", "counter", "Ids given to jobs and elements since the cluster began");
    out.value("ephor_jobs_submitted", &[], state.meta.next_job.saturating_sub(1));
}

fn threads(out: &mut Page, handle: &Handle) {
    for (name, value) in handle.counters().all() {
        let name = format!("ephor_{name}");
        let kind = if name.ends_with("_max") { "gauge" } else { "counter" };
        out.family(&name, kind, "Since this controller started; times (us) in microseconds");
        out.value(&name, &[], value);
    }
}

fn policies(out: &mut Page, services: &Services) {
    let all = services.policies.slots().list();
    let mut rows = Vec::new();
    for (slot, loaded) in &all {
        if let Ok(loaded) = loaded {
            rows.push((
                slot.to_string(),
                loaded.about().name.clone(),
                loaded.about().generation.to_string(),
                loaded.stats(),
            ));
        }
    }
    out.family("ephor_policy_calls_total", "counter", "Calls of policies");
    for (slot, name, generation, stats) in &rows {
        let labels = [("slot", slot.as_str()), ("policy", name), ("generation", generation)];
        out.value("ephor_policy_calls_total", &labels, stats.calls);
    }
    out.family("ephor_policy_faults_total", "counter", "Calls that failed");
    for (slot, name, generation, stats) in &rows {
        for (kind, count) in &stats.faults {
            let labels = [("slot", slot.as_str()), ("policy", name), ("generation", generation), ("kind", kind.name())];
            out.value("ephor_policy_faults_total", &labels, count);
        }
    }
    out.family("ephor_policy_call_ns_mean", "gauge", "Mean length of a call in nanoseconds");
    for (slot, name, generation, stats) in &rows {
        let labels = [("slot", slot.as_str()), ("policy", name), ("generation", generation)];
        out.value("ephor_policy_call_ns_mean", &labels, stats.mean_ns);
    }
    out.family("ephor_policy_call_ns_max", "gauge", "Longest call in nanoseconds");
    for (slot, name, generation, stats) in &rows {
        let labels = [("slot", slot.as_str()), ("policy", name), ("generation", generation)];
        out.value("ephor_policy_call_ns_max", &labels, stats.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.family("a", "gauge", "x");
        page.value("a", &[("l", "q\"\\\n")], 1);
        page.value("a", &[], 2);
        assert_eq!(page.0, "# HELP a x\n# TYPE a gauge\na{l=\"q\\\"\\\\\\n\"} 1\na 2\n");
    }
}
