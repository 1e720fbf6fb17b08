//! `ephor policy activate`.

use crate::Global;
use crate::connect::Controller;
use anyhow::{Context, bail, ensure};
use clap::Args;
use ephor_model::limits;
use ephor_proto::v1::ComponentUpload;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Activates a component.
#[derive(Args)]
pub struct Activate {
    #[command(flatten)]
    slot: super::SlotArg,
    /// The component
    file: PathBuf,
    /// Its configuration, JSON or TOML by the name's end
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// An import that it may use, such as ephor:host/log; may be repeated
    #[arg(long, value_name = "IMPORT")]
    grant: Vec<String>,
}

impl Activate {
    /// Runs the command.
    ///
    /// # Errors
    /// A file cannot be read or is of another kind, the component was refused, or no controller answers.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let component = read(&self.file, limits::COMPONENT_BYTES)?;
        let shown = self.file.display();
        // The eight bytes of a component; a plain module has another layer number.
        match component.get(..8) {
            Some(b"\0asm\x0d\0\x01\0") => {}
            Some(start) if start.starts_with(b"\0asm") => {
                bail!("{shown} is a WebAssembly module, not a component; `ephor policy build` makes one");
            }
            _ => bail!("{shown} is not a WebAssembly component; `ephor policy build` makes one"),
        }
        let config = self.config.as_deref().map(config).transpose()?.unwrap_or_default();
        let upload = ComponentUpload { slot: self.slot.slot, component, config, grants: self.grant };
        let view = Controller::connect(global)?.call(async |c| c.activate_policy(upload).await)?;
        super::now_live(&view, global)
    }
}

fn read(file: &Path, most: usize) -> anyhow::Result<Vec<u8>> {
    let shown = file.display();
    let open = std::fs::File::open(file).with_context(|| format!("cannot read {shown}"))?;
    let mut bytes = Vec::new();
    open.take(most as u64 + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {shown}"))?;
    ensure!(bytes.len() <= most, "{shown} has more than the {most} bytes that are taken");
    Ok(bytes)
}

/// Reads a configuration as JSON text.
fn config(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let text = String::from_utf8(read(file, limits::POLICY_CONFIG_BYTES)?)
        .with_context(|| format!("{shown} is not UTF-8 text"))?;
    let value = match file.extension().and_then(|end| end.to_str()) {
        Some("json") => serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?,
        Some("toml") => from_toml(&text).with_context(|| format!("{shown} cannot be a configuration"))?,
        _ => bail!("{shown} must end in .json or .toml"),
    };
    Ok(serde_json::Value::to_string(&value))
}

fn from_toml(text: &str) -> anyhow::Result<serde_json::Value> {
    let table: toml::Table = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        anyhow::anyhow!("line {line}: {}", e.message())
    })?;
    ensure!(!table.values().any(has_date), "JSON has no dates; write them as texts");
    Ok(serde_json::to_value(table)?)
}

fn has_date(value: &toml::Value) -> bool {
    match value {
        toml::Value::Datetime(_) => true,
        toml::Value::Array(values) => values.iter().any(has_date),
        toml::Value::Table(table) => table.values().any(has_date),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_becomes_json() {
        let json = from_toml("weights = { age = 1000 }\nnames = ['a']\n").unwrap().to_string();
        assert_eq!(json, r#"{"names":["a"],"weights":{"age":1000}}"#);
        assert!(from_toml("x = [2026-12-01]").unwrap_err().to_string().contains("dates"));
        assert!(from_toml("x = 1\ny").unwrap_err().to_string().contains("line 2"));
    }
}
