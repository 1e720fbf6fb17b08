//! The role of admission: takes a job, changes it, or refuses it.

mod cluster;
mod draft;
mod rules;

use crate::ahead::Start;
use crate::authentication::identity;
use crate::bindings::admission as bindings;
use crate::bindings::admission::ephor::admission::drafts;
use crate::bindings::admission::exports::ephor::admission::admission as wit;
use crate::bounds;
use crate::call::{self, Call, Plan, Size};
use crate::check;
use crate::fault::Failure;
use crate::imports;
use crate::loaded::Code;
use ephor_core::roles::{Admission, ClusterView, Intent, Verdict};
use ephor_core::{Fault, State};
use ephor_model::{Blobs, Draft, Identity, JobSpec, Payload, Timestamp};
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker, Resource};
use wasmtime::{Engine, Result as WasmResult, Store};

/// A job of a call: the draft, or the job as it is; their content is in the store.
pub struct DraftHandle;

/// Number of the draft among the handles.
const DRAFT: u32 = 0;
/// Number of the job as it is.
const CURRENT: u32 = 1;

/// This role's part of a store.
pub(crate) struct DraftCall {
    draft: Draft,
    /// The job as it is, where it is to be changed.
    current: Option<Arc<JobSpec>>,
    cluster: Arc<ClusterView>,
    read_only: bool,
}

impl DraftCall {
    /// For a trial start, in which nothing is asked.
    pub(crate) fn empty() -> Self {
        let spec = JobSpec::new("", Payload::Argv(Vec::new()));
        let cluster = ClusterView { state: State::default(), never_runs: Box::new(|_, _| None) };
        let draft = Draft { spec, blobs: Blobs::default() };
        Self { draft, current: None, cluster: Arc::new(cluster), read_only: true }
    }
}

/// A linked component of this role.
pub(crate) type Pre = bindings::PolicyPre<Call<DraftCall>>;

impl Start for Pre {
    type Own = DraftCall;
    type Instance = bindings::Policy;

    fn idle() -> DraftCall {
        DraftCall::empty()
    }

    fn start(&self, store: &mut Store<Call<DraftCall>>) -> wasmtime::Result<bindings::Policy> {
        self.instantiate(store)
    }
}

/// A generation of this role.
pub struct Policy(pub(crate) Code<Pre>);

pub(crate) fn link(engine: &Engine, component: &Component, granted: &[String]) -> WasmResult<Pre> {
    let mut linker = Linker::new(engine);
    imports::link(&mut linker, granted)?;
    drafts::add_to_linker::<_, HasSelf<Call<DraftCall>>>(&mut linker, |call| call)?;
    bindings::PolicyPre::new(linker.instantiate_pre(component)?)
}

enum Decision {
    Admit(Vec<String>),
    Refuse(String),
}

impl Admission for Policy {
    fn admit(
        &self,
        now: Timestamp,
        who: &Identity,
        intent: &Intent,
        draft: Draft,
        cluster: &Arc<ClusterView>,
    ) -> Result<Verdict, Fault> {
        let who = identity(who);
        let (asked, current) = match intent {
            Intent::Submit => (wit::Intent::Submit, None),
            Intent::Modify(current) => (wit::Intent::Modify, Some(current.clone())),
        };
        let plan = Plan {
            size: Size { jobs: 1, nodes: cluster.state.nodes.len() as u64 },
            state: Some(cluster.state.clone()),
            now: Some(now),
            role: DraftCall { draft, current, cluster: cluster.clone(), read_only: !self.mutating() },
        };
        let (role, decision) = call::run(&self.0, plan, |store, policy| {
            let guest = policy.ephor_admission_admission();
            let draft = Resource::new_borrow(DRAFT);
            let verdict = guest.call_admit(&mut *store, now.0, &who, asked, draft).map_err(Failure::Call)?;
            match verdict {
                wit::Verdict::Refuse(text) if text.trim().is_empty() => Err(check::bad("it refused without a reason")),
                wit::Verdict::Refuse(text) => check::text("the refusal", text).map(Decision::Refuse),
                wit::Verdict::Admit(lines) => {
                    check::at_most("lines for the user", lines.len(), bounds::ADMIT_LINES)?;
                    let role = &store.data().role;
                    // What a read-only policy was shown is what came in: there is nothing to check again.
                    if !role.read_only {
                        rules::whole(&role.draft.spec)
                            .map_err(|why| check::bad(format!("the job that it made {why}")))?;
                    }
                    let lines = lines.into_iter().map(|line| check::text("a line for the user", line));
                    lines.collect::<Result<_, _>>().map(Decision::Admit)
                }
            }
        });
        Ok(match decision? {
            Decision::Admit(lines) => Verdict::Admit(Box::new(role.draft), lines),
            Decision::Refuse(text) => Verdict::Refuse(text),
        })
    }

    fn mutating(&self) -> bool {
        self.0.common.about.mutating
    }
}
