//! Where callers come in: the users' socket and the agents' port, with a bound on the connections of each caller.

use crate::config::{port_text, socket_usable};
use anyhow::{Context as _, bail};
use std::collections::HashMap;
use std::fs::Permissions;
use std::hash::Hash;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;

/// How long to wait after a connection could not be taken, as when descriptors have run out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Connections of one user of this machine: nobody uses up the descriptors of all.
const PER_USER: u32 = 1024;
/// Connections from one address.
const PER_ADDRESS: u32 = 4096;

/// The users' socket; its file goes when it is dropped.
pub(crate) struct LocalSocket {
    listener: Option<UnixListener>,
    path: PathBuf,
}

impl LocalSocket {
    /// Listens. A socket that a killed controller left is replaced.
    ///
    /// # Errors
    /// Somebody answers there, something else is in the way, or the path cannot be used.
    pub(crate) fn open(path: &Path, mode: u32) -> anyhow::Result<Self> {
        let shown = path.display();
        if let Some(folder) = path.parent() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.with_context(|| format!("cannot make the folder of the socket {shown}"))?;
        }
        socket_usable(path).map_err(|why| anyhow::anyhow!("cannot listen for users: {why}"))?;
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                std::fs::remove_file(path).with_context(|| format!("cannot remove the old socket {shown}"))?;
            }
            Ok(_) => bail!("{shown} is in the way and is no socket; choose another socket_path"),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).with_context(|| format!("cannot listen on {shown}"))?;
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(Self { listener: Some(listener), path: path.to_owned() })
    }

    /// The connections.
    pub(crate) fn incoming(
        &mut self,
    ) -> Option<impl Stream<Item = io::Result<Counted<UnixStream, u32>>> + Send + use<>> {
        let listener = self.listener.take()?;
        let uid = |stream: &UnixStream| stream.peer_cred().map(|peer| peer.uid());
        Some(counted(UnixListenerStream::new(listener), uid, PER_USER))
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // Gone already, or in the way of nobody: the next start replaces it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens on a port.
///
/// # Errors
/// In words that say what would work.
pub(crate) async fn port(what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|e| anyhow::anyhow!("{what}: {}", port_text(address, &e)))
}

/// Connections of a port, without delay for small messages.
pub(crate) fn connections(
    listener: TcpListener,
) -> impl Stream<Item = io::Result<Counted<TcpStream, IpAddr>>> + Send + use<> {
    let address = |stream: &TcpStream| {
        stream.set_nodelay(true)?;
        stream.peer_addr().map(|peer| peer.ip())
    };
    counted(TcpListenerStream::new(listener), address, PER_ADDRESS)
}

type Counts<K> = Arc<Mutex<HashMap<K, u32>>>;

/// A connection that counts among those of its caller.
pub(crate) struct Counted<S, K: Copy + Eq + Hash> {
    stream: S,
    caller: K,
    counts: Counts<K>,
}

/// Lets so many connections of each caller in and closes the others; goes on after an error, without spinning.
fn counted<S: Send, K: Copy + Eq + Hash + Send>(
    incoming: impl Stream<Item = io::Result<S>> + Send,
    who: impl Fn(&S) -> io::Result<K> + Send,
    most: u32,
) -> impl Stream<Item = io::Result<Counted<S, K>>> + Send {
    let counts = Counts::default();
    let patient = incoming.then(|stream| async {
        if stream.is_err() {
            tokio::time::sleep(ACCEPT_AGAIN).await;
        }
        stream
    });
    // One that is gone before it was looked at, or that is too many, is dropped and so closed.
    patient.filter_map(move |stream| match stream {
        Ok(stream) => {
            let caller = who(&stream).ok()?;
            let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = all.entry(caller).or_default();
            if *count >= most {
                return None;
            }
            *count += 1;
            Some(Ok(Counted { stream, caller, counts: counts.clone() }))
        }
        Err(error) => Some(Err(error)),
    })
}

impl<S, K: Copy + Eq + Hash> Drop for Counted<S, K> {
    fn drop(&mut self) {
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.caller);
            }
        }
    }
}

impl<S: Connected, K: Copy + Eq + Hash> Connected for Counted<S, K> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<S: AsyncRead + Unpin, K: Copy + Eq + Hash + Unpin> AsyncRead for Counted<S, K> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin, K: Copy + Eq + Hash + Unpin> AsyncWrite for Counted<S, K> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_caller_has_so_many_connections_and_no_more() {
        let all = tokio_stream::iter([1, 1, 2, 1].map(Ok));
        let mut incoming = std::pin::pin!(counted(all, |n: &u32| Ok(*n), 2));
        let mut open = Vec::new();
        while let Some(next) = incoming.next().await {
            open.push(next.unwrap());
        }
        assert_eq!(open.iter().map(|c| c.stream).collect::<Vec<_>>(), [1, 1, 2]);
        let counts = open[0].counts.clone();
        drop(open);
        assert!(counts.lock().unwrap().is_empty());
    }
}
