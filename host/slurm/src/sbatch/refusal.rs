//! The line of Slurm that clients know for a refusal of the controller.

use ephor_model::JobSpec;

/// Finds it by what the job asks for and what the refusal speaks of.
pub fn known(spec: &JobSpec, why: &str) -> &'static str {
    let speaks = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if speaks(&["licence"]) && !spec.licences.is_empty() {
        "Invalid license specification"
    } else if speaks(&["account"]) {
        "Invalid account or account/partition combination specified"
    } else if speaks(&["QOS", "qos"]) {
        "Invalid qos specification"
    } else if speaks(&["reservation"]) && spec.reservation.is_some() {
        "Requested reservation is invalid"
    } else if speaks(&["depend", "no job"]) && !spec.dependencies.is_empty() {
        "Job dependency problem"
    } else if speaks(&["time limit", "deadline"]) {
        "Requested time limit is invalid (missing or exceeds some limit)"
    } else if speaks(&["array"]) && spec.array.is_some() {
        "Invalid job array specification"
    } else if speaks(&["is closed", "takes no jobs"]) {
        "Required partition not available (inactive or drain)"
    } else if speaks(&["unfinished jobs", "limit"]) {
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    } else if speaks(&["node", "core", "GPU", "memory"]) {
        "Requested node configuration is not available"
    } else {
        "Unspecified error"
    }
}
