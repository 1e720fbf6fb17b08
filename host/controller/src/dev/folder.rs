//! The folder of a development cluster, kept or temporary.

use anyhow::Context;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// See the module. A temporary one is removed when it is dropped.
pub(super) struct Folder {
    path: PathBuf,
    temporary: bool,
    /// A short folder for the socket, where the path of this one is too long.
    short: Option<PathBuf>,
}

/// Bytes of a socket's path that always fit.
const SOCKET_BYTES: usize = crate::config::SOCKET_PATH_BYTES;

impl Folder {
    /// Makes the folder where it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn open(data: Option<&Path>) -> anyhow::Result<Self> {
        let (path, temporary) = match data {
            Some(data) => (std::path::absolute(data)?, false),
            None => (fresh("dev"), true),
        };
        // Others may pass through: jobs of several users find their scripts inside.
        let made = DirBuilder::new().recursive(true).mode(0o711).create(&path);
        made.with_context(|| format!("cannot make the folder {}", path.display()))?;
        let too_long = path.join("nodes/node64/agent.sock").as_os_str().len() > SOCKET_BYTES;
        let short = too_long.then(|| fresh("sock"));
        if let Some(short) = &short {
            DirBuilder::new().mode(0o711).create(short).with_context(|| format!("cannot make {}", short.display()))?;
        }
        Ok(Self { path, temporary, short })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it goes at the end.
    pub(super) fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// The controller's socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.short.as_ref().unwrap_or(&self.path).join("ephor.sock")
    }

    /// The socket of a node's agent.
    pub(super) fn agent_socket(&self, node: &str) -> PathBuf {
        match &self.short {
            Some(short) => short.join(format!("{node}.sock")),
            None => self.node(node).join("agent.sock"),
        }
    }

    /// The folder of a node.
    pub(super) fn node(&self, node: &str) -> PathBuf {
        self.path.join("nodes").join(node)
    }
}

fn fresh(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ephor-{what}-{:08x}", rand::random::<u32>()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let gone = self.short.iter().chain(self.temporary.then_some(&self.path));
        for path in gone {
            if let Err(error) = std::fs::remove_dir_all(path) {
                tracing::warn!(%error, path = %path.display(), "a temporary folder is left");
            }
        }
    }
}
