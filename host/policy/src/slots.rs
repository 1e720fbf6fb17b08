//! Which generation decides: live and last good ones by slot, swapped while calls run, with a breaker (law 6).
//!
//! A call runs on one generation entirely: it holds its own reference, and a swap waits for nobody.

use crate::loaded::Loaded;
use ephor_core::roles::{Admission, ClusterView, Intent, Verdict};
use ephor_core::{Fault, FaultKind};
use ephor_model::{Draft, Identity, Role, Slot, Span, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Faults in a row after which a generation rests.
pub const FAULTS_BEFORE_REST: u32 = 3;
/// First rest; each further fault doubles it.
const FIRST_REST: Span = Span::seconds(1);
/// Longest rest.
const LONGEST_REST: Span = Span::minutes(5);

/// The policies in charge. Shared by all who call policies.
#[derive(Default)]
pub struct Slots(RwLock<BTreeMap<Slot, Entry>>);

#[derive(Clone)]
struct Entry {
    live: Live,
    last_good: Option<Arc<Loaded>>,
}

#[derive(Clone)]
enum Live {
    Loaded(Arc<Loaded>),
    /// A generation is in charge by the state, and could not be loaded on this machine.
    Failed(Fault),
}

/// Who is to be asked now.
#[derive(Clone)]
pub enum Pick {
    /// The live generation.
    Live(Arc<Loaded>),
    /// The last good one: the live one failed too often and rests, or could not be loaded.
    LastGood(Arc<Loaded>),
    /// Nobody: the live one rests and there is no other. The site's choice holds (built-in, or pause).
    Resting,
    /// Nobody: the slot is empty.
    Empty,
}

impl Slots {
    /// Puts a generation in charge. The one before becomes the last good one if its last call went well; else the
    /// last good one stays.
    pub fn install(&self, slot: Slot, loaded: Arc<Loaded>) {
        self.put(slot, Live::Loaded(loaded));
    }

    /// Notes that the generation in charge of a slot could not be loaded: its calls fail with this.
    pub fn install_failed(&self, slot: Slot, policy: String, why: String) {
        self.put(slot, Live::Failed(Fault { kind: FaultKind::Start, policy, message: why }));
    }

    /// Names the last good generation, as after a restart, when nothing is known of earlier calls.
    pub fn install_last_good(&self, slot: &Slot, loaded: Arc<Loaded>) {
        if let Some(entry) = self.0.write().unwrap_or_else(PoisonError::into_inner).get_mut(slot) {
            entry.last_good = Some(loaded);
        }
    }

    /// Empties a slot.
    pub fn disable(&self, slot: &Slot) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(slot);
    }

    fn put(&self, slot: Slot, live: Live) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let last_good = match all.remove(&slot) {
            Some(Entry { live: Live::Loaded(before), .. }) if before.is_good() => Some(before),
            Some(Entry { last_good, .. }) => last_good,
            None => None,
        };
        all.insert(slot, Entry { live, last_good });
    }

    fn entry(&self, slot: &Slot) -> Option<Entry> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(slot).cloned()
    }

    /// All filled slots with what is in charge of them: the generation, or why it could not be loaded.
    pub fn list(&self) -> Vec<(Slot, Result<Arc<Loaded>, Fault>)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(slot, entry)| (slot.clone(), entry.live.clone().answer())).collect()
    }

    /// The generation in charge, for roles that refuse when it fails (authentication, admission) or wait
    /// (accounting).
    ///
    /// # Errors
    /// The slot is empty, or its generation could not be loaded.
    pub fn live(&self, slot: &Slot) -> Result<Arc<Loaded>, Fault> {
        match self.entry(slot) {
            Some(entry) => entry.live.answer(),
            None => Err(missing(slot)),
        }
    }

    /// The last good generation of a slot.
    pub fn last_good(&self, slot: &Slot) -> Option<Arc<Loaded>> {
        self.entry(slot)?.last_good
    }

    /// Whom to ask now, for roles that fall back (priority, scheduling): the live generation, unless it failed
    /// [`FAULTS_BEFORE_REST`] times in a row and still rests. When its rest is over it is tried again.
    pub fn pick(&self, slot: &Slot, now: Timestamp) -> Pick {
        let Some(Entry { live, last_good }) = self.entry(slot) else { return Pick::Empty };
        match (live, last_good) {
            (Live::Loaded(live), _) if !live.rests(now) => Pick::Live(live),
            (_, Some(last_good)) if !last_good.rests(now) => Pick::LastGood(last_good),
            _ => Pick::Resting,
        }
    }

    /// The admission chain: mutating policies in the order of their slots, then validating ones on the result.
    ///
    /// # Errors
    /// A policy failed, or there is none: the job is refused.
    pub fn admit(
        &self,
        now: Timestamp,
        who: &Identity,
        intent: &Intent,
        draft: Draft,
        cluster: &Arc<ClusterView>,
    ) -> Result<Verdict, Fault> {
        let of_role = |(slot, _): &(Slot, _)| slot.role == Role::Admission;
        let chain = self.list().into_iter().filter(of_role);
        let mut chain = chain.map(|(_, live)| live).collect::<Result<Vec<_>, _>>()?;
        if chain.is_empty() {
            return Err(missing(&Slot { role: Role::Admission, name: String::new() }));
        }
        // Stable: within each kind the order of the slots stays.
        chain.sort_by_key(|policy| !policy.about().mutating);
        let (mut draft, mut lines) = (Box::new(draft), Vec::new());
        for policy in chain {
            match policy.admission()?.admit(now, who, intent, *draft, cluster)? {
                Verdict::Admit(changed, said) => {
                    draft = changed;
                    lines.extend(said);
                }
                Verdict::Refuse(text) => return Ok(Verdict::Refuse(text)),
            }
        }
        Ok(Verdict::Admit(draft, lines))
    }
}

impl Live {
    fn answer(self) -> Result<Arc<Loaded>, Fault> {
        match self {
            Self::Loaded(loaded) => Ok(loaded),
            Self::Failed(fault) => Err(fault),
        }
    }
}

impl Loaded {
    /// Whether it was called and its last call went well.
    fn is_good(&self) -> bool {
        let (calls, faults, _) = self.health();
        calls > 0 && faults == 0
    }

    /// Whether it failed too often and has to wait.
    fn rests(&self, now: Timestamp) -> bool {
        let (_, faults, last) = self.health();
        let Some(beyond) = faults.checked_sub(FAULTS_BEFORE_REST) else { return false };
        let rest = Span(FIRST_REST.0 << beyond.min(20)).min(LONGEST_REST);
        now < last + rest
    }
}

fn missing(slot: &Slot) -> Fault {
    let message = format!("no policy fills it; activate one with `ephor policy activate {}`", slot.role);
    Fault { kind: FaultKind::Missing, policy: slot.to_string(), message }
}
