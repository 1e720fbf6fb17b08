//! Variables by which a job learns what was asked for. What was granted is told to it by the controller.

use ephor_model::submit::{Given, JobOption};

/// Options, and the variable that repeats the value.
const REPEATED: &[(JobOption, &str)] = &[
    (JobOption::CpusPerTask, "SLURM_CPUS_PER_TASK"),
    (JobOption::CpusPerGpu, "SLURM_CPUS_PER_GPU"),
    (JobOption::MemPerGpu, "SLURM_MEM_PER_GPU"),
    (JobOption::Gpus, "SLURM_GPUS"),
    (JobOption::GpusPerNode, "SLURM_GPUS_PER_NODE"),
    (JobOption::GpusPerTask, "SLURM_GPUS_PER_TASK"),
    (JobOption::TasksPerGpu, "SLURM_NTASKS_PER_GPU"),
    (JobOption::Export, "SLURM_EXPORT_ENV"),
];

/// Adds the variables of all options, the last of each counting.
pub fn add<'a>(environment: &mut Vec<u8>, options: impl Iterator<Item = &'a Given> + Clone, work_dir: &str) {
    for (option, variable) in REPEATED {
        let last = options.clone().filter(|given| given.option == *option).last();
        if let Some(value) = last.and_then(|given| given.value.as_deref()) {
            // Memory travels with its unit, and is told in MiB.
            put(
                environment,
                variable,
                if *option == JobOption::MemPerGpu { value.trim_end_matches('M') } else { value },
            );
        }
    }
    put(environment, "SLURM_SUBMIT_DIR", work_dir);
}

/// Sets a variable among NUL-ended entries.
pub fn put(environment: &mut Vec<u8>, name: &str, value: &str) {
    let mut out = Vec::with_capacity(environment.len() + name.len() + value.len() + 2);
    let is_other = |entry: &&[u8]| entry.strip_prefix(name.as_bytes()).is_none_or(|rest| rest.first() != Some(&b'='));
    for entry in environment.split_inclusive(|byte| *byte == 0).filter(is_other) {
        out.extend_from_slice(entry);
    }
    out.extend_from_slice(format!("{name}={value}\0").as_bytes());
    *environment = out;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_once() {
        let mut environment = b"A=1\0AB=2\0".to_vec();
        put(&mut environment, "A", "x=y");
        put(&mut environment, "C", "");
        assert_eq!(environment, b"AB=2\0A=x=y\0C=\0");
    }
}
