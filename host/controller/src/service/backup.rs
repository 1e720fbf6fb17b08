//! A consistent copy of live state and history, sent in pieces while everything goes on.

use super::{Answer, Services, internal};
use crate::archive::{END, FILES, MAGIC, heading};
use ephor_core::roles::{Permission, Target};
use ephor_proto::v1;
use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Bytes of one piece.
const PIECE: usize = 256 << 10;
/// Pieces on their way.
const AHEAD: usize = 4;

/// What a backup streams.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<v1::Blob, Status>> + Send>>;

type Sender = mpsc::Sender<Result<v1::Blob, Status>>;

pub(super) async fn backup(services: &Arc<Services>, request: Request<v1::Empty>) -> Answer<Pieces> {
    let caller = services.access.caller(&request).await?;
    services.access.allow(&caller, Permission::Backup, Target::default()).await?;
    let alone = services.copying.clone().try_lock_owned();
    let alone =
        alone.map_err(|_| Status::failed_precondition("another backup is being made; try again when it is done"))?;
    let inner = services.clone();
    // The authority's key would let its holder speak for any node: only root of this machine takes it along.
    let with_trust = caller.rescuer;
    let (sender, pieces) = mpsc::channel(AHEAD);
    let folder = services.data_folder.join("backup-in-progress");
    let copy = Copying::begin(folder).map_err(internal)?;
    tokio::task::spawn_blocking(move || {
        let _alone = alone;
        if let Err(error) = make(&inner, &copy, with_trust, &sender) {
            // A client that went away needs no error.
            let _ = sender.blocking_send(Err(internal(error)));
        }
    });
    Ok(Response::new(Box::pin(ReceiverStream::new(pieces))))
}

/// The folder of the copies; it goes when this is dropped.
struct Copying(PathBuf);

impl Copying {
    fn begin(folder: PathBuf) -> std::io::Result<Self> {
        // What a killed controller left.
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "the folder of a backup is left");
        }
    }
}

fn make(services: &Services, copy: &Copying, with_trust: bool, sender: &Sender) -> anyhow::Result<()> {
    let folder = &copy.0;
    let [live, history, trust @ ..] = FILES;
    // In this order, so that a job that moves meanwhile is in one of them at least.
    services.store.backup(&folder.join(live))?;
    services.history.backup(&folder.join(history))?;
    text(sender, MAGIC)?;
    file(sender, live, &folder.join(live))?;
    file(sender, history, &folder.join(history))?;
    if with_trust {
        for name in trust {
            file(sender, name, &services.data_folder.join(name))?;
        }
    }
    text(sender, END)
}

fn text(sender: &Sender, text: &str) -> anyhow::Result<()> {
    piece(sender, text.as_bytes().to_vec())
}

fn file(sender: &Sender, name: &str, path: &Path) -> anyhow::Result<()> {
    let mut from = File::open(path)?;
    let length = from.metadata()?.len();
    text(sender, &heading(name, length))?;
    let mut left = length;
    while left > 0 {
        let mut data = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
        from.read_exact(&mut data)?;
        left -= data.len() as u64;
        piece(sender, data)?;
    }
    Ok(())
}

fn piece(sender: &Sender, data: Vec<u8>) -> anyhow::Result<()> {
    sender.blocking_send(Ok(v1::Blob { data })).map_err(|_| anyhow::anyhow!("the client went away"))
}
