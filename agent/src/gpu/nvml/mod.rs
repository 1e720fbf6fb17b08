//! NVIDIA's GPUs through its management library; nothing outside this folder knows that library.
//!
//! The library is loaded when the agent starts, by the name that the configuration gives, so that no driver is needed to
//! build and none to run. Whatever an older one does not have is left out, and said once.

mod kind;
mod raw;
mod xid;

use super::driver::{Driver, Found, Incident, Link, Process, Reading, Rows};
use ephor_model::DevicePath;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor, TopologyLevel};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Device, EventSet};
use nvml_wrapper_sys::bindings::{NVML_NVLINK_MAX_LINKS, field_id};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::time::Duration;

pub use xid::FATAL;

const MIB: u64 = 1 << 20;
/// Words of the mask of NUMA nodes that are asked for: 256 nodes.
const NUMA_WORDS: usize = 4;
/// How long to wait before looking again when waiting for events fails at once, as it does beside a lost GPU.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// What slows a GPU down, in words. What only says that it idles or keeps to what was set is left out.
const SLOWED: [(ThrottleReasons, &str); 6] = [
    (ThrottleReasons::SW_POWER_CAP, "power limit"),
    (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "heat"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "heat (hardware)"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake"),
    (ThrottleReasons::SYNC_BOOST, "another GPU of its group"),
];

/// The library, and the GPUs that it showed.
pub struct Nvml {
    /// Loaded once and kept until the process ends: handles of devices and events refer to it.
    library: &'static nvml_wrapper::Nvml,
    gpus: Vec<Gpu>,
    events: Option<EventSet<'static>>,
    fatal: Vec<u64>,
    lacks: BTreeSet<&'static str>,
}

struct Gpu {
    uuid: String,
    device: Device<'static>,
    /// MIG instances with their uuids.
    instances: Vec<(String, Device<'static>)>,
    /// Time of the newest sample of processes that was seen, as the library counts it.
    sampled: u64,
}

impl Nvml {
    /// Loads the library. `fatal` are the XID errors after which a GPU is out of service.
    ///
    /// # Errors
    /// It is not there, or there is no driver that it could talk to.
    pub fn open(path: &str, fatal: &[u64]) -> Result<Self, String> {
        let library = nvml_wrapper::Nvml::builder().lib_path(OsStr::new(path)).init().map_err(|e| match e {
            NvmlError::LibloadingError(e) => e.to_string(),
            e => format!("{path}: {e}"),
        })?;
        let library = Box::leak(Box::new(library));
        Ok(Self { library, gpus: Vec::new(), events: None, fatal: fatal.to_vec(), lacks: BTreeSet::new() })
    }

    /// What a GPU is, and what its instances are.
    fn describe_gpu(&mut self, index: u32) -> Result<(Vec<Found>, Option<String>), NvmlError> {
        let device = self.library.device_by_index(index)?;
        let uuid = device.uuid()?;
        let mut ask = Ask { lacks: &mut self.lacks, lost: false };
        let whole = Found {
            name: device.name()?,
            kind: kind::kind(&device.name()?),
            mem_mib: ask.memory(self.library, &device).map_or(0, |(all, _)| mib(all)),
            pci: ask
                .answer("PCI addresses", device.pci_info())
                .map(|p| p.bus_id)
                .map_or_else(String::new, |p| short(&p)),
            numa: ask
                .answer("NUMA nodes", device.memory_affinity(NUMA_WORDS, 0))
                .and_then(|words| first_bit(&words))
                .unwrap_or(-1),
            uuid: uuid.clone(),
            index,
            ..Found::default()
        };
        let split = ask.answer("MIG", device.mig_mode()).is_some_and(|mode| mode.current == 1);
        let mut instances = Vec::new();
        let mut parts = Vec::new();
        let places = if split { device.mig_device_count()? } else { 0 };
        for instance in (0..places).filter_map(|place| device.mig_device_by_index(place).ok()) {
            let part = Found {
                uuid: instance.uuid()?,
                name: instance.name()?,
                kind: kind::kind(&instance.name()?),
                mem_mib: ask.memory(self.library, &instance).map_or(0, |(all, _)| mib(all)),
                part_of: Some(uuid.clone()),
                ..whole.clone()
            };
            instances.push((part.uuid.clone(), instance));
            parts.push(part);
        }
        let empty = split && parts.is_empty();
        let note = empty.then(|| format!("GPU {index} ({uuid}) has MIG on and no instance: jobs cannot be given it"));
        self.gpus.push(Gpu { uuid, device, instances, sampled: 0 });
        Ok((if split { parts } else { vec![whole] }, note))
    }

    /// Writes the links between whole GPUs into what was found.
    fn link(&mut self, found: &mut [Found]) {
        let ends: Vec<Vec<String>> = self.gpus.iter().map(|gpu| link_ends(&gpu.device)).collect();
        let address: Vec<Option<String>> =
            self.gpus.iter().map(|gpu| gpu.device.pci_info().ok().map(|p| p.bus_id)).collect();
        let mut ask = Ask { lacks: &mut self.lacks, lost: false };
        for one in found.iter_mut().filter(|f| f.part_of.is_none()) {
            let Some(at) = self.gpus.iter().position(|gpu| gpu.uuid == one.uuid) else { continue };
            for (other, gpu) in self.gpus.iter().enumerate().filter(|(other, _)| *other != at) {
                let between = self.gpus[at].device.topology_common_ancestor(raw::copy(&gpu.device));
                let path = ask.answer("the PCI topology", between).map_or(DevicePath::System, path);
                let direct = ends[at].iter().filter(|end| Some(*end) == address[other].as_ref()).count();
                let switched =
                    |from: usize| ends[from].iter().filter(|end| !address.iter().flatten().any(|a| a == *end));
                // Over switches two GPUs have what the one with fewer links has.
                let common = switched(at).count().min(switched(other).count());
                let fast = if direct > 0 { direct } else { common };
                one.links.push(Link { to: gpu.uuid.clone(), fast: fast as u32, path });
            }
        }
    }

    /// Events of all GPUs that have them.
    fn register(&mut self) {
        if self.library.lib().nvmlEventSetWait_v2.is_err() {
            self.lacks.insert("XID errors as they happen");
            return;
        }
        let xid = EventTypes::CRITICAL_XID_ERROR;
        let has = |gpu: &&Gpu| gpu.device.supported_event_types().is_ok_and(|types| types.contains(xid));
        let mut ready: Vec<Device<'static>> = self.gpus.iter().filter(has).map(|gpu| raw::copy(&gpu.device)).collect();
        // A GPU that is refused takes the whole set with it.
        while !ready.is_empty() {
            let Ok(mut set) = self.library.create_event_set() else { break };
            let mut refused = None;
            for (place, device) in ready.iter().enumerate() {
                match device.register_events(xid, set) {
                    Ok(again) => set = again,
                    Err(_) => {
                        refused = Some(place);
                        break;
                    }
                }
                if place + 1 == ready.len() {
                    self.events = Some(set);
                    return;
                }
            }
            if let Some(place) = refused {
                ready.remove(place);
            }
        }
        if !self.gpus.is_empty() {
            self.lacks.insert("XID errors as they happen");
        }
    }
}

impl Driver for Nvml {
    fn describe(&self) -> String {
        let said = |version: Result<String, NvmlError>| version.unwrap_or_else(|_| "unknown".into());
        format!("NVML {}, driver {}", said(self.library.sys_nvml_version()), said(self.library.sys_driver_version()))
    }

    fn find(&mut self) -> Result<(Vec<Found>, Vec<String>), String> {
        let count =
            self.library.device_count().map_err(|e| format!("NVML does not say how many GPUs there are: {e}"))?;
        self.gpus.clear();
        self.events = None;
        let (mut all, mut notes) = (Vec::new(), Vec::new());
        for index in 0..count {
            match self.describe_gpu(index) {
                Ok((found, note)) => {
                    all.extend(found);
                    notes.extend(note);
                }
                Err(e) => notes.push(format!("GPU {index} does not answer: {e}")),
            }
        }
        self.link(&mut all);
        self.register();
        Ok((all, notes))
    }

    fn look(&mut self) -> BTreeMap<String, Reading> {
        let mut all = BTreeMap::new();
        for gpu in &mut self.gpus {
            let reading = read(self.library, gpu, &mut self.lacks);
            for (uuid, instance) in &gpu.instances {
                let mut ask = Ask { lacks: &mut self.lacks, lost: false };
                let memory = ask.memory(self.library, instance);
                // An instance shares the fate of its GPU, and what it uses of it is its own.
                let (utilisation, processes) = (None, Vec::new());
                let mem_used_mib = memory.map(|(_, used)| mib(used));
                let part = Reading { mem_used_mib, utilisation, processes, ..reading.clone() };
                all.insert(uuid.clone(), part);
            }
            all.insert(gpu.uuid.clone(), reading);
        }
        all
    }

    fn wait(&mut self, at_most: Duration) -> Option<Incident> {
        let Some(events) = &self.events else {
            std::thread::sleep(at_most);
            return None;
        };
        let event = match events.wait(u32::try_from(at_most.as_millis()).unwrap_or(u32::MAX)) {
            Ok(event) => event,
            Err(NvmlError::Timeout) => return None,
            Err(_) => {
                std::thread::sleep(at_most.min(AFTER_ERROR));
                return None;
            }
        };
        let gpu = self.gpus.iter().find(|gpu| raw::same(&gpu.device, &event.device))?;
        let uuid = gpu.uuid.clone();
        Some(match event.event_data? {
            XidError::Value(number) => Incident {
                uuid,
                what: format!("XID {number}: {}", xid::words(number)),
                fatal: self.fatal.contains(&number),
            },
            XidError::Unknown => Incident { uuid, what: "an XID error without a number".into(), fatal: false },
        })
    }

    fn lacks(&self) -> Vec<String> {
        self.lacks.iter().map(|what| (*what).to_owned()).collect()
    }
}

/// How one GPU is doing.
fn read(library: &nvml_wrapper::Nvml, gpu: &mut Gpu, lacks: &mut BTreeSet<&'static str>) -> Reading {
    let device = &gpu.device;
    let mut ask = Ask { lacks, lost: false };
    let ecc = |kind| device.total_ecc_errors(kind, EccCounter::Volatile);
    let uncorrectable = ask.answer("ECC errors", ecc(MemoryError::Uncorrected));
    let corrected = ask.answer("ECC errors", ecc(MemoryError::Corrected));
    let slowed = ask.answer("what slows a GPU down", device.current_throttle_reasons());
    let slowed = slowed.unwrap_or(ThrottleReasons::empty());
    let mut reading = Reading {
        ecc: uncorrectable.zip(corrected),
        rows: rows(device, &mut ask),
        slowed: SLOWED.iter().filter(|(bit, _)| slowed.contains(*bit)).map(|(_, words)| *words).collect(),
        utilisation: ask.answer("utilisation", device.utilization_rates()).map(|u| u.gpu),
        mem_used_mib: ask.memory(library, device).map(|(_, used)| mib(used)),
        temperature: ask.answer("temperature", device.temperature(TemperatureSensor::Gpu)),
        power_mw: ask.answer("power", device.power_usage()),
        energy_mj: ask.answer("energy", device.total_energy_consumption()),
        processes: Vec::new(),
        lost: false,
    };
    reading.processes = processes(gpu, &mut ask);
    reading.lost = ask.lost;
    reading
}

fn processes(gpu: &mut Gpu, ask: &mut Ask<'_>) -> Vec<Process> {
    let listed = match gpu.device.running_compute_processes() {
        Err(NvmlError::FailedToLoadSymbol(_)) => gpu.device.running_compute_processes_v2(),
        answer => answer,
    };
    let Some(listed) = ask.answer("processes", listed) else { return Vec::new() };
    let samples = gpu.device.process_utilization_stats(gpu.sampled).unwrap_or_default();
    gpu.sampled = samples.iter().map(|s| s.timestamp).max().unwrap_or(gpu.sampled);
    let process = |p: nvml_wrapper::struct_wrappers::device::ProcessInfo| {
        let of_it = samples.iter().filter(|s| s.pid == p.pid);
        let mem_mib = match p.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(mib(bytes)),
            UsedGpuMemory::Unavailable => None,
        };
        Process { pid: p.pid, mem_mib, utilisation: of_it.max_by_key(|s| s.timestamp).map(|s| s.sm_util) }
    };
    listed.into_iter().map(process).collect()
}

fn rows(device: &Device<'_>, ask: &mut Ask<'_>) -> Option<Rows> {
    let fields = [
        field_id::NVML_FI_DEV_REMAPPED_COR,
        field_id::NVML_FI_DEV_REMAPPED_UNC,
        field_id::NVML_FI_DEV_REMAPPED_PENDING,
        field_id::NVML_FI_DEV_REMAPPED_FAILURE,
    ];
    let answers = ask.answer("remapped rows", device.field_values_for(&fields.map(FieldId)))?;
    let values: Option<Vec<u64>> = answers.into_iter().map(|field| number(field.ok()?.value.ok()?)).collect();
    let [correctable, uncorrectable, pending, failed] = values?.try_into().ok()?;
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Some(Rows {
        correctable: count(correctable),
        uncorrectable: count(uncorrectable),
        pending: pending != 0,
        failed: failed != 0,
    })
}

/// Questions to one GPU: keeps in mind what the library lacks, and whether the GPU is lost.
struct Ask<'a> {
    lacks: &'a mut BTreeSet<&'static str>,
    lost: bool,
}

