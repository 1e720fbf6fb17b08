//! The page about Slurm's commands says what the tables say. `BLESS=1 cargo test -p ephor-slurm --test page` writes it.

use ephor_slurm::columns::Column;
use ephor_slurm::table::OptionDef;
use ephor_slurm::{sacct, sbatch, scancel, scontrol, sinfo, squeue, srun};
use std::path::Path;

fn options<K>(table: &[OptionDef<K>]) -> String {
    let mut text = "| option | variable | here | |\n|---|---|---|---|\n".to_owned();
    for def in table {
        let (what, how) = def.fate.words();
        let variable = def.variable.map(|name| format!("`{name}`")).unwrap_or_default();
        text.push_str(&format!("| `{}` | {variable} | {what} | {how} |\n", def.usage().replace('|', "\\|")));
    }
    text
}

fn fields<R>(table: &[Column<R>]) -> String {
    let mut text = "| letter | name | heading |\n|---|---|---|\n".to_owned();
    for column in table {
        let letter = column.code.map(|c| format!("`%{c}`")).unwrap_or_default();
        text.push_str(&format!("| {letter} | `{}` | {} |\n", column.long, column.heading));
    }
    text
}

fn sacct_fields() -> String {
    let names: Vec<String> = sacct::fields::FIELDS.iter().map(|field| format!("`{}`", field.name)).collect();
    format!("{}.\n", names.join(", "))
}

fn commands() -> String {
    let mut text = "| command | here |\n|---|---|\n".to_owned();
    for (command, what) in scontrol::COMMANDS {
        text.push_str(&format!("| `{}` | {what} |\n", command.replace('|', "\\|")));
    }
    text.push_str(&format!("\nKeys of a job for `update`: {}.\n", scontrol::update::keys()));
    text
}

#[test]
fn the_page_says_what_the_tables_say() {
    let tables = [
        ("sbatch", options(sbatch::table::TABLE)),
        ("srun", options(srun::table::TABLE)),
        ("scancel", options(scancel::TABLE)),
        ("scontrol", commands()),
        ("squeue", options(squeue::table::TABLE)),
        ("squeue fields", fields(squeue::fields::FIELDS)),
        ("sacct", options(sacct::table::TABLE)),
        ("sacct fields", sacct_fields()),
        ("sinfo", options(sinfo::table::TABLE)),
        ("sinfo fields", fields(sinfo::fields::FIELDS)),
    ];
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/slurm.md");
    let mut text = std::fs::read_to_string(&page).unwrap();
    let is = text.clone();
    for (name, table) in tables {
        let (open, close) = (format!("<!-- table: {name} -->\n"), format!("<!-- end: {name} -->"));
        let start = text.find(&open).unwrap_or_else(|| panic!("the page has no table of {name}")) + open.len();
        let end = start + text[start..].find(&close).unwrap();
        text.replace_range(start..end, &table);
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    assert!(
        text == is || std::env::var_os("BLESS").is_some(),
        "docs/slurm.md is not what the tables say; run this with BLESS=1"
    );
}
