//! Fills in what a job left open, and refuses what can never run.
//!
//! Filled: the queue (the default one, or the only one), the account (the user's default, else the site's), the time
//! limit (the queue's default, else its maximum, else the site's default), memory for each core (the queue's default,
//! else the site's), and whether the job may be requeued. Refused, each with the limit, the numbers and what would
//! work: unknown and closed queues, accounts that the user may not use, time and nodes over the queue's maximum, more
//! unfinished jobs than a user may have, and jobs that no set of nodes could ever run.

mod text;

use ephor_sdk::admission::{Admission, Draft, Intent, Memory, QueueInfo, Site, Verdict};
use ephor_sdk::{Duration, Identity, Timestamp};
use serde::Deserialize;

/// Milliseconds of a minute.
const MINUTE: Duration = 60_000;

/// What a site may set.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Account of jobs whose user names none and has no default account.
    pub default_account: String,
    /// Time limit in minutes where neither job nor queue say more.
    pub default_time_minutes: u32,
    /// MiB for each core where neither job nor queue say more; 0: none is set.
    pub default_mem_per_cpu_mib: u64,
    /// Whether jobs that do not say so run again after a failure of their node.
    pub requeue: bool,
    /// Most unfinished jobs of a user; each element of an array counts.
    pub max_live_jobs_per_user: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            default_account: "default".to_owned(),
            default_time_minutes: 60,
            default_mem_per_cpu_mib: 0,
            requeue: true,
            max_live_jobs_per_user: 100_000,
        }
    }
}

/// The policy.
pub struct Defaults;

impl Admission for Defaults {
    type Config = Config;

    fn admit<D: Draft, S: Site>(
        _now: Timestamp,
        who: &Identity,
        intent: Intent,
        job: &D,
        site: &S,
        config: &Config,
    ) -> Verdict {
        match decide(who, intent, job, site, config) {
            Ok(lines) => Verdict::Admit(lines),
            Err(why) => Verdict::Refuse(why),
        }
    }
}

/// Fills and checks; the lines for the user, or the refusal.
fn decide<D: Draft, S: Site>(
    who: &Identity,
    intent: Intent,
    job: &D,
    site: &S,
    config: &Config,
) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let queue = queue(intent, job, site)?;
    account(who, intent, job, site, config)?;
    time(job, &queue, config)?;
    nodes(job, &queue, &mut lines)?;
    memory(job, &queue, config)?;
    if job.requeue().is_none() {
        job.set_requeue(Some(config.requeue))?;
    }
    if intent == Intent::Submit {
        live_jobs(who, job, site, config)?;
    }
    match job.never_runs() {
        Some(why) => Err(format!("{why}; ask for less, or look at what there is with `ephor node list`")),
        None => Ok(lines),
    }
}

fn queue<D: Draft, S: Site>(intent: Intent, job: &D, site: &S) -> Result<QueueInfo, String> {
    let named = job.queue();
    let info = if named.is_empty() {
        let info = default_queue(site)?;
        job.set_queue(&info.name)?;
        info
    } else {
        let Some(info) = site.queue(&named) else {
            return Err(format!("there is no queue {named:?}; {}", text::queues(&site.queues())));
        };
        info
    };
    // A job that is in a queue already may still be changed after the queue was closed.
    let stays = intent == Intent::Modify && job.current().is_some_and(|current| current.queue() == info.name);
    if !info.takes && !stays {
        return Err(format!("queue {:?} is closed to new jobs; {}", info.name, text::open_queues(site)));
    }
    Ok(info)
}

/// The queue of jobs that name none: the default one, or the only one.
fn default_queue<S: Site>(site: &S) -> Result<QueueInfo, String> {
    if let Some(info) = site.default_queue() {
        return Ok(info);
    }
    let queues = site.queues();
    match queues.as_slice() {
        [] => Err("there are no queues; an operator makes one with `ephor queue create NAME`".to_owned()),
        [only] => site.queue(only).ok_or_else(|| format!("queue {only:?} has just gone; submit again")),
        _ => Err(format!("no queue is named, and none is the default; {}", text::queues(&queues))),
    }
}

fn account<D: Draft, S: Site>(
    who: &Identity,
    intent: Intent,
    job: &D,
    site: &S,
    config: &Config,
) -> Result<(), String> {
    let (named, owner) = (job.account(), job.owner());
    if named.is_empty() {
        let own = site.default_account(owner);
        return job.set_account(own.as_deref().unwrap_or(&config.default_account));
    }
    let stays = intent == Intent::Modify && job.current().is_some_and(|current| current.account() == named);
    if stays || named == config.default_account || site.may_use_account(owner, &named) {
        return Ok(());
    }
    let (user, whose) = match owner == who.uid {
        true => (who.name.clone(), "your"),
        false => (format!("the owner of the job (uid {owner})"), "their"),
    };
    let instead = match site.default_account(owner) {
        Some(own) => format!("{whose} default account is {own:?}"),
        None => "leave the account out, or ask an operator".to_owned(),
    };
    Err(format!("{user} may not use account {named:?}, or there is none of that name; {instead}"))
}

fn time<D: Draft>(job: &D, queue: &QueueInfo, config: &Config) -> Result<(), String> {
    match (job.time_limit(), queue.max_time) {
        (None, max) => {
            let site = Duration::from(config.default_time_minutes) * MINUTE;
            let limit = queue.default_time.or(max).unwrap_or(site);
            job.set_time_limit(Some(limit))
        }
        (Some(asked), Some(max)) if asked > max => Err(format!(
            "a time limit of {} is over the {} that queue {:?} allows; ask for at most {}",
            text::duration(asked),
            text::duration(max),
            queue.name,
            text::duration(max)
        )),
        _ => Ok(()),
    }
}

fn nodes<D: Draft>(job: &D, queue: &QueueInfo, lines: &mut Vec<String>) -> Result<(), String> {
    let Some(limit) = queue.max_nodes else { return Ok(()) };
    let (min, max) = (job.nodes_min(), job.nodes_max());
    if min > limit {
        return Err(format!(
            "{min} nodes are over the {limit} that queue {:?} allows one job; ask for at most {limit}",
            queue.name
        ));
    }
    if let Some(max) = max
        && max > limit
    {
        job.set_nodes(min, Some(limit))?;
        lines.push(format!("at most {limit} nodes instead of {max}: more is over the limit of queue {:?}", queue.name));
    }
    Ok(())
}

fn memory<D: Draft>(job: &D, queue: &QueueInfo, config: &Config) -> Result<(), String> {
    if job.memory() != Memory::Unset {
        return Ok(());
    }
    match queue.default_mem_per_cpu.unwrap_or(config.default_mem_per_cpu_mib) {
        0 => Ok(()),
        mib => job.set_memory(&Memory::PerCpu(mib)),
    }
}

fn live_jobs<D: Draft, S: Site>(who: &Identity, job: &D, site: &S, config: &Config) -> Result<(), String> {
    let (live, more, most) = (site.live_jobs(who.uid), job.elements(), config.max_live_jobs_per_user);
    if u64::from(live) + u64::from(more) <= u64::from(most) {
        return Ok(());
    }
    let room = most.saturating_sub(live);
    Err(format!(
        "{} has {live} unfinished jobs, and {more} more would be over the {most} that each user may have (elements of \
         arrays count); there is room for {room} now: wait until some have finished, or cancel some",
        who.name
    ))
}

ephor_sdk::policy!(Admission for Defaults { manifest: include_str!("../manifest.json") });

#[cfg(test)]
mod tests;
