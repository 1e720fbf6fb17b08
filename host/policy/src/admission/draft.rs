//! The draft as a policy reads and changes it.

use super::{CURRENT, DraftCall, DraftHandle, rules};
use crate::bindings::admission::ephor::admission::drafts::{Gpus, HostDraft, Memory};
use crate::bindings::host::ephor::types::types::Amount;
use crate::call::Call;
use ephor_model::{Blobs, Draft, GpuRequest, JobSpec, MemRequest, Payload, Request, Span, limits};
use wasmtime::Result;
use wasmtime::component::Resource;

type Set = std::result::Result<(), String>;
type This = Resource<DraftHandle>;

/// Whether a handle stands for the job as it is, beside the draft.
fn is_current(this: &This) -> bool {
    this.rep() == CURRENT
}

impl Call<DraftCall> {
    /// The job that a handle stands for.
    fn spec(&self, this: &This) -> &JobSpec {
        self.role.current.as_deref().filter(|_| is_current(this)).unwrap_or(&self.role.draft.spec)
    }

    fn request(&self, this: &This) -> &Request {
        &self.spec(this).request
    }

    /// Changes the draft if it may be changed and the value does; `bytes` is what the guest handed over for it.
    fn set(&mut self, this: &This, bytes: usize, complaint: Set, change: impl FnOnce(&mut JobSpec)) -> Result<Set> {
        self.base.handed_over(bytes)?;
        self.base.work(1)?;
        Ok(if self.role.read_only {
            Err("this policy only looks at jobs: its manifest does not say `mutating`".into())
        } else if is_current(this) {
            Err("this is the job as it is; what it is to be is the draft".into())
        } else {
            complaint.map(|()| change(&mut self.role.draft.spec))
        })
    }

    /// Copies a text of the draft for the guest.
    fn text(&mut self, this: &This, get: impl FnOnce(&JobSpec) -> String) -> Result<String> {
        let text = get(self.spec(this));
        self.base.work(1 + text.len() as u64 / 1024)?;
        Ok(text)
    }
}

impl HostDraft for Call<DraftCall> {
    fn name(&mut self, this: This) -> Result<String> {
        self.text(&this, |s| s.name.clone())
    }

    fn queue(&mut self, this: This) -> Result<String> {
        self.text(&this, |s| s.queue.clone())
    }

    fn set_queue(&mut self, this: This, name: String) -> Result<Set> {
        self.set(&this, name.len(), rules::name_or_none("the queue", &name), |s| s.queue = name)
    }

    fn account(&mut self, this: This) -> Result<String> {
        self.text(&this, |s| s.account.clone())
    }

    fn set_account(&mut self, this: This, name: String) -> Result<Set> {
        self.set(&this, name.len(), rules::name_or_none("the account", &name), |s| s.account = name)
    }

    fn qos(&mut self, this: This) -> Result<Option<String>> {
        self.base.work(1)?;
        Ok(self.spec(&this).qos.clone())
    }

    fn comment(&mut self, this: This) -> Result<Option<String>> {
        self.base.work(1)?;
        Ok(self.spec(&this).comment.clone())
    }

    fn set_comment(&mut self, this: This, text: Option<String>) -> Result<Set> {
        let bytes = text.as_ref().map_or(0, String::len);
        self.set(&this, bytes, rules::comment(text.as_deref()), |s| s.comment = text)
    }

    fn time_limit(&mut self, this: This) -> Result<Option<i64>> {
        Ok(self.spec(&this).time_limit.map(|t| t.0))
    }

    fn set_time_limit(&mut self, this: This, limit: Option<i64>) -> Result<Set> {
        let limit = limit.map(Span);
        self.set(&this, 0, rules::time_limit(limit), |s| s.time_limit = limit)
    }

    fn nodes_min(&mut self, this: This) -> Result<u32> {
        Ok(self.request(&this).nodes_min)
    }

    fn nodes_max(&mut self, this: This) -> Result<Option<u32>> {
        Ok(self.request(&this).nodes_max)
    }

