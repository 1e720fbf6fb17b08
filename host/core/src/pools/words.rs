//! Limits in words for people, and the reason codes that Slurm's clients know.

use super::{Draw, Metric, Pool, Scope, name_of_resource};
use crate::records::Job;
use crate::state::State;
use ephor_model::{Owner, ReasonCode, ResourceId, Span, Uid};

impl Pool {
    /// Why that job waits for this pool.
    pub fn why(&self, state: &State, job: &Job) -> (ReasonCode, String) {
        let (used, most, asked) = (self.used, self.ceiling, Draw::asked(job).of(self.metric));
        let whose = whose(state, self.scope, Some(&job.spec.owner));
        let text = match (self.scope, self.metric) {
            (Scope::Licence(id), _) => {
                let name = state.licences.get(&id).map_or_else(|| "?".to_owned(), |l| l.name.clone());
                format!("of {most} licences '{name}' {used} are in use, and the job asks for {asked}")
            }
            (_, Metric::InUse(id)) => {
                let show = |n| amount(state, id, n);
                let (most, used, asked) = (show(most), show(used), show(asked));
                format!("{whose} may use {most} at a time and uses {used}; the job asks for {asked}")
            }
            (_, Metric::Minutes(id)) => {
                let show = |n| format!("{} for a minute", amount(state, id, n));
                let (most, used, asked) = (show(most), show(used), show(asked));
                format!(
                    "{whose} may be granted as much as {most} at a time and was granted {used}; the job adds {asked}"
                )
            }
            (_, Metric::Wall) => {
                let clock = |ms| Span(ms).to_clock();
                format!("{whose} may ask for a time limit of at most {}; the job has {}", clock(most), clock(asked))
            }
            (_, Metric::Running | Metric::Submitted) => {
                format!("{whose} may have {most} jobs running at a time and has {used}")
            }
        };
        (code(self.scope, self.metric), text)
    }

    /// Whose jobs count in this pool, in words.
    pub fn whose(&self, state: &State) -> String {
        whose(state, self.scope, None)
    }

    /// What of them counts: `running`, `submitted`, `wall`, a resource, or a resource and `-minutes`.
    pub fn what(&self, state: &State) -> String {
        match self.metric {
            Metric::Submitted => "submitted".into(),
            Metric::Running => "running".into(),
            Metric::Wall => "wall".into(),
            Metric::InUse(id) => name_of_resource(state, id),
            Metric::Minutes(id) => format!("{}-minutes", name_of_resource(state, id)),
        }
    }
}

pub(super) fn submitted(state: &State, job: &Job, scope: Scope, used: i64, most: i64, more: u32) -> String {
    let whose = whose(state, scope, Some(&job.spec.owner));
    let adds = if more == 1 { String::new() } else { format!("; this array adds {more}") };
    format!("{whose} may have {most} jobs waiting or running and has {used}{adds}")
}

pub(super) fn wall(state: &State, job: &Job, scope: Scope, most: i64) -> String {
    let (whose, most) = (whose(state, scope, Some(&job.spec.owner)), Span(most).to_clock());
    let asked = job.spec.time_limit.map_or_else(|| "; the job has none".into(), |l| format!(", not {}", l.to_clock()));
    format!("{whose} may ask for a time limit of at most {most}{asked}")
}

fn whose(state: &State, scope: Scope, owner: Option<&Owner>) -> String {
    let user = |uid| user(state, uid, owner);
    let queue = |id| state.queues.get(&id).map_or_else(|| "a queue".into(), |q| format!("queue '{}'", q.name));
    let account = |id| state.accounts.get(&id).map_or_else(|| "an account".into(), |a| format!("account '{}'", a.name));
    let qos = |id| state.qos.get(&id).map_or_else(|| "a QOS".into(), |q| format!("QOS '{}'", q.name));
    match scope {
        Scope::Queue(id) => queue(id),
        Scope::QueueUser(id, uid) => format!("{} in {}", user(uid), queue(id)),
        Scope::Account(id) => account(id),
        Scope::AccountUser(id, uid) => format!("{} in {}", user(uid), account(id)),
        Scope::User(uid) => user(uid),
        Scope::Qos(id) => qos(id),
        Scope::QosUser(id, uid) => format!("{} in {}", user(uid), qos(id)),
        Scope::QosAccount(id, a) => format!("{} in {}", account(a), qos(id)),
        Scope::Reservation(no) => format!("reservation '{}'", state.reservations.get(&no).map_or("?", |r| &r.name)),
        Scope::Licence(id) => format!("licence '{}'", state.licences.get(&id).map_or("?", |l| &l.name)),
    }
}

