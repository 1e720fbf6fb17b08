//! What the agent finds out about its machine: name, cores, memory, boot and time.

use anyhow::Context;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the machine is, as far as the kernel tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Host name up to its first dot.
    pub hostname: String,
    /// Cores that this process may use.
    pub cores: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// New at every boot.
    pub boot_id: String,
}

impl Facts {
    /// Asks the kernel.
    ///
    /// # Errors
    /// A kernel without /proc.
    pub fn find() -> anyhow::Result<Self> {
        let hostname = nix::unistd::gethostname().context("cannot find out the host's name")?;
        let hostname = hostname.to_string_lossy();
        let memory = std::fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").context("cannot read the boot id")?;
        Ok(Self {
            hostname: hostname.split('.').next().unwrap_or("localhost").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
            memory_mib: total_mib(&memory).context("/proc/meminfo has no MemTotal line")?,
            boot_id: boot.trim().to_owned(),
        })
    }
}

fn total_mib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

/// Milliseconds since 1970-01-01 UTC by this machine's clock.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_is_needed() {
        let facts = Facts::find().unwrap();
        assert!(facts.cores > 0 && facts.memory_mib > 0 && facts.boot_id.len() == 36 && !facts.hostname.is_empty());
        assert_eq!(total_mib("MemFree: 1 kB\nMemTotal:       2097152 kB\n"), Some(2048));
    }
}
