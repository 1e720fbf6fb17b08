//! Keeps compiled components in a private folder, so that a restart does not compile them again.
//!
//! A file is taken only with a MAC under the folder's own key, over its name and content: the name holds the digest of
//! the component and everything about engine, settings and processor that the code hangs on. Whatever does not fit is
//! compiled again.

mod mac;
mod native;

use crate::bounds;
use ephor_model::Digest;
use mac::Key;
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wasmtime::Engine;
use wasmtime::component::Component;

const KEY_FILE: &str = "key";
const SUFFIX: &str = "cwasm";
/// Bytes of a file at most: compiled code is a few times its component.
const FILE_BYTES: u64 = 512 << 20;

/// Why the folder of compiled code cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the folder of compiled policies cannot be used: {path}: {why}", path = path.display())]
pub struct CacheError {
    path: PathBuf,
    why: String,
}

/// See the module.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    key: Key,
}

impl Cache {
    /// Opens the folder; makes it and its key where they are missing.
    ///
    /// # Errors
    /// It cannot be made or read, or others can read its key.
    pub fn open(folder: &Path) -> Result<Self, CacheError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |e: io::Error| CacheError { path, why: e.to_string() }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail(folder))?;
        let path = folder.join(KEY_FILE);
        let key = match read_key(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => make_key(folder, &path),
            other => other,
        };
        Ok(Self { folder: folder.to_owned(), key: key.map_err(fail(&path))? })
    }

    /// The compiled code of that component, if it is here, ours, whole, and fits this engine.
    pub fn load(&self, engine: &Engine, component: Digest) -> Option<Component> {
        let name = file_name(engine, component);
        let path = self.folder.join(&name);
        let file = fs::File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
        let loaded = self.key.open(&name, &bytes).and_then(|code| native::deserialize(engine, code));
        if loaded.is_none() {
            tracing::warn!(file = %path.display(), "compiled policy is damaged or not ours; it is compiled again");
        }
        loaded
    }

    /// Keeps compiled code; the oldest files go when there are too many.
    ///
    /// # Errors
    /// It could not be written; nothing half-written stays.
    pub fn save(&self, engine: &Engine, component: Digest, compiled: &Component) -> Result<(), CacheError> {
        let name = file_name(engine, component);
        let path = self.folder.join(&name);
        let fail = |why: String| CacheError { path: path.clone(), why };
        let code = compiled.serialize().map_err(|e| fail(e.to_string()))?;
        let half = self.folder.join(format!("{name}.{}.half", std::process::id()));
        let written = private(&half)
            .and_then(|mut file| file.write_all(&self.key.seal(&name, &code)).and_then(|()| file.write_all(&code)))
            .and_then(|()| fs::rename(&half, &path));
        if let Err(e) = written {
            // It may not be there at all.
            let _ = fs::remove_file(&half);
            return Err(fail(e.to_string()));
        }
        self.prune(&name);
        Ok(())
    }

    fn prune(&self, keep: &str) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|x| x == SUFFIX) && p.file_name().is_some_and(|n| n != keep))
            .filter_map(|p| Some((p.metadata().ok()?.modified().ok()?, p)))
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(bounds::CACHED - 1);
        for (_, path) in &files[..surplus] {
            // Another process may have done it already.
            let _ = fs::remove_file(path);
        }
    }
}

fn private(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn read_key(path: &Path) -> io::Result<Key> {
    let mut file = fs::File::open(path)?;
    let facts = file.metadata()?;
    if facts.permissions().mode() & 0o077 != 0 {
        let text = format!("others may read it (mode {:o}); make it 600, or remove it", facts.mode() & 0o7777);
        return Err(io::Error::other(text));
    }
    let mut bytes = [0; mac::KEY_BYTES];
    match file.read_exact(&mut bytes) {
        Ok(()) if facts.len() == mac::KEY_BYTES as u64 => Ok(Key::new(bytes)),
        _ => Err(io::Error::other(format!("it has {} bytes, not {}; remove it", facts.len(), mac::KEY_BYTES))),
    }
}

/// Makes the key under another name and links it, so that two that start at once agree on one.
fn make_key(folder: &Path, path: &Path) -> io::Result<Key> {
    let mut bytes = [0; mac::KEY_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let half = folder.join(format!("{KEY_FILE}.{}.half", std::process::id()));
    private(&half)?.write_all(&bytes)?;
    let linked = fs::hard_link(&half, path);
    fs::remove_file(&half)?;
    match linked {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => read_key(path),
    }
}

/// Names the code by all that it hangs on.
fn file_name(engine: &Engine, component: Digest) -> String {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut sha = Sha(Sha256::new());
    // wasmtime's version, target, processor features and every setting that changes code are in it.
    engine.precompile_compatibility_hash().hash(&mut sha);
    let settings = Digest(sha.0.finalize().into()).to_string();
    format!("{component}-{}.{SUFFIX}", &settings[..32])
}
