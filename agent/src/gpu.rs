//! The GPUs of this node, and what a job sees of them. The only place that knows how GPUs are found.

use ephor_proto::v1;
use serde::{Deserialize, Serialize};

/// One GPU as the agent's configuration names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Type as requests name it, such as `h100`.
    pub kind: String,
    /// Identity that survives a reboot, as the driver's tools print it.
    pub uuid: String,
    /// Memory in MiB.
    pub mem_mib: i64,
    /// NUMA node, -1 where unknown.
    #[serde(default = "unknown_numa")]
    pub numa: i32,
}

fn unknown_numa() -> i32 {
    -1
}

/// The GPUs to register, in the order of their index.
pub fn devices(gpus: &[Gpu]) -> Vec<v1::Device> {
    gpus.iter()
        .map(|g| v1::Device {
            kind: g.kind.clone(),
            uuid: g.uuid.clone(),
            mem_mib: g.mem_mib,
            numa: g.numa,
            used: false,
            held: 0,
        })
        .collect()
}

/// The environment entry that shows an attempt its GPUs and hides the others; none on a node without GPUs.
///
/// # Errors
/// An index that the node does not have.
pub fn visible(gpus: &[Gpu], held: &[u32]) -> Result<Option<String>, String> {
    if gpus.is_empty() && held.is_empty() {
        return Ok(None);
    }
    let uuids = held
        .iter()
        .map(|i| {
            let gpu = gpus.get(*i as usize);
            gpu.map(|g| g.uuid.as_str()).ok_or_else(|| format!("GPU {i} is not on this node, which has {}", gpus.len()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Some(format!("CUDA_VISIBLE_DEVICES={}", uuids.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_sees_its_gpus_by_uuid_and_no_others() {
        let gpu = |uuid: &str| Gpu { kind: "h100".into(), uuid: uuid.into(), mem_mib: 81_559, numa: -1 };
        let gpus = [gpu("GPU-a"), gpu("GPU-b"), gpu("GPU-c")];
        assert_eq!(visible(&gpus, &[2, 0]), Ok(Some("CUDA_VISIBLE_DEVICES=GPU-c,GPU-a".into())));
        assert_eq!(visible(&gpus, &[]), Ok(Some("CUDA_VISIBLE_DEVICES=".into())));
        assert_eq!(visible(&[], &[]), Ok(None));
        assert!(visible(&gpus, &[3]).unwrap_err().contains("which has 3"));
    }
}