fn user(state: &State, uid: Uid, owner: Option<&Owner>) -> String {
    let known = state.users.get(&uid).map(|u| &u.name).or_else(|| owner.filter(|o| o.uid == uid).map(|o| &o.name));
    known.map_or_else(|| format!("user {uid}"), |name| format!("user '{name}'"))
}

fn amount(state: &State, id: ResourceId, n: i64) -> String {
    let thousandths = |what: &str| {
        let part = if n % 1000 == 0 { String::new() } else { format!(".{:03}", n % 1000) };
        format!("{}{} {what}{}", n / 1000, part.trim_end_matches('0'), if n == 1000 { "" } else { "s" })
    };
    match id {
        ResourceId::CPU => thousandths("core"),
        ResourceId::GPU => thousandths("GPU"),
        ResourceId::MEM => format!("{n} MiB of memory"),
        ResourceId::GPU_MEM => format!("{n} MiB of GPU memory"),
        ResourceId::NODE => format!("{n} node{}", if n == 1 { "" } else { "s" }),
        _ => format!("{n} of {}", name_of_resource(state, id)),
    }
}

/// The code that Slurm has for it. Its queues have no limits of their own but a QOS's; so theirs are called like that.
fn code(scope: Scope, metric: Metric) -> ReasonCode {
    use ReasonCode as R;
    let association = matches!(scope, Scope::Account(_) | Scope::AccountUser(..) | Scope::User(_));
    match (scope, metric) {
        (Scope::Licence(_), _) => R::Licenses,
        (Scope::Reservation(_), _) => R::Reservation,
        (_, Metric::Wall) if association => R::AssocMaxWallDurationPerJobLimit,
        (_, Metric::Wall) => R::QOSMaxWallDurationPerJobLimit,
        (Scope::Account(_), Metric::Running | Metric::Submitted) => R::AssocGrpJobsLimit,
        (_, Metric::Running | Metric::Submitted) if association => R::AssocMaxJobsLimit,
        (_, Metric::InUse(id)) if association => match id {
            ResourceId::CPU => R::AssocGrpCpuLimit,
            ResourceId::MEM => R::AssocGrpMemLimit,
            ResourceId::NODE => R::AssocGrpNodeLimit,
            ResourceId::GPU | ResourceId::GPU_MEM => R::AssocGrpGRES,
            _ => R::AssocGrpLicense,
        },
        (_, Metric::Minutes(id)) if association => match id {
            ResourceId::CPU => R::AssocGrpCPURunMinutesLimit,
            ResourceId::MEM => R::AssocGrpMemRunMinutes,
            ResourceId::NODE => R::AssocGrpNodeRunMinutes,
            _ => R::AssocGrpGRESRunMinutes,
        },
        (Scope::QosUser(..) | Scope::QueueUser(..), Metric::Running | Metric::Submitted) => R::QOSMaxJobsPerUserLimit,
        (Scope::QosUser(..) | Scope::QueueUser(..), Metric::InUse(id)) => match id {
            ResourceId::CPU => R::QOSMaxCpuPerUserLimit,
            ResourceId::MEM => R::QOSMaxMemoryPerUser,
            ResourceId::NODE => R::QOSMaxNodePerUserLimit,
            ResourceId::GPU | ResourceId::GPU_MEM => R::QOSMaxGRESPerUser,
            _ => R::QOSGrpLicense,
        },
        (Scope::QosAccount(..), Metric::Running | Metric::Submitted) => R::MaxJobsPerAccount,
        (Scope::QosAccount(..), Metric::InUse(id)) => match id {
            ResourceId::CPU => R::MaxCpuPerAccount,
            ResourceId::MEM => R::MaxMemoryPerAccount,
            ResourceId::NODE => R::MaxNodePerAccount,
            ResourceId::GPU | ResourceId::GPU_MEM => R::MaxGRESPerAccount,
            _ => R::QOSGrpLicense,
        },
        (_, Metric::Running | Metric::Submitted) => R::QOSGrpJobsLimit,
        (_, Metric::InUse(id)) => match id {
            ResourceId::CPU => R::QOSGrpCpuLimit,
            ResourceId::MEM => R::QOSGrpMemLimit,
            ResourceId::NODE => R::QOSGrpNodeLimit,
            ResourceId::GPU | ResourceId::GPU_MEM => R::QOSGrpGRES,
            _ => R::QOSGrpLicense,
        },
        (_, Metric::Minutes(id)) => match id {
            ResourceId::CPU => R::QOSGrpCPURunMinutesLimit,
            ResourceId::MEM => R::QOSGrpMemoryRunMinutes,
            ResourceId::NODE => R::QOSGrpNodeRunMinutes,
            _ => R::QOSGrpGRESRunMinutes,
        },
    }
}
