//! The draft as a policy reads and changes it.

use super::{DraftCall, DraftHandle, rules};
use crate::bindings::admission::ephor::admission::drafts::{Gpus, HostDraft, Memory};
use crate::bindings::host::ephor::types::types::Amount;
use crate::call::Call;
use ephor_model::{GpuRequest, JobSpec, MemRequest, Payload, Request, Span, limits};
use wasmtime::Result;
use wasmtime::component::Resource;

type Set = std::result::Result<(), String>;
type This = Resource<DraftHandle>;

impl Call<DraftCall> {
    fn spec(&self) -> &JobSpec {
        &self.role.draft.spec
    }

    fn request(&self) -> &Request {
        &self.role.draft.spec.request
    }

    /// Changes the draft if it may be changed and the value does; `bytes` is what the guest handed over for it.
    fn set(&mut self, bytes: usize, complaint: Set, change: impl FnOnce(&mut JobSpec)) -> Result<Set> {
        self.base.handed_over(bytes)?;
        self.base.work(1)?;
        Ok(if self.role.read_only {
            Err("this policy only looks at jobs: its manifest does not say `mutating`".into())
        } else {
            complaint.map(|()| change(&mut self.role.draft.spec))
        })
    }

    /// Copies a text of the draft for the guest.
    fn text(&mut self, get: impl FnOnce(&JobSpec) -> String) -> Result<String> {
        let text = get(&self.role.draft.spec);
        self.base.work(1 + text.len() as u64 / 1024)?;
        Ok(text)
    }
}

impl HostDraft for Call<DraftCall> {
    fn name(&mut self, _: This) -> Result<String> {
        self.text(|s| s.name.clone())
    }

    fn queue(&mut self, _: This) -> Result<String> {
        self.text(|s| s.queue.clone())
    }

    fn set_queue(&mut self, _: This, name: String) -> Result<Set> {
        self.set(name.len(), rules::name_or_none("the queue", &name), |s| s.queue = name)
    }

    fn account(&mut self, _: This) -> Result<String> {
        self.text(|s| s.account.clone())
    }

    fn set_account(&mut self, _: This, name: String) -> Result<Set> {
        self.set(name.len(), rules::name_or_none("the account", &name), |s| s.account = name)
    }

    fn qos(&mut self, _: This) -> Result<Option<String>> {
        self.base.work(1)?;
        Ok(self.spec().qos.clone())
    }

    fn comment(&mut self, _: This) -> Result<Option<String>> {
        self.base.work(1)?;
        Ok(self.spec().comment.clone())
    }

    fn set_comment(&mut self, _: This, text: Option<String>) -> Result<Set> {
        let bytes = text.as_ref().map_or(0, String::len);
        self.set(bytes, rules::comment(text.as_deref()), |s| s.comment = text)
    }

    fn time_limit(&mut self, _: This) -> Result<Option<i64>> {
        Ok(self.spec().time_limit.map(|t| t.0))
    }

    fn set_time_limit(&mut self, _: This, limit: Option<i64>) -> Result<Set> {
        let limit = limit.map(Span);
        self.set(0, rules::time_limit(limit), |s| s.time_limit = limit)
    }

    fn nodes_min(&mut self, _: This) -> Result<u32> {
        Ok(self.request().nodes_min)
    }

    fn nodes_max(&mut self, _: This) -> Result<Option<u32>> {
        Ok(self.request().nodes_max)
    }

    fn set_nodes(&mut self, _: This, min: u32, max: Option<u32>) -> Result<Set> {
        self.set(0, rules::nodes(min, max), |s| (s.request.nodes_min, s.request.nodes_max) = (min, max))
    }

    fn tasks(&mut self, _: This) -> Result<u32> {
        Ok(self.request().task_count())
    }

    fn set_tasks(&mut self, _: This, tasks: u32) -> Result<Set> {
        self.set(0, rules::tasks(tasks), |s| s.request.tasks = Some(tasks))
    }

    fn cpus_per_task(&mut self, _: This) -> Result<u32> {
        Ok(self.request().cpus_per_task)
    }

    fn set_cpus_per_task(&mut self, _: This, cpus: u32) -> Result<Set> {
        self.set(0, rules::cpus_per_task(cpus), |s| {
            (s.request.cpus_per_task, s.request.cpu_milli) = (cpus, None);
        })
    }

    fn memory(&mut self, _: This) -> Result<Memory> {
        Ok(match self.request().mem {
            MemRequest::Unset => Memory::Unset,
            MemRequest::PerNode(mib) => Memory::PerNode(mib),
            MemRequest::PerCpu(mib) => Memory::PerCpu(mib),
        })
    }

