//! What `ephor config check` prints: every value in force with its meaning, and what would keep it from working.

use super::{Config, DEFAULT_FILE, KEYS};
use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Bytes of a socket's path, as the kernel bounds them.
pub(crate) const SOCKET_PATH_BYTES: usize = 107;

/// One setting in force.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Its key.
    pub name: &'static str,
    /// Its value, as the file would have it.
    pub value: String,
    /// Whether the file says so; else it is the default.
    pub from_file: bool,
    /// What it is for.
    pub help: &'static str,
}

/// The outcome of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Every setting.
    pub settings: Vec<Setting>,
    /// What is wrong and what would work; empty: the controller would start.
    pub problems: Vec<String>,
    /// What is allowed and yet perhaps not meant.
    pub remarks: Vec<String>,
}

impl Report {
    /// As people read it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let width = self.settings.iter().map(|s| s.name.len() + s.value.len() + 3).max().unwrap_or(0);
        for Setting { name, value, from_file, help } in &self.settings {
            let setting = format!("{name} = {value}");
            let origin = if *from_file { "file   " } else { "default" };
            // Writing into a String cannot fail.
            let _ = writeln!(out, "{setting:width$}  # {origin}  {help}");
        }
        for problem in &self.problems {
            let _ = writeln!(out, "error: {problem}");
        }
        for remark in &self.remarks {
            let _ = writeln!(out, "note: {remark}");
        }
        if self.problems.is_empty() {
            out.push_str("the controller would start with these settings\n");
        }
        out
    }
}

/// Checks a file, or what would be used without one. Changes nothing.
pub fn check(file: Option<&Path>) -> Report {
    let mut report = Report::default();
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if file.is_none() && e.kind() == std::io::ErrorKind::NotFound => {
            report.remarks.push(format!("{DEFAULT_FILE} is not there; these are the defaults"));
            String::new()
        }
        Err(e) => {
            report.problems.push(format!("{}: {e}", path.display()));
            return report;
        }
    };
    let config = match Config::read(&text) {
        Ok((config, problems)) => {
            report.problems.extend(problems.into_iter().map(|p| format!("{}: {p}", path.display())));
            config
        }
        Err(e) => {
            report.problems.push(format!("{}: {}", path.display(), e.to_string().trim_end()));
            return report;
        }
    };
    let given: toml::Table = toml::from_str(&text).unwrap_or_default();
    for key in KEYS {
        let (from_file, value) = (given.contains_key(key.name), (key.show)(&config));
        report.settings.push(Setting { name: key.name, value, from_file, help: key.help });
    }
    report.problems.extend(surroundings(&config));
    if config.agents_listen.ip().is_loopback() {
        report.remarks.push("agents_listen is on loopback: agents of other machines cannot connect".into());
    }
    if config.metrics_listen.is_some_and(|a| !a.ip().is_loopback()) {
        report.remarks.push("metrics_listen is not on loopback: everybody who reaches it reads job counts".into());
    }
    report
}

/// What around the settings would keep a controller from starting.
fn surroundings(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(why) = folder_writable(&config.data_folder) {
        problems.push(format!("data_folder: {why}"));
    }
    if let Err(why) = socket_usable(&config.socket_path) {
        problems.push(format!("socket_path: {why}"));
    }
    let ports = [("agents_listen", Some(config.agents_listen)), ("metrics_listen", config.metrics_listen)];
    for (key, address) in ports {
        if let Some(address) = address
            && let Err(e) = TcpListener::bind(address)
        {
            problems.push(format!("{key}: {}", port_text(address, &e)));
        }
    }
    if config.metrics_listen.is_some_and(|m| m.port() == config.agents_listen.port() && m.port() != 0) {
        problems.push("metrics_listen: it has the port of agents_listen; choose another".into());
    }
    problems
}

/// Why an address cannot be listened on.
pub(crate) fn port_text(address: SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("port {} of {} is in use; stop what listens there, or choose another", address.port(), address.ip())
        }
        std::io::ErrorKind::AddrNotAvailable => {
            format!("{} is not an address of this machine; 0.0.0.0 or [::] means all of its", address.ip())
        }
        _ => format!("{address}: {error}"),
    }
}

fn folder_writable(path: &Path) -> Result<(), String> {
    let Some(there) = path.ancestors().find(|p| p.exists()) else {
        return Err(format!("{} has no folder above it", path.display()));
    };
    if !there.is_dir() {
        return Err(format!("{} is not a folder", there.display()));
    }
    access(there, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|_| {
        format!("{} cannot be written by this user; name another folder or run as its owner", there.display())
    })
}

/// Whether a socket can be made there.
///
/// # Errors
/// In words.
pub(crate) fn socket_usable(path: &Path) -> Result<(), String> {
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_BYTES {
        let shown = path.display();
        return Err(format!("'{shown}' has {length} bytes; a socket's path may have {SOCKET_PATH_BYTES}"));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(format!(
            "somebody listens on {} already; stop that controller, or choose another path",
            path.display()
        ));
    }
    match path.parent() {
        Some(folder) => folder_writable(folder),
        None => Err("it names no file".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_names_everything_that_would_fail() {
        let dir = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let file = dir.path().join("c.toml");
        let long = format!("{}/{}", dir.path().display(), "x".repeat(120));
        let text = format!(
            "data_folder = \"{}/c.toml/d\"\nsocket_path = \"{long}\"\nagents_listen = \"{}\"\nclustername = \"x\"\n",
            dir.path().display(),
            taken.local_addr().unwrap()
        );
        std::fs::write(&file, text).unwrap();
        let shown = check(Some(&file)).to_text();
        for part in ["is not a folder", "may have 107", "is in use", "nearest is 'cluster_name'", "launch_grace_s = 30"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn a_good_file_would_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let folder = dir.path().display();
        let text =
            format!("data_folder = \"{folder}/data\"\nsocket_path = \"{folder}/s\"\nagents_listen = \"127.0.0.1:0\"\n");
        std::fs::write(&file, text).unwrap();
        let report = check(Some(&file));
        assert_eq!(report.problems, Vec::<String>::new());
        assert!(report.to_text().contains("would start"));
        assert!(check(Some(Path::new("/nowhere/x"))).problems[0].contains("/nowhere/x"));
    }
}
