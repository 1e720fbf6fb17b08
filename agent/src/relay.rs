//! The local socket for users: passes their calls on to the controller, unread, with the caller's user and group.
//!
//! One service is passed on, the users' own; what it may do is the controller's business. The headers that say who
//! calls come from the kernel (the socket's peer), and any that the caller sent under such a name are dropped.

use crate::limits::{RELAY_CONNECTIONS_PER_USER, RELAY_HEADER_BYTES, RELAY_STREAMS};
use crate::session::with_sources;
use anyhow::{Context as _, bail};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::{Connected, UdsConnectInfo};
use tonic::transport::{Channel, Endpoint, Server};
use tower::{Service, ServiceExt};

/// Headers whose names begin so are ours.
const OURS: &str = "ephor-";
/// How long to wait after a connection could not be taken.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
const UID: &str = "ephor-attested-uid";
const GID: &str = "ephor-attested-gid";

/// A socket that is listened on.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
}

impl Socket {
    /// Listens. A socket that a killed agent left behind is replaced.
    ///
    /// # Errors
    /// Somebody answers there, something else is in the way, or the path cannot be used.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                bail!("{} is in the way and is no socket: choose another with --socket", path.display())
            }
            Ok(_) => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    bail!("another agent serves {}: choose another with --socket", path.display());
                }
                std::fs::remove_file(path).with_context(|| format!("cannot remove the old {}", path.display()))?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).with_context(|| {
            format!(
                "cannot listen on {}: a socket's path has at most 107 bytes, in a folder that is there",
                path.display()
            )
        })?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        Ok(Self { listener })
    }

    /// Passes calls on until the process ends.
    ///
    /// # Errors
    /// The socket broke.
    pub async fn serve(self, endpoint: &Endpoint) -> anyhow::Result<()> {
        let relay = Relay { channel: endpoint.connect_lazy() };
        let guests = Arc::new(Guests::default());
        let incoming = UnixListenerStream::new(self.listener)
            .then(|stream| async {
                // Out of descriptors: the others go on, and this is no reason to spin.
                if stream.is_err() {
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
                stream
            })
            .filter_map(move |stream| stream.ok().and_then(|stream| guests.clone().admit(stream)))
            .map(Ok::<_, io::Error>);
        Server::builder()
            .max_concurrent_streams(RELAY_STREAMS)
            .http2_max_header_list_size(RELAY_HEADER_BYTES)
            .add_service(relay)
            .serve_with_incoming(Box::pin(incoming) as Pin<Box<dyn Stream<Item = _> + Send>>)
            .await
            .context("the local socket broke")
    }
}

/// Passes one call on.
#[derive(Clone)]
struct Relay {
    channel: Channel,
}

impl NamedService for Relay {
    const NAME: &'static str = "ephor.v1.Ephor";
}

impl Service<http::Request<Body>> for Relay {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let channel = self.channel.clone();
        Box::pin(async move {
            let peer = request.extensions().get::<UdsConnectInfo>().and_then(|info| info.peer_cred);
            let Some(peer) = peer else {
                return Ok(tonic::Status::unauthenticated("the kernel did not say who calls").into_http());
            };
            attest(request.headers_mut(), peer.uid(), peer.gid());
            Ok(channel.oneshot(request).await.unwrap_or_else(|e| {
                let why = format!("this node's agent cannot reach the controller: {}", with_sources(&e));
                tonic::Status::unavailable(why).into_http()
            }))
        })
    }
}

fn attest(headers: &mut http::HeaderMap, uid: u32, gid: u32) {
    let forged: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(OURS)).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
    headers.insert(UID, uid.into());
    headers.insert(GID, gid.into());
}

/// Who has how many connections.
#[derive(Debug, Default)]
struct Guests {
    by_user: Mutex<HashMap<u32, usize>>,
}

impl Guests {
    /// Takes a connection, unless its user has enough of them.
    fn admit(self: Arc<Self>, stream: UnixStream) -> Option<Guest> {
        let uid = stream.peer_cred().ok()?.uid();
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_user.entry(uid).or_default();
        if *count >= RELAY_CONNECTIONS_PER_USER {
            tracing::warn!(uid, "closed a connection: this user has {RELAY_CONNECTIONS_PER_USER} already");
            return None;
        }
        *count += 1;
        drop(by_user);
        Some(Guest { stream, uid, guests: self })
    }
}

/// One connection; counted until it is dropped.
struct Guest {
    stream: UnixStream,
    uid: u32,
    guests: Arc<Guests>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut by_user = self.guests.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_user.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                by_user.remove(&self.uid);
            }
        }
    }
}

impl Connected for Guest {
    type ConnectInfo = UdsConnectInfo;
    fn connect_info(&self) -> UdsConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Guest {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_headers_are_replaced_by_the_kernels_word() {
        let mut headers = http::HeaderMap::new();
        for (name, value) in [(UID, "0"), (UID, "1"), ("ephor-anything", "x"), ("te", "trailers")] {
            headers.append(name, value.parse().unwrap());
        }
        attest(&mut headers, 1000, 100);
        assert_eq!(headers.get_all(UID).iter().collect::<Vec<_>>(), ["1000"]);
        assert_eq!(headers[GID], "100");
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "mine").unwrap();
        assert!(Socket::open(&path).unwrap_err().to_string().contains("no socket"));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    }
}
