//! The link by which the command line finds a development cluster.

use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A link that was made; it goes when this is dropped, unless another cluster has taken it over.
pub(super) struct Link {
    path: PathBuf,
    socket: PathBuf,
}

impl Link {
    /// Makes the first link that can be made. A link to a cluster that answers is left alone.
    pub(super) fn make(links: &[PathBuf], socket: &Path) -> Option<Self> {
        links.iter().find_map(|path| {
            let ours = || Self { path: path.clone(), socket: socket.to_owned() };
            // A run of this cluster that was killed left it.
            if std::fs::read_link(path).is_ok_and(|target| target == socket) {
                return Some(ours());
            }
            if UnixStream::connect(path).is_ok() {
                return None;
            }
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?).ok()?;
            if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
                std::fs::remove_file(path).ok()?;
            }
            symlink(socket, path).ok()?;
            Some(ours())
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if std::fs::read_link(&self.path).is_ok_and(|target| target == self.socket) {
            // It is gone already, or in the way of nobody: the next cluster replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_link_comes_and_goes_and_leaves_others_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (path, socket) = (dir.path().join("run/dev.sock"), dir.path().join("s"));
        // What a killed cluster left.
        std::fs::create_dir(dir.path().join("run")).unwrap();
        symlink("/nowhere", &path).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let first = Link::make(std::slice::from_ref(&path), &socket).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        assert!(Link::make(std::slice::from_ref(&path), &dir.path().join("other")).is_none());
        let link = Link::make(std::slice::from_ref(&path), &socket).unwrap();
        drop(link);
        assert!(!path.exists());
        // Gone already.
        drop(first);
        drop(listener);
    }
}
