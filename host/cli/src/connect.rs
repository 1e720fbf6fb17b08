//! The way to the controller: which socket, and calls over it.
//!
//! The socket is searched for in this order, and the first that answers is taken:
//!
//! 1. `--socket PATH`, else the variable [`SOCKET_VARIABLE`]: then no other is tried.
//! 2. [`SYSTEM_SOCKET`]: the controller of this machine, or its agent, which passes calls on.
//! 3. [`dev_sockets`]: links that a running `ephor dev` of this user keeps.

use crate::Global;
use crate::exit::CliError;
use ephor_model::limits;
use ephor_proto::v1::ephor_client::EphorClient;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

/// Names the socket of the controller.
pub const SOCKET_VARIABLE: &str = "EPHOR_SOCKET";
/// Where a controller or agent that belongs to the machine listens.
pub const SYSTEM_SOCKET: &str = "/run/ephor/ephor.sock";
/// Bytes of the largest answer: a full page of jobs with long names.
const ANSWER_BYTES: usize = 256 << 20;
/// Bytes of the largest question: a component with its configuration.
const QUESTION_BYTES: usize = limits::COMPONENT_BYTES + limits::MESSAGE_BYTES;

/// A connection to the controller. One thread, and a runtime only while somebody talks.
pub struct Controller {
    runtime: Runtime,
    client: EphorClient<Channel>,
}

impl Controller {
    /// Connects to the controller that the options and the machine lead to.
    ///
    /// # Errors
    /// None answers: with what was tried and what would work.
    pub fn connect(global: &Global) -> anyhow::Result<Self> {
        let (path, socket) = match &global.socket {
            Some(path) => search(std::slice::from_ref(path))?,
            None => search(&default_sockets())?,
        };
        socket.set_nonblocking(true)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // The socket that answered is used first; a broken connection is made anew.
        let mut open = Some(socket);
        let connect = tower::service_fn(move |_| {
            let (open, path) = (open.take(), path.clone());
            async move {
                let socket = match open {
                    Some(socket) => tokio::net::UnixStream::from_std(socket)?,
                    None => tokio::net::UnixStream::connect(path).await?,
                };
                io::Result::Ok(TokioIo::new(socket))
            }
        });
        let channel = {
            let _inside = runtime.enter();
            // The address is never looked at: the sockets come from `connect`.
            Endpoint::from_static("http://controller.invalid").connect_with_connector_lazy(connect)
        };
        let client =
            EphorClient::new(channel).max_decoding_message_size(ANSWER_BYTES).max_encoding_message_size(QUESTION_BYTES);
        Ok(Self { runtime, client })
    }

    /// Makes one call and waits for its answer.
    ///
    /// # Errors
    /// The controller's refusal, in its words; [`CliError::Unreachable`] where the connection broke.
    pub fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut EphorClient<Channel>) -> Result<Response<T>, Status>,
    ) -> anyhow::Result<T> {
        let answer = self.runtime.block_on(call(&mut self.client));
        answer.map(Response::into_inner).map_err(|status| refusal(&status))
    }

    /// Waits for a future of the connection, such as the next piece of a stream.
    ///
    /// # Errors
    /// As [`Controller::call`].
    pub fn wait<T>(&mut self, future: impl Future<Output = Result<T, Status>>) -> anyhow::Result<T> {
        self.runtime.block_on(future).map_err(|status| refusal(&status))
    }
}

/// Links that `ephor dev` keeps to its socket, in the order in which they are tried. A link, because the path of a
/// socket may have at most 107 bytes and a data folder may lie anywhere.
pub fn dev_sockets() -> Vec<PathBuf> {
    let folder = |variable| std::env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
    let run = folder("XDG_RUNTIME_DIR").map(|dir| dir.join("ephor/dev.sock"));
    let home = folder("HOME").map(|dir| dir.join(".ephor/dev.sock"));
    run.into_iter().chain(home).collect()
}

fn default_sockets() -> Vec<PathBuf> {
    std::iter::once(PathBuf::from(SYSTEM_SOCKET)).chain(dev_sockets()).collect()
}

/// The first path where somebody answers.
fn search(paths: &[PathBuf]) -> Result<(PathBuf, UnixStream), CliError> {
    let mut tried = Vec::new();
    for path in paths {
        match UnixStream::connect(path) {
            Ok(socket) => return Ok((path.clone(), socket)),
            Err(error) => tried.push((path.clone(), error)),
        }
    }
    Err(unreachable(&tried))
}

fn unreachable(tried: &[(PathBuf, io::Error)]) -> CliError {
    let reason = |path: &Path, error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("{} is not there", path.display()),
        io::ErrorKind::ConnectionRefused => format!("nobody listens on {}", path.display()),
        io::ErrorKind::PermissionDenied => format!("you may not open {}", path.display()),
        _ => format!("{}: {error}", path.display()),
    };
    let reasons: Vec<String> = tried.iter().map(|(path, error)| reason(path, error)).collect();
    CliError::Unreachable(format!(
        "no controller answers: {}; start one with `ephor dev`, or name its socket with --socket or {SOCKET_VARIABLE}",
        reasons.join(", ")
    ))
}

fn refusal(status: &Status) -> anyhow::Error {
    // Only what went wrong on this side has a cause; a refusal of the controller is words.
    match status.source() {
        Some(_) => CliError::Unreachable(
            "the controller closed the connection before it answered; `ephor status` says whether it is back".into(),
        )
        .into(),
        None if status.message().is_empty() => anyhow::anyhow!("refused: {}", status.code().description()),
        None => anyhow::anyhow!("{}", status.message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_controller_says_what_was_tried() {
        let error = search(&["/nowhere/a.sock".into(), "/dev/null".into()]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/a.sock is not there, nobody listens on /dev/null"), "{error}");
        assert!(error.contains("ephor dev"), "{error}");
    }
}
