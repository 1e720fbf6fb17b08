//! The table of settings: name, meaning, how it is read and shown.

use super::{Config, LogFormat, OnSchedulingFailure};
use ephor_core::OnFault;
use ephor_model::limits;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// One setting.
pub struct Key {
    /// As in the file; the unit is part of it.
    pub name: &'static str,
    /// What it is for, in one line.
    pub help: &'static str,
    pub(super) set: fn(&mut Config, &Value) -> Result<(), String>,
    /// The value in force, as the file would have it.
    pub show: fn(&Config) -> String,
}

/// Longest span of a setting: ten years.
const LONGEST_S: u64 = 10 * 366 * 86_400;

/// Every setting.
pub const KEYS: &[Key] = &[
    Key {
        name: "cluster_name",
        help: "Name of the cluster, shown to jobs",
        set: |c, v| {
            let name = text(v)?;
            let good = !name.is_empty()
                && name.len() <= limits::NAME_BYTES
                && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
            if !good {
                return Err(format!("'{name}' is no name: use letters, digits and . _ -"));
            }
            c.cluster_name = name;
            Ok(())
        },
        show: |c| quoted(&c.cluster_name),
    },
    Key {
        name: "data_folder",
        help: "Folder of everything durable: state, history, trust; for the controller alone",
        set: |c, v| absolute(v).map(|p| c.data_folder = p),
        show: |c| quoted(&c.data_folder.display().to_string()),
    },
    Key {
        name: "socket_path",
        help: "Socket that users of this machine reach the controller over",
        set: |c, v| absolute(v).map(|p| c.socket_path = p),
        show: |c| quoted(&c.socket_path.display().to_string()),
    },
    Key {
        name: "socket_mode",
        help: "Permission bits of that socket, in octal; who may do what is up to the authentication policy",
        set: |c, v| {
            let mode = text(v)?;
            let bits = u32::from_str_radix(mode.trim_start_matches("0o"), 8).ok().filter(|m| *m <= 0o777);
            c.socket_mode = bits.ok_or_else(|| format!("'{mode}' is no mode: write octal digits such as \"0660\""))?;
            Ok(())
        },
        show: |c| quoted(&format!("{:04o}", c.socket_mode)),
    },
    Key {
        name: "agents_listen",
        help: "Address and port where agents connect, with mutual TLS only; 0.0.0.0 or [::] for all interfaces",
        set: |c, v| address(v).map(|a| c.agents_listen = a),
        show: |c| quoted(&c.agents_listen.to_string()),
    },
    Key {
        name: "agents_address",
        help: "host:port that join tokens name; empty: the address of agents_listen, or this machine's name",
        set: |c, v| {
            let address = text(v)?;
            let port = address.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
            if !address.is_empty() && port.is_none_or(|p| p.parse::<u16>().is_err()) {
                return Err(format!("'{address}' is not host:port"));
            }
            c.agents_address = address;
            Ok(())
        },
        show: |c| quoted(&c.agents_address),
    },
    Key {
        name: "metrics_listen",
        help: "Address and port of the metrics page, in plain text, so keep it on loopback; empty: none",
        set: |c, v| {
            c.metrics_listen = if text(v)?.is_empty() { None } else { Some(address(v)?) };
            Ok(())
        },
        show: |c| quoted(&c.metrics_listen.map(|a| a.to_string()).unwrap_or_default()),
    },
    Key {
        name: "node_silence_s",
        help: "A node that says nothing for so many seconds is down; its jobs are lost, not ended",
        set: |c, v| seconds(v, 1).map(|s| c.node_silence = s),
        show: |c| c.node_silence.as_secs().to_string(),
    },
    Key {
        name: "launch_grace_s",
        help: "Seconds from SIGTERM to SIGKILL when a job is ended",
        set: |c, v| seconds(v, 0).map(|s| c.launch_grace = s),
        show: |c| c.launch_grace.as_secs().to_string(),
    },
    Key {
        name: "min_job_age_s",
        help: "Finished jobs stay in the live state at least so many seconds before they move to the history",
        set: |c, v| seconds(v, 0).map(|s| c.min_job_age = s),
        show: |c| c.min_job_age.as_secs().to_string(),
    },
    Key {
        name: "on_scheduling_failure",
        help: "When no scheduling policy works: builtin (first come, first served) or pause (nothing starts)",
        set: |c, v| {
            c.on_scheduling_failure = match text(v)?.as_str() {
                "builtin" => OnSchedulingFailure::BuiltIn,
                "pause" => OnSchedulingFailure::Pause,
                other => return Err(format!("'{other}' is neither builtin nor pause")),
            };
            Ok(())
        },
        show: |c| {
            quoted(match c.on_scheduling_failure {
                OnSchedulingFailure::BuiltIn => "builtin",
                OnSchedulingFailure::Pause => "pause",
            })
        },
    },
    Key {
        name: "on_gpu_fault",
        help: "Jobs on a GPU that goes bad: keep, requeue, or cancel; the GPU takes no others either way",
        set: |c, v| {
            let said = text(v)?;
            let known = ON_GPU_FAULT.iter().find(|(_, name)| *name == said);
            c.on_gpu_fault = known.ok_or_else(|| format!("'{said}' is neither keep nor requeue nor cancel"))?.0;
            Ok(())
        },
        show: |c| {
            let name = ON_GPU_FAULT.iter().find(|(what, _)| *what == c.on_gpu_fault).map_or("keep", |(_, name)| name);
            quoted(name)
        },
    },
    Key {
        name: "event_retention_mib",
        help: "MiB of past events that are kept in the live store",
        set: |c, v| whole(v, 1, 1 << 20).map(|n| c.event_retention_bytes = n << 20),
        show: |c| (c.event_retention_bytes >> 20).to_string(),
    },
    Key {
        name: "recalculation_period_s",
        help: "All pending jobs get a new priority after so many seconds; 0: at every cycle",
        set: |c, v| seconds(v, 0).map(|s| c.recalculation_period = s),
        show: |c| c.recalculation_period.as_secs().to_string(),
    },
    Key {
        name: "fence_s",
        help: "Agents end their jobs so many seconds after they lost the controller; 0: they let them live",
        set: |c, v| match seconds(v, 0)? {
            s if s.is_zero() => {
                c.fence = s;
                Ok(())
            }
            _ => Err("fencing is not there yet; leave it at 0".into()),
        },
        show: |c| c.fence.as_secs().to_string(),
    },
    Key {
        name: "log_format",
        help: "How log lines look: text or json",
        set: |c, v| {
            c.log_format = match text(v)?.as_str() {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                other => return Err(format!("'{other}' is no format: write text or json")),
            };
            Ok(())
        },
        show: |c| {
            quoted(match c.log_format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            })
        },
    },
    Key {
        name: "log_filter",
        help: "Which log lines are written: error, warn, info, debug, or target=level,...",
        set: |c, v| text(v).map(|t| c.log_filter = t),
        show: |c| quoted(&c.log_filter),
    },
];

const ON_GPU_FAULT: [(OnFault, &str); 3] =
    [(OnFault::Keep, "keep"), (OnFault::Requeue, "requeue"), (OnFault::Cancel, "cancel")];

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.contains('\0') => Ok(text.clone()),
        other => Err(format!("{other} is not a text; write it in quotes")),
    }
}

fn absolute(value: &Value) -> Result<PathBuf, String> {
    let path = PathBuf::from(text(value)?);
    match path.is_absolute() {
        true => Ok(path),
        false => Err(format!("'{}' is not an absolute path", path.display())),
    }
}

fn address(value: &Value) -> Result<SocketAddr, String> {
    let text = text(value)?;
    text.parse().map_err(|_| format!("'{text}' is not an IP address and port such as 127.0.0.1:7117 or [::]:7117"))
}

fn whole(value: &Value, least: u64, most: u64) -> Result<u64, String> {
    let number = value.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| format!("{value} is not a whole number from {least} to {most}"))
}

fn seconds(value: &Value, least: u64) -> Result<Duration, String> {
    whole(value, least, LONGEST_S).map(Duration::from_secs)
}
