//! `ephor-policy-build`: makes components of policy crates, of whole workspaces, and of core modules.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use ephor_policy_build::{build_crate, build_workspace, componentize};

/// Makes a component with its manifest of a policy crate or of a core module.
#[derive(Parser)]
#[command(name = "ephor-policy-build", version)]
struct Arguments {
    /// Folder of a policy crate, or a core module (.wasm) that cargo made of one.
    input: PathBuf,
    /// Where the component goes; with --all: the folder for NAME.wasm of each.
    #[arg(short, long)]
    output: PathBuf,
    /// INPUT is a workspace: build all its policies with one run of cargo.
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Not anyhow's own report: a backtrace of the builder tells the author of a policy nothing.
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if arguments.all {
        let components = build_workspace(&arguments.input)?;
        for (name, component) in components {
            write(&arguments.output.join(format!("{name}.wasm")), &component)?;
        }
        return Ok(());
    }
    let component = if arguments.input.is_dir() {
        build_crate(&arguments.input)?
    } else if arguments.input.is_file() {
        let module =
            std::fs::read(&arguments.input).with_context(|| format!("could not read {}", arguments.input.display()))?;
        componentize(&module).with_context(|| arguments.input.display().to_string())?
    } else {
        bail!("{} is neither a folder nor a file", arguments.input.display());
    };
    write(&arguments.output, &component)
}

/// Writes beside the target and renames, so that a reader never sees half a component; an equal file is left alone.
fn write(path: &Path, component: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == component) {
        return Ok(());
    }
    let beside = path.with_extension("wasm.new");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&beside, component))
        .and_then(|()| std::fs::rename(&beside, path))
        .with_context(|| format!("could not write {}", path.display()))?;
    println!("{} ({} bytes)", path.display(), component.len());
    Ok(())
}
