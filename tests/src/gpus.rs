//! Machines with GPUs that are not there: the stand-in for NVIDIA's library, and the scenes that it plays.

use crate::process::{binary, repository};
use std::fs;
use std::path::{Path, PathBuf};

/// The stand-in library.
///
/// # Panics
/// When it is not built.
pub fn library() -> PathBuf {
    binary("libnvml_stand_in.so")
}

/// The text of a scene of the repository.
///
/// # Panics
/// When there is none of that name.
pub fn scene(name: &str) -> String {
    let path = repository().join("tests/nvml-stand-in/scenes").join(format!("{name}.toml"));
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Makes a scene the one that is played from now on, whole at once.
///
/// # Panics
/// When the file cannot be written.
pub fn play(path: &Path, text: &str) {
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path)).expect("the scene can be written");
}

/// A copy of the stand-in as an older library is: without the symbols that the scene says it lacks.
///
/// # Panics
/// When the copy cannot be made, or the stand-in does not have such a symbol.
pub fn older_library(folder: &Path, scene: &str) -> PathBuf {
    let scene: toml::Table = scene.parse().expect("a scene is TOML");
    let mut bytes = fs::read(library()).expect("the stand-in can be read");
    for symbol in scene["lacks"].as_array().into_iter().flatten().filter_map(toml::Value::as_str) {
        // A name is found by its text at last: under another one nobody finds it. Whole names only, since one may begin
        // like another.
        let name = [b"\0", symbol.as_bytes(), b"\0"].concat();
        let places: Vec<usize> =
            (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(&name)).map(|at| at + 1).collect();
        assert!(!places.is_empty(), "the stand-in has no {symbol}");
        places.into_iter().for_each(|at| bytes[at] = b'?');
    }
    let path = folder.join("libnvml-old.so");
    fs::write(&path, bytes).expect("the copy can be written");
    path
}