    fn set_memory(&mut self, _: This, memory: Memory) -> Result<Set> {
        let mem = match memory {
            Memory::Unset => MemRequest::Unset,
            Memory::PerNode(mib) => MemRequest::PerNode(mib),
            Memory::PerCpu(mib) => MemRequest::PerCpu(mib),
            Memory::Other(text) => return self.set(text.len(), Err(unknown("memory")), |_| {}),
        };
        self.set(0, rules::memory(mem), |s| s.request.mem = mem)
    }

    fn gpus(&mut self, _: This) -> Result<Gpus> {
        Ok(match self.request().gpus {
            GpuRequest::None => Gpus::None,
            GpuRequest::PerNode(n) => Gpus::PerNode(n),
            GpuRequest::PerTask(n) => Gpus::PerTask(n),
            GpuRequest::Total(n) => Gpus::Total(n),
            GpuRequest::Share(n) => Gpus::Share(n),
        })
    }

    fn gpu_types(&mut self, _: This) -> Result<Vec<String>> {
        self.base.work(1 + self.request().gpu_types.len() as u64)?;
        Ok(self.request().gpu_types.clone())
    }

    fn set_gpus(&mut self, _: This, gpus: Gpus, types: Vec<String>) -> Result<Set> {
        let bytes: usize = types.iter().map(|t| t.len() + size_of::<String>()).sum();
        let gpus = match gpus {
            Gpus::None => GpuRequest::None,
            Gpus::PerNode(n) => GpuRequest::PerNode(n),
            Gpus::PerTask(n) => GpuRequest::PerTask(n),
            Gpus::Total(n) => GpuRequest::Total(n),
            Gpus::Share(n) => GpuRequest::Share(n),
            Gpus::Other(text) => return self.set(bytes + text.len(), Err(unknown("GPUs")), |_| {}),
        };
        let complaint = rules::gpus(gpus, &types);
        self.set(bytes, complaint, |s| {
            s.request.gpus = gpus;
            s.request.set_gpu_types(types);
        })
    }

    fn features(&mut self, _: This) -> Result<Vec<String>> {
        let features = &self.role.draft.spec.request.features;
        self.base.work(1 + features.len() as u64)?;
        Ok(features.clone())
    }

    fn set_features(&mut self, _: This, features: Vec<String>) -> Result<Set> {
        let bytes = features.iter().map(|f| f.len() + size_of::<String>()).sum();
        self.set(bytes, rules::features(&features), |s| s.request.features = features)
    }

    fn exclusive(&mut self, _: This) -> Result<bool> {
        Ok(self.request().exclusive)
    }

    fn set_exclusive(&mut self, _: This, exclusive: bool) -> Result<Set> {
        self.set(0, Ok(()), |s| s.request.exclusive = exclusive)
    }

    fn nice(&mut self, _: This) -> Result<i64> {
        Ok(self.spec().nice)
    }

    fn set_nice(&mut self, _: This, nice: i64) -> Result<Set> {
        self.set(0, rules::nice(nice), |s| s.nice = nice)
    }

    fn hold(&mut self, _: This) -> Result<bool> {
        Ok(self.spec().hold)
    }

    fn set_hold(&mut self, _: This, hold: bool) -> Result<Set> {
        self.set(0, Ok(()), |s| s.hold = hold)
    }

    fn requeue(&mut self, _: This) -> Result<Option<bool>> {
        Ok(self.spec().requeue)
    }

    fn set_requeue(&mut self, _: This, requeue: Option<bool>) -> Result<Set> {
        self.set(0, Ok(()), |s| s.requeue = requeue)
    }

    fn elements(&mut self, _: This) -> Result<u32> {
        Ok(self.spec().count())
    }

    fn work_dir(&mut self, _: This) -> Result<String> {
        self.text(|s| s.work_dir.clone())
    }

    fn has_script(&mut self, _: This) -> Result<bool> {
        Ok(matches!(self.spec().payload, Payload::Script { .. }))
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

    fn total(&mut self, _: This) -> Result<Vec<Amount>> {
        self.base.work(1)?;
        Ok(self.request().total().iter().map(|(id, value)| Amount { id: id.0, value }).collect())
    }

    fn current(&mut self, _: This) -> Result<Option<This>> {
        Ok(None)
    }

    fn never_runs(&mut self, _: This) -> Result<Option<String>> {
        let cluster = self.role.cluster.clone();
        // There are at most as many kinds of nodes as nodes.
        self.base.work(1 + cluster.state.nodes.len() as u64)?;
        let why = (cluster.never_runs)(&cluster.state, &self.role.draft);
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
