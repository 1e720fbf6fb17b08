//! Settings of the controller's process: a TOML file in which every key has a default and an unknown key is an error.

mod check;
mod keys;

pub use check::{Report, Setting, check};
pub(crate) use check::{SOCKET_PATH_BYTES, port_text, socket_usable};
pub use keys::{KEYS, Key};

use ephor_core::OnFault;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the file is looked for when none is named.
pub const DEFAULT_FILE: &str = "/etc/ephor/controller.toml";

/// What happens when no scheduling policy works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSchedulingFailure {
    /// The host's own first-come-first-served goes on.
    BuiltIn,
    /// Nothing starts until a good generation is there.
    Pause,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The effective settings. See [`KEYS`] for what each is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the cluster.
    pub cluster_name: String,
    /// Folder of everything durable.
    pub data_folder: PathBuf,
    /// The socket that users reach the controller over.
    pub socket_path: PathBuf,
    /// Its permission bits.
    pub socket_mode: u32,
    /// Where agents connect to, with mutual TLS.
    pub agents_listen: SocketAddr,
    /// `host:port` that join tokens name; empty: `agents_listen`.
    pub agents_address: String,
    /// Where the metrics page is served; `None`: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// A node that says nothing for so long is down.
    pub node_silence: Duration,
    /// SIGTERM to SIGKILL.
    pub launch_grace: Duration,
    /// Finished jobs stay in the live state at least that long.
    pub min_job_age: Duration,
    /// What happens when no scheduling policy works.
    pub on_scheduling_failure: OnSchedulingFailure,
    /// What becomes of jobs on a GPU that goes bad.
    pub on_gpu_fault: OnFault,
    /// Bytes of events that are kept.
    pub event_retention_bytes: u64,
    /// All pending jobs get a new priority after this long.
    pub recalculation_period: Duration,
    /// Agents end their jobs so long after they lost the controller; zero: never.
    pub fence: Duration,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written, as a filter.
    pub log_filter: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster_name: "ephor".into(),
            data_folder: "/var/lib/ephor".into(),
            socket_path: "/run/ephor/ephor.sock".into(),
            socket_mode: 0o666,
            agents_listen: SocketAddr::from(([127, 0, 0, 1], 7117)),
            agents_address: String::new(),
            metrics_listen: None,
            node_silence: Duration::from_secs(60),
            launch_grace: Duration::from_secs(30),
            min_job_age: Duration::from_secs(300),
            on_scheduling_failure: OnSchedulingFailure::BuiltIn,
            on_gpu_fault: OnFault::Keep,
            event_retention_bytes: 256 << 20,
            recalculation_period: Duration::from_secs(60),
            fence: Duration::ZERO,
            log_format: LogFormat::Text,
            log_filter: "info".into(),
        }
    }
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no TOML.
    #[error("{}: {text}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// With line and column.
        text: String,
    },
    /// Keys that are unknown or have values that make no sense.
    #[error("{}:\n  {}", path.display(), problems.join("\n  "))]
    Keys {
        /// The file.
        path: PathBuf,
        /// One line for each.
        problems: Vec<String>,
    },
}

impl Config {
    /// Reads a file; without one, [`DEFAULT_FILE`] where it is there, else the defaults.
    ///
    /// # Errors
    /// See [`ConfigError`]; all wrong keys are named at once.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let path = match file {
            Some(path) => path,
            None if Path::new(DEFAULT_FILE).exists() => Path::new(DEFAULT_FILE),
            None => return Ok(Self::default()),
        };
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let (config, problems) = Self::read(&text)
            .map_err(|e| ConfigError::Syntax { path: path.to_owned(), text: e.to_string().trim_end().to_owned() })?;
        match problems.is_empty() {
            true => Ok(config),
            false => Err(ConfigError::Keys { path: path.to_owned(), problems }),
        }
    }

    /// Reads a text: the settings as far as they make sense, and a line for each key that does not.
    ///
    /// # Errors
    /// The text is no TOML.
    pub fn read(text: &str) -> Result<(Self, Vec<String>), toml::de::Error> {
        let table: toml::Table = toml::from_str(text)?;
        let mut config = Self::default();
        let mut problems = Vec::new();
        for (name, value) in &table {
            let outcome = match KEYS.iter().find(|key| key.name == name) {
                Some(key) => (key.set)(&mut config, value).map_err(|why| format!("{name}: {why}")),
                None => Err(format!("{name}: there is no such key; the nearest is '{}'", nearest(name))),
            };
            if let Err(why) = outcome {
                let line = text.lines().position(|l| l.trim_start().trim_start_matches('[').starts_with(name.as_str()));
                problems.push(line.map_or_else(|| why.clone(), |n| format!("line {}: {why}", n + 1)));
            }
        }
        Ok((config, problems))
    }

    /// `host:port` that agents are told to connect to.
    pub fn advertised_address(&self) -> String {
        if !self.agents_address.is_empty() {
            return self.agents_address.clone();
        }
        let listen = self.agents_listen;
        match listen.ip().is_unspecified() {
            // An address that means "all of mine" means nothing elsewhere.
            true => {
                let name = nix::unistd::gethostname().ok().and_then(|n| n.into_string().ok());
                format!("{}:{}", name.as_deref().unwrap_or("localhost"), listen.port())
            }
            false => listen.to_string(),
        }
    }
}

fn nearest(name: &str) -> &'static str {
    let best = KEYS.iter().min_by_key(|key| distance(name, key.name));
    best.map_or("", |key| key.name)
}

/// How many letters must be changed, added or left out to get from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(100).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_their_defaults_stand() {
        let text = "cluster_name = \"c1\"\nnode_silence_s = 5\nmetrics_listen = \"127.0.0.1:9\"\nsocket_mode = \"0660\"\n\
                    on_scheduling_failure = \"pause\"\n";
        let (config, problems) = Config::read(text).unwrap();
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(config.cluster_name, "c1");
        assert_eq!(config.node_silence, Duration::from_secs(5));
        assert_eq!(config.socket_mode, 0o660);
        assert_eq!(config.on_scheduling_failure, OnSchedulingFailure::Pause);
        assert_eq!(config.launch_grace, Config::default().launch_grace);
    }

    #[test]
    fn wrong_keys_are_all_named_with_what_would_work() {
        let (_, problems) = Config::read(
            "node_silense_s = 5\nlaunch_grace_s = \"x\"\nagents_listen = \"here\"\nlog_format = \"xml\"\n[extra]\na = 1\n",
        )
        .unwrap();
        let all = problems.join("\n");
        for part in ["node_silence_s", "line 2: launch_grace_s", "address and port", "text or json", "extra"] {
            assert!(all.contains(part), "{part} in {all}");
        }
        assert_eq!(problems.len(), 5);
        assert!(Config::read("a = ").is_err());
    }

    #[test]
    fn what_a_key_shows_can_be_read_back() {
        let config = Config::default();
        let text: String = KEYS.iter().map(|k| format!("{} = {}\n", k.name, (k.show)(&config))).collect();
        assert_eq!(Config::read(&text).unwrap(), (config, Vec::new()));
    }
}