impl Ask<'_> {
    /// An answer, where there is one; `what` is asked for, in words.
    fn answer<T>(&mut self, what: &'static str, answer: Result<T, NvmlError>) -> Option<T> {
        match &answer {
            Err(NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => drop(self.lacks.insert(what)),
            Err(NvmlError::GpuLost) => self.lost = true,
            _ => {}
        }
        answer.ok()
    }

    /// Memory in bytes: all of it, and what is in use.
    fn memory(&mut self, library: &nvml_wrapper::Nvml, device: &Device<'_>) -> Option<(u64, u64)> {
        let answer = match device.memory_info() {
            Err(NvmlError::FailedToLoadSymbol(_)) => raw::memory(library, device),
            answer => answer.map(|m| (m.total, m.used)),
        };
        self.answer("memory", answer)
    }
}

/// PCI addresses of what the NVLinks of a GPU lead to, as far as they are up.
fn link_ends(device: &Device<'static>) -> Vec<String> {
    let links = (0..NVML_NVLINK_MAX_LINKS).map(|number| device.link_wrapper_for(number));
    let up = links.filter(|link| link.is_active().unwrap_or(false));
    up.filter_map(|link| link.remote_pci_info().ok()).map(|pci| pci.bus_id).collect()
}

fn path(level: TopologyLevel) -> DevicePath {
    match level {
        TopologyLevel::Internal => DevicePath::Board,
        TopologyLevel::Single => DevicePath::Switch,
        TopologyLevel::Multiple => DevicePath::Switches,
        TopologyLevel::HostBridge => DevicePath::HostBridge,
        TopologyLevel::Node => DevicePath::Numa,
        TopologyLevel::System => DevicePath::System,
    }
}

fn number(value: SampleValue) -> Option<u64> {
    match value {
        SampleValue::U32(n) => Some(n.into()),
        SampleValue::U64(n) => Some(n),
        SampleValue::I64(n) => u64::try_from(n).ok(),
        SampleValue::F64(_) => None,
    }
}

fn mib(bytes: u64) -> i64 {
    i64::try_from(bytes / MIB).unwrap_or(i64::MAX)
}

/// A PCI address as the kernel writes it: `0000:1b:00.0`.
fn short(address: &str) -> String {
    let address = address.to_lowercase();
    match address.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 => format!("{}:{rest}", &domain[4..]),
        _ => address,
    }
}

fn first_bit(words: &[std::ffi::c_ulong]) -> Option<i32> {
    let place = words.iter().position(|word| *word != 0)?;
    i32::try_from(place as u32 * std::ffi::c_ulong::BITS + words[place].trailing_zeros()).ok()
}
