//! The built-in policies through the host: they load, decide what they should, and fall back as the law says.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may its helpers")]

mod common;

use common::*;
use ephor_core::cycle::Cycle;
use ephor_core::roles::{
    Accounting, Admission, Authentication, Credential, Intent, Peer, Permission, Priority, Scheduling, Target, Verdict,
};
use ephor_core::{FaultKind, State};
use ephor_model::{MemRequest, Role, Slot, Span, Timestamp, Uid};
use ephor_policy::{Directory, DirectoryUser, Host, Pick, Request, Scheduler, Services, Slots, bounds};
use std::sync::Arc;

struct Everybody;

impl Directory for Everybody {
    fn user_by_id(&self, uid: u32) -> Option<DirectoryUser> {
        (uid == 1000).then(|| DirectoryUser { uid, gid: 100, name: "alice".into(), groups: vec!["staff".into()] })
    }
    fn user_by_name(&self, name: &str) -> Option<DirectoryUser> {
        (name == "alice").then(|| self.user_by_id(1000)).flatten()
    }
}

#[test]
fn local_users_are_who_the_directory_says() {
    let Some(component) = plugin("auth-local") else { return };
    let services = Services { directory: Arc::new(Everybody), names: Arc::new(State::default) };
    let host = Host::new(services).unwrap();
    let grants = vec!["ephor:host/directory".to_owned()];
    let role = Role::Authentication;
    let maxima = bounds::site_maxima(role);
    let config = r#"{"operator_groups": ["staff"]}"#;
    let request = Request { role, component: &component, config, grants: &grants, maxima };
    let loaded = host.prepare(&request).unwrap().activate(1);
    let policy = loaded.authentication().unwrap();
    let peer = |uid| Peer { uid: Uid(uid), gid: 5, node: None };
    let session = policy.authenticate(NOW, &Credential::Local, &peer(1000)).unwrap().unwrap();
    assert_eq!((session.identity.name.as_str(), session.identity.gid), ("alice", 100));
    assert!(session.identity.roles.contains(&"operator".to_owned()), "{session:?}");
    assert!(policy.authenticate(NOW, &Credential::Local, &peer(4711)).unwrap().is_err());
    let target = Target { owner: Some(Uid(1)), name: "1".into() };
    assert_eq!(policy.authorize(NOW, &session.identity, Permission::JobWrite, &target).unwrap(), Ok(()));
    assert!(policy.authorize(NOW, &alice(), Permission::JobWrite, &target).unwrap().is_err());
}

#[test]
fn admission_fills_in_and_refuses_what_never_runs() {
    let Some(component) = plugin("admission-defaults") else { return };
    let config = r#"{"default_mem_per_cpu_mib": 100, "default_time_minutes": 5}"#;
    let loaded = load(Role::Admission, &component, config);
    assert!(loaded.admission().unwrap().mutating());
    let mut asked = draft();
    asked.spec.queue.clear();
    asked.spec.account.clear();
    let Verdict::Admit(job, _) =
        loaded.admission().unwrap().admit(NOW, &alice(), &Intent::Submit, asked, &view()).unwrap()
    else {
        panic!("refused")
    };
    assert_eq!((job.spec.queue.as_str(), job.spec.account.as_str()), ("main", "default"));
    assert_eq!(job.spec.time_limit, Some(Span::minutes(5)));
    assert_eq!(job.spec.request.mem, MemRequest::PerCpu(100));
    assert_eq!(job.blobs, draft().blobs);
    let mut large = draft();
    large.spec.request.nodes_min = 3;
    let verdict = loaded.admission().unwrap().admit(NOW, &alice(), &Intent::Submit, large, &view()).unwrap();
    assert!(matches!(&verdict, Verdict::Refuse(text) if text.contains("3 nodes")), "{verdict:?}");
}