    fn set_nodes(&mut self, this: This, min: u32, max: Option<u32>) -> Result<Set> {
        self.set(&this, 0, rules::nodes(min, max), |s| (s.request.nodes_min, s.request.nodes_max) = (min, max))
    }

    fn tasks(&mut self, this: This) -> Result<u32> {
        Ok(self.request(&this).task_count())
    }

    fn set_tasks(&mut self, this: This, tasks: u32) -> Result<Set> {
        self.set(&this, 0, rules::tasks(tasks), |s| s.request.tasks = Some(tasks))
    }

    fn cpus_per_task(&mut self, this: This) -> Result<u32> {
        Ok(self.request(&this).cpus_per_task)
    }

    fn set_cpus_per_task(&mut self, this: This, cpus: u32) -> Result<Set> {
        self.set(&this, 0, rules::cpus_per_task(cpus), |s| {
            (s.request.cpus_per_task, s.request.cpu_milli) = (cpus, None);
        })
    }

    fn memory(&mut self, this: This) -> Result<Memory> {
        Ok(match self.request(&this).mem {
            MemRequest::Unset => Memory::Unset,
            MemRequest::PerNode(mib) => Memory::PerNode(mib),
            MemRequest::PerCpu(mib) => Memory::PerCpu(mib),
        })
    }

    fn set_memory(&mut self, this: This, memory: Memory) -> Result<Set> {
        let mem = match memory {
            Memory::Unset => MemRequest::Unset,
            Memory::PerNode(mib) => MemRequest::PerNode(mib),
            Memory::PerCpu(mib) => MemRequest::PerCpu(mib),
            Memory::Other(text) => return self.set(&this, text.len(), Err(unknown("memory")), |_| {}),
        };
        self.set(&this, 0, rules::memory(mem), |s| s.request.mem = mem)
    }

    fn gpus(&mut self, this: This) -> Result<Gpus> {
        Ok(match self.request(&this).gpus {
            GpuRequest::None => Gpus::None,
            GpuRequest::PerNode(n) => Gpus::PerNode(n),
            GpuRequest::PerTask(n) => Gpus::PerTask(n),
            GpuRequest::Total(n) => Gpus::Total(n),
            GpuRequest::Share(n) => Gpus::Share(n),
        })
    }

    fn gpu_types(&mut self, this: This) -> Result<Vec<String>> {
        let types = self.request(&this).gpu_types.clone();
        self.base.work(1 + types.len() as u64)?;
        Ok(types)
    }

    fn set_gpus(&mut self, this: This, gpus: Gpus, types: Vec<String>) -> Result<Set> {
        let bytes: usize = types.iter().map(|t| t.len() + size_of::<String>()).sum();
        let gpus = match gpus {
            Gpus::None => GpuRequest::None,
            Gpus::PerNode(n) => GpuRequest::PerNode(n),
            Gpus::PerTask(n) => GpuRequest::PerTask(n),
            Gpus::Total(n) => GpuRequest::Total(n),
            Gpus::Share(n) => GpuRequest::Share(n),
            Gpus::Other(text) => return self.set(&this, bytes + text.len(), Err(unknown("GPUs")), |_| {}),
        };
        let complaint = rules::gpus(gpus, &types);
        self.set(&this, bytes, complaint, |s| {
            s.request.gpus = gpus;
            s.request.set_gpu_types(types);
        })
    }

    fn features(&mut self, this: This) -> Result<Vec<String>> {
        let features = self.request(&this).features.clone();
        self.base.work(1 + features.len() as u64)?;
        Ok(features)
    }

    fn set_features(&mut self, this: This, features: Vec<String>) -> Result<Set> {
        let bytes = features.iter().map(|f| f.len() + size_of::<String>()).sum();
        self.set(&this, bytes, rules::features(&features), |s| s.request.features = features)
    }

    fn constraint(&mut self, this: This) -> Result<Option<String>> {
        self.base.work(1)?;
        Ok(self.request(&this).constraint.as_ref().map(ToString::to_string))
    }

