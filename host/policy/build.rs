//! Lists the built policies of `target/plugins` (or of the folder in `EPHOR_PLUGINS`) for embedding.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins");
    let folder = env::var_os("EPHOR_PLUGINS").map_or(ours, PathBuf::from);
    println!("cargo::rerun-if-env-changed=EPHOR_PLUGINS");
    println!("cargo::rerun-if-changed={}", folder.display());
    let components = match components(&folder) {
        Ok(found) if !found.is_empty() => found,
        _ => {
            let folder = folder.display();
            println!("cargo::warning=no built policies in {folder}: none are embedded; `make build` makes them first");
            Vec::new()
        }
    };
    let mut code = "/// Name and bytes of each.\npub const COMPONENTS: &[(&str, &[u8])] = &[\n".to_owned();
    for (name, path) in components {
        // Formatting into a string does not fail.
        let _ = writeln!(code, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("builtin.rs"), code)
}

fn components(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path().canonicalize()?;
        if path.extension().is_some_and(|x| x == "wasm")
            && let Some(name) = path.file_stem().and_then(|n| n.to_str())
        {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}
