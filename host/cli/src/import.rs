//! `ephor import`: a site's `slurm.conf`, and what lies beside it, becomes a file for `ephor apply`.
//!
//! What the files mean is in `ephor-slurm`; here they are found and read, and what comes of them is written.

use crate::exit::CliError;
use crate::{Global, output};
use anyhow::{Context, ensure};
use clap::Args;
use ephor_model::limits;
use ephor_slurm::import::{self, Entry, Imported};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The file of a site that is looked for in a folder.
const SLURM_CONF: &str = "slurm.conf";

/// Make a file for `ephor apply` of a site's slurm.conf, and say what became of each line
#[derive(Args)]
#[command(after_help = "\
gres.conf, topology.conf, cgroup.conf and files that are included are read where they lie beside slurm.conf.
Nothing is sent to a controller. Look at the report, then `ephor apply` the file.

Example: ephor import /etc/slurm/slurm.conf -o cluster.toml")]
pub struct Import {
    /// slurm.conf, or the folder that it lies in
    #[arg(value_name = "FILE|FOLDER", default_value = "/etc/slurm/slurm.conf")]
    from: PathBuf,
    /// File to write, which must not be there yet; the report goes to standard output then, else to standard error
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// File for the report, which must not be there yet
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Import {
    /// Runs the command. Ends with 1 where the site's files have mistakes: each is told, and nothing is written.
    ///
    /// # Errors
    /// A file cannot be written, or is there already.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let Self { from, output, report } = self;
        if output.is_some() && output == report {
            return Err(CliError::Usage("the file and its report cannot be the same; name two".into()).into());
        }
        for path in output.iter().chain(&report) {
            ensure!(!path.exists(), "{} is there already; name another file, or remove it", path.display());
        }
        let (folder, name) = locate(&from)?;
        let imported = match import::import(&name, |file| read(&folder.join(file))) {
            Ok(imported) => imported,
            Err(mistakes) => {
                mistakes.0.iter().for_each(|mistake| output::problem(&format!("error: {mistake}")));
                output::problem("nothing was written");
                return Ok(ExitCode::FAILURE);
            }
        };
        let toml = imported.site.to_toml();
        let lines = imported.report.to_string();
        if let Some(path) = &output {
            write(path, &toml)?;
        }
        if let Some(path) = &report {
            write(path, &lines)?;
        }
        if global.json {
            output::json(&as_json(&imported, output.as_deref(), &toml))?;
            return Ok(ExitCode::SUCCESS);
        }
        let shown = if report.is_some() { format!("{}\n", imported.report.summary()) } else { lines };
        match output {
            Some(path) => {
                output::raw(shown.as_bytes())?;
                output::written(&path, toml.len() as u64, global)?;
            }
            None => {
                output::problem(&shown);
                output::raw(toml.as_bytes())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The folder that names in the files are relative to, and the name of `slurm.conf` in it.
fn locate(from: &Path) -> anyhow::Result<(PathBuf, String)> {
    if from.is_dir() {
        return Ok((from.to_owned(), SLURM_CONF.to_owned()));
    }
    let name = from.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} names no file", from.display()))?;
    ensure!(from.exists(), "there is no {}; name a site's slurm.conf, or its folder", from.display());
    Ok((from.parent().unwrap_or(Path::new("")).to_owned(), name.to_owned()))
}

/// The text of a file; `None`: it is not there.
fn read(path: &Path) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    // One byte more than is taken shows that there is too much.
    let mut bytes = Vec::new();
    file.take(limits::IMPORT_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    // Comments may be in any encoding; a name that is not in UTF-8 is refused as no name.
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).with_context(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)
}

fn as_json(imported: &Imported, file: Option<&Path>, toml: &str) -> serde_json::Value {
    let entry = |entry: &Entry| {
        serde_json::json!({
            "file": entry.place.file, "line": entry.place.line, "says": entry.says,
            "verdict": entry.verdict.words(), "notes": entry.notes,
        })
    };
    let report: Vec<serde_json::Value> = imported.report.entries.iter().map(entry).collect();
    serde_json::json!({
        "file": file.map(|path| path.display().to_string()),
        "bytes": toml.len(),
        "toml": file.is_none().then_some(toml),
        "report": report,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects;

    /// The sites that `ephor-slurm` is tested with.
    fn sites() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm/tests/import")
    }

    #[test]
    fn what_is_written_is_what_apply_reads() {
        for site in ["small", "gpu", "sets", "odd"] {
            let (folder, name) = locate(&sites().join(site)).unwrap();
            let Imported { site, .. } = import::import(&name, |file| read(&folder.join(file))).unwrap();
            let set = objects::file::read(&site.to_toml(), |_| None).unwrap();
            assert_eq!(objects::count(&set), site.queues.len() + site.licences.len() + site.nodes.len());
            for (read, is) in set.queues.iter().zip(&site.queues) {
                assert_eq!((&read.name, read.default, read.priority), (&is.name, is.default, is.priority));
                assert_eq!(read.max_time, is.max_time.map(|time| time.0));
                assert_eq!(read.default_time, is.default_time.map(|time| time.0));
                assert_eq!((read.max_nodes, read.default_mem_per_cpu), (is.max_nodes, is.default_mem_per_cpu));
                assert_eq!(read.state, format!("{:?}", is.state).to_lowercase());
                assert_eq!((&read.node_features, read.weight), (&is.node_features, is.weight));
            }
            for (read, is) in set.nodes.iter().zip(&site.nodes) {
                assert_eq!((&read.name, &read.features), (&is.name, &is.features));
            }
            for (read, is) in set.licences.iter().zip(&site.licences) {
                assert_eq!((&read.name, read.count), (&is.name, is.count));
            }
        }
    }

    #[test]
    fn a_folder_stands_for_its_slurm_conf() {
        let site = sites().join("small");
        assert_eq!(locate(&site).unwrap(), (site.clone(), SLURM_CONF.to_owned()));
        assert_eq!(locate(&site.join("slurm.conf")).unwrap(), (site.clone(), SLURM_CONF.to_owned()));
        assert!(locate(&site.join("none.conf")).unwrap_err().to_string().contains("there is no "));
    }
}
