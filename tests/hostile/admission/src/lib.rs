//! Misbehaves in the role admission as its configuration says.

use ephor_sdk::admission::{Admission, Draft, Gpus, Intent, Memory, Site, Verdict};
use ephor_sdk::{Identity, Timestamp};
use hostile_faults::{Config, FLOOD_BYTES, Fault, HUGE_STRING_BYTES, text};

/// The policy.
pub struct Hostile;

impl Admission for Hostile {
    type Config = Config;

    fn admit<D: Draft, S: Site>(
        _now: Timestamp,
        _who: &Identity,
        _intent: Intent,
        job: &D,
        _site: &S,
        config: &Config,
    ) -> Verdict {
        match config.strike("admit", true) {
            Fault::Flood => Verdict::Admit(vec![text(1_024); FLOOD_BYTES / 1_024]),
            Fault::HugeString => {
                let _ = job.set_comment(Some(&text(HUGE_STRING_BYTES)));
                Verdict::Refuse(text(HUGE_STRING_BYTES))
            }
            Fault::WrongValues => {
                out_of_range(job);
                Verdict::Admit(Vec::new())
            }
            Fault::ChangeThenTrap => {
                change(job);
                panic!("changed the job, and panics on purpose")
            }
            Fault::ChangeThenRefuse => {
                change(job);
                Verdict::Refuse("changed the job, and refuses it".to_owned())
            }
            _ => Verdict::Admit(Vec::new()),
        }
    }
}

/// Changes that are all within the limits.
fn change<D: Draft>(job: &D) {
    let _ = job.set_comment(Some("changed"));
    let _ = job.set_nice(100);
    let _ = job.set_hold(true);
    let _ = job.set_time_limit(Some(60_000));
}

/// Values that no setter should take.
fn out_of_range<D: Draft>(job: &D) {
    let _ = job.set_queue("no such queue\n\0");
    let _ = job.set_account("");
    let _ = job.set_time_limit(Some(-1));
    let _ = job.set_time_limit(Some(i64::MAX));
    let _ = job.set_nodes(u32::MAX, Some(1));
    let _ = job.set_nodes(0, Some(0));
    let _ = job.set_tasks(0);
    let _ = job.set_tasks(u32::MAX);
    let _ = job.set_cpus_per_task(0);
    let _ = job.set_cpus_per_task(u32::MAX);
    let _ = job.set_memory(&Memory::PerCpu(u64::MAX));
    let _ = job.set_memory(&Memory::Other("all".to_owned()));
    let _ = job.set_gpus(&Gpus::PerTask(u32::MAX), &["\0".to_owned()]);
    let _ = job.set_features(&vec![String::new(); 100_000]);
    let _ = job.set_nice(i64::MIN);
}

ephor_sdk::policy!(Admission for Hostile { manifest: include_str!("../manifest.json") });