    fn set_constraint(&mut self, this: This, text: Option<String>) -> Result<Set> {
        let bytes = text.as_ref().map_or(0, String::len);
        match rules::constraint(text.as_deref()) {
            Ok(constraint) => self.set(&this, bytes, Ok(()), |s| s.request.constraint = constraint),
            Err(why) => self.set(&this, bytes, Err(why), |_| {}),
        }
    }

    fn exclusive(&mut self, this: This) -> Result<bool> {
        Ok(self.request(&this).exclusive)
    }

    fn set_exclusive(&mut self, this: This, exclusive: bool) -> Result<Set> {
        self.set(&this, 0, Ok(()), |s| s.request.exclusive = exclusive)
    }

    fn nice(&mut self, this: This) -> Result<i64> {
        Ok(self.spec(&this).nice)
    }

    fn set_nice(&mut self, this: This, nice: i64) -> Result<Set> {
        self.set(&this, 0, rules::nice(nice), |s| s.nice = nice)
    }

    fn hold(&mut self, this: This) -> Result<bool> {
        Ok(self.spec(&this).hold)
    }

    fn set_hold(&mut self, this: This, hold: bool) -> Result<Set> {
        self.set(&this, 0, Ok(()), |s| s.hold = hold)
    }

    fn requeue(&mut self, this: This) -> Result<Option<bool>> {
        Ok(self.spec(&this).requeue)
    }

    fn set_requeue(&mut self, this: This, requeue: Option<bool>) -> Result<Set> {
        self.set(&this, 0, Ok(()), |s| s.requeue = requeue)
    }

    fn elements(&mut self, this: This) -> Result<u32> {
        Ok(self.spec(&this).count())
    }

    fn work_dir(&mut self, this: This) -> Result<String> {
        self.text(&this, |s| s.work_dir.clone())
    }

    fn has_script(&mut self, this: This) -> Result<bool> {
        Ok(matches!(self.spec(&this).payload, Payload::Script { .. }))
    }

    fn script(&mut self, _: This) -> Result<Option<Vec<u8>>> {
        let Some(script) = &self.role.draft.blobs.script else { return Ok(None) };
        self.base.work(1 + script.len() as u64 / 1024)?;
        self.base.hand_in(script.len() as u64)?;
        Ok(Some(script.clone()))
    }

    fn environment(&mut self, _: This, name: String) -> Result<Option<String>> {
        self.base.handed_over(name.len())?;
        let environment = &self.role.draft.blobs.environment;
        // It is searched from its beginning.
        self.base.work(1 + environment.len() as u64 / 1024)?;
        let found = environment.split(|b| *b == 0).find_map(|e| e.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        Ok(found.filter(|_| !name.is_empty()).map(|value| String::from_utf8_lossy(value).into_owned()))
    }

    fn total(&mut self, this: This) -> Result<Vec<Amount>> {
        self.base.work(1)?;
        Ok(self.request(&this).total().iter().map(|(id, value)| Amount { id: id.0, value }).collect())
    }

    fn current(&mut self, _: This) -> Result<Option<This>> {
        Ok(self.role.current.is_some().then(|| Resource::new_own(CURRENT)))
    }

    fn owner(&mut self, this: This) -> Result<u32> {
        Ok(self.spec(&this).owner.uid.0)
    }

    fn never_runs(&mut self, this: This) -> Result<Option<String>> {
        let cluster = self.role.cluster.clone();
        // There are at most as many kinds of nodes as nodes.
        self.base.work(1 + cluster.state.nodes.len() as u64)?;
        let why = match is_current(&this) {
            false => (cluster.never_runs)(&cluster.state, &self.role.draft),
            true => {
                let spec = self.spec(&this).clone();
                (cluster.never_runs)(&cluster.state, &Draft { spec, blobs: Blobs::default() })
            }
        };
        Ok(why.map(|mut text| {
            crate::fault::truncate(&mut text, limits::TEXT_BYTES);
            text
        }))
    }

    fn drop(&mut self, _: This) -> Result<()> {
        Ok(())
    }
}

fn unknown(what: &str) -> String {
    format!("this host does not know that way to ask for {what}")
}