#[test]
fn admission_sees_the_job_as_it_is_beside_what_it_is_to_be() {
    let Some(component) = plugin("admission-defaults") else { return };
    let loaded = load(Role::Admission, &component, "{}");
    let policy = loaded.admission().unwrap();
    // An account that the owner may not use is refused, except where the job has it already.
    let mut changed = draft();
    changed.spec.account = "closed".into();
    let current = Arc::new(changed.spec.clone());
    changed.spec.nice = 5;
    let verdict = policy.admit(NOW, &alice(), &Intent::Modify(current), changed.clone(), &view()).unwrap();
    assert!(matches!(&verdict, Verdict::Admit(job, _) if job.spec.nice == 5), "{verdict:?}");
    let other = Intent::Modify(Arc::new(draft().spec));
    let verdict = policy.admit(NOW, &alice(), &other, changed, &view()).unwrap();
    assert!(matches!(&verdict, Verdict::Refuse(text) if text.contains("closed")), "{verdict:?}");
}

#[test]
fn priorities_come_with_parts_that_add_up() {
    let Some(component) = plugin("priority-multifactor") else { return };
    let loaded = load(Role::Priority, &component, "{}");
    let policy = loaded.priority().unwrap();
    let values = policy.prioritize(batch(1_000)).unwrap();
    for row in [0, 17, 999] {
        let parts = policy.explain(batch(1_000), row).unwrap();
        assert_eq!(parts.iter().map(|f| f.value).sum::<i64>(), values[row as usize], "{parts:?}");
    }
    assert_eq!(policy.prioritize(batch(0)).unwrap(), Vec::<i64>::new());
}

#[test]
fn accounting_charges_each_attempt() {
    let Some(component) = plugin("accounting-tres") else { return };
    let loaded = load(Role::Accounting, &component, "{}");
    let policy = loaded.accounting().unwrap();
    let charges = policy.charge(ended(3)).unwrap();
    assert!(charges.len() == 3 && charges.iter().all(|c| *c > 0), "{charges:?}");
    policy.decay().unwrap();
    policy.allowances(NOW).unwrap();
}

fn starts(mut scheduler: impl Scheduling, state: &State) -> usize {
    let (cycle, answer): (Box<Cycle>, _) = scheduler.schedule(cycle(state));
    answer.unwrap();
    cycle.finish().1.groups.iter().map(|g| g.starts.len()).sum()
}

#[test]
fn scheduling_policies_start_what_fits() {
    for name in ["scheduling-fifo", "scheduling-backfill"] {
        let Some(component) = plugin(name) else { continue };
        let loaded = load(Role::Scheduling, &component, "{}");
        let scheduler = Scheduler(loaded.clone());
        assert_eq!(scheduler.label(), format!("scheduling '{name}' generation 7"));
        assert_eq!(starts(scheduler, &cluster(20)), 8);
        assert_eq!(starts(Scheduler(loaded), &cluster(0)), 0);
    }
}

