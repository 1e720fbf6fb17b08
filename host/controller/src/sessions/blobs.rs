//! Scripts and environments on their way to agents, read from the store once for many launches.

use ephor_model::Digest;
use ephor_store::Reader;
use std::collections::HashMap;
use std::sync::Arc;

/// Scripts and environments of recent launches: an array's elements share theirs.
#[derive(Default)]
pub(super) struct BlobCache {
    recent: HashMap<Digest, Arc<[u8]>>,
    bytes: usize,
}

impl BlobCache {
    /// Bytes kept; then the cache starts anew.
    const BYTES: usize = 32 << 20;

    /// The blob of that digest, from the cache or the store; `None` where it cannot be read.
    pub(super) fn get(&mut self, blobs: &dyn Reader, digest: Digest) -> Option<Arc<[u8]>> {
        if let Some(found) = self.recent.get(&digest) {
            return Some(found.clone());
        }
        let loaded: Arc<[u8]> = blobs.blob(&digest).ok().flatten()?.into();
        if self.bytes + loaded.len() > Self::BYTES {
            self.recent.clear();
            self.bytes = 0;
        }
        self.bytes += loaded.len();
        self.recent.insert(digest, loaded.clone());
        Some(loaded)
    }
}
