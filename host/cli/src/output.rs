//! How answers are shown: tables, fields, JSON.
//!
//! Everything that users can name goes through [`clean`], so that nobody sends control codes to another's terminal.

use crate::Global;
use comfy_table::{Table, presets};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Replaces control characters.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Prints one line.
///
/// # Errors
/// Standard output cannot be written.
pub fn line(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stdout().lock(), "{}", clean(text))?)
}

/// Prints text as it is.
///
/// # Errors
/// Standard output cannot be written.
pub fn raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Prints a line for people on standard error. Where that is closed there is nobody to tell.
pub fn problem(text: &str) {
    for line in text.lines() {
        let _ = writeln!(io::stderr().lock(), "{}", clean(line));
    }
}

/// Prints a message of the contract.
///
/// # Errors
/// Standard output cannot be written.
pub fn json<T: Serialize>(message: &T) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(message)?;
    text.push('\n');
    raw(text.as_bytes())
}

/// Prints rows under headings, columns two blanks apart.
///
/// # Errors
/// Standard output cannot be written.
pub fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> anyhow::Result<()> {
    print(&headings, rows.into_iter().map(Vec::from))
}

fn print(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings);
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    raw(text.as_bytes())
}

/// As [`table`], where the number of columns is not known when this is compiled.
///
/// # Errors
/// Standard output cannot be written.
pub fn rows(headings: &[&str], rows: Vec<Vec<String>>) -> anyhow::Result<()> {
    print(headings, rows.into_iter())
}

/// Prints names and values below each other; empty values are left out.
///
/// # Errors
/// Standard output cannot be written.
pub fn fields(fields: &[(&str, String)]) -> anyhow::Result<()> {
    let shown = || fields.iter().filter(|(_, value)| !value.is_empty());
    let width = shown().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    shown().try_for_each(|(name, value)| line(&format!("{name:width$}  {value}")))
}

/// Says that a file was written.
///
/// # Errors
/// Standard output cannot be written.
pub fn written(file: &Path, bytes: u64, global: &Global) -> anyhow::Result<()> {
    let shown = file.display();
    match global.json {
        true => json(&serde_json::json!({ "file": shown.to_string(), "bytes": bytes })),
        false => line(&format!("{shown} has {bytes} bytes")),
    }
}