#[test]
fn a_generation_that_fails_again_and_again_rests_and_the_last_good_one_runs() {
    let (Some(good), Some(bad)) = (plugin("priority-multifactor"), hostile("priority")) else { return };
    let slot = Slot::default_of(Role::Priority);
    let slots = Slots::default();
    assert!(matches!(slots.pick(&slot, NOW), Pick::Empty));
    let first = load(Role::Priority, &good, "{}");
    slots.install(slot.clone(), first.clone());
    first.priority().unwrap().prioritize(batch(1)).unwrap();
    let second = load(Role::Priority, &bad, r#"{"fault": "trap"}"#);
    slots.install(slot.clone(), second.clone());
    assert!(Arc::ptr_eq(&slots.last_good(&slot).unwrap(), &first));
    for _ in 0..3 {
        assert!(matches!(slots.pick(&slot, NOW), Pick::Live(live) if Arc::ptr_eq(&live, &second)));
        second.priority().unwrap().prioritize(batch(1)).unwrap_err();
    }
    assert!(matches!(slots.pick(&slot, NOW), Pick::LastGood(g) if Arc::ptr_eq(&g, &first)));
    // After its rest it gets another try; the next fault makes the rest longer.
    let later = NOW + Span::seconds(1);
    assert!(matches!(slots.pick(&slot, later), Pick::Live(_)));
    second.priority().unwrap().prioritize(batch(1)).unwrap_err();
    assert!(matches!(slots.pick(&slot, later), Pick::LastGood(_)));
    assert!(matches!(slots.pick(&slot, NOW + Span::seconds(2)), Pick::Live(_)));
    // A bad generation never becomes the last good one.
    slots.install(slot.clone(), load(Role::Priority, &bad, "{}"));
    assert!(Arc::ptr_eq(&slots.last_good(&slot).unwrap(), &first));
    slots.disable(&slot);
    assert_eq!(slots.live(&slot).err().unwrap().kind, FaultKind::Missing);
}

#[test]
fn without_a_last_good_one_the_site_chooses() {
    let Some(bad) = hostile("scheduling") else { return };
    let slot = Slot::default_of(Role::Scheduling);
    let slots = Slots::default();
    let loaded = load(Role::Scheduling, &bad, r#"{"fault": "trap"}"#);
    slots.install(slot.clone(), loaded.clone());
    for _ in 0..3 {
        loaded.scheduling().unwrap().schedule(cycle(&cluster(1))).1.unwrap_err();
    }
    assert!(matches!(slots.pick(&slot, NOW), Pick::Resting));
    assert!(matches!(slots.pick(&slot, Timestamp(NOW.0 + 1_000)), Pick::Live(_)));
    slots.install_failed(slot.clone(), "scheduling 'gone' generation 9".into(), "no component".into());
    assert!(matches!(slots.pick(&slot, NOW), Pick::Resting));
    assert_eq!(slots.live(&slot).err().unwrap().kind, FaultKind::Start);
}

#[test]
fn the_admission_chain_mutates_first_and_stops_at_a_refusal() {
    let (Some(defaults), Some(hostile)) = (plugin("admission-defaults"), hostile("admission")) else { return };
    let slots = Slots::default();
    let named = |name: &str| Slot { role: Role::Admission, name: name.into() };
    let admit = |slots: &Slots| slots.admit(NOW, &alice(), &Intent::Submit, draft(), &view());
    assert_eq!(admit(&slots).unwrap_err().kind, FaultKind::Missing, "no policy means no access");
    slots.install(named("50-defaults"), load(Role::Admission, &defaults, r#"{"default_time_minutes": 5}"#));
    let Verdict::Admit(job, _) = admit(&slots).unwrap() else { panic!("refused") };
    assert_eq!(job.spec.time_limit, Some(Span::minutes(5)));
    slots.install(named("10-hostile"), load(Role::Admission, &hostile, r#"{"fault": "change-then-refuse"}"#));
    assert!(matches!(admit(&slots).unwrap(), Verdict::Refuse(_)));
    slots.install(named("10-hostile"), load(Role::Admission, &hostile, r#"{"fault": "trap"}"#));
    assert_eq!(admit(&slots).unwrap_err().kind, FaultKind::Trap);
    slots.install_failed(named("10-hostile"), "admission 'gone' generation 2".into(), "no component".into());
    assert_eq!(admit(&slots).unwrap_err().kind, FaultKind::Start, "a policy that is not there is not skipped");
    assert_eq!(slots.list().len(), 2);
}

#[test]
fn the_same_call_burns_the_same_fuel() {
    let Some(component) = plugin("scheduling-backfill") else { return };
    let loaded = load(Role::Scheduling, &component, "{}");
    let fuel: Vec<u64> = (0..3)
        .map(|_| {
            loaded.scheduling().unwrap().schedule(cycle(&cluster(50))).1.unwrap();
            loaded.stats().max_fuel
        })
        .collect();
    assert!(fuel[0] == fuel[1] && fuel[1] == fuel[2] && loaded.stats().mean_fuel == fuel[0], "{fuel:?}");
}
