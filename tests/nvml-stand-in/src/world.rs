//! The scene as it is at this moment: read anew when its file was replaced, with what time has changed.

use crate::scene::{Device, Event, Mig, Scene};
use nvml_wrapper_sys::bindings as c;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The variable with the path of the scene file.
const VARIABLE: &str = "EPHOR_NVML_SCENE";
/// How often whoever waits for an event looks whether there is one.
const LOOK: Duration = Duration::from_millis(5);

/// A return code other than success.
pub type Code = c::nvmlReturn_t;

static WORLD: Mutex<Option<World>> = Mutex::new(None);

/// See the module.
pub struct World {
    path: PathBuf,
    /// Tells one file from the next.
    stamp: (u64, i64, i64, u64),
    scene: Scene,
    begun: Instant,
    delivered: BTreeSet<Event>,
    watched: BTreeSet<usize>,
}

/// What a handle stands for.
pub enum Thing {
    /// A GPU with its index.
    Gpu(usize, Device),
    /// An instance of that GPU.
    Instance(usize, Device, Mig),
}

/// Reads the scene; `init` of the scene decides whether that goes well.
pub fn open() -> Result<(), Code> {
    let path = PathBuf::from(std::env::var_os(VARIABLE).ok_or(c::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED)?);
    let (stamp, scene) = read(&path).ok_or(c::nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
    if scene.init != 0 {
        return Err(scene.init);
    }
    let world =
        World { path, stamp, scene, begun: Instant::now(), delivered: BTreeSet::new(), watched: BTreeSet::new() };
    WORLD.lock().map_err(|_| c::nvmlReturn_enum_NVML_ERROR_UNKNOWN)?.get_or_insert(world);
    Ok(())
}

/// Asks the world as it is now.
pub fn ask<T>(question: impl FnOnce(&mut World) -> Result<T, Code>) -> Result<T, Code> {
    let mut world = WORLD.lock().map_err(|_| c::nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
    let world = world.as_mut().ok_or(c::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED)?;
    world.refresh();
    question(world)
}

/// Waits for an XID error of a watched device: its index and the number.
pub fn wait(at_most: Duration) -> Result<(usize, u64), Code> {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask(|world| Ok(world.event()))? {
            return Ok(found);
        }
        if begun.elapsed() >= at_most {
            return Err(c::nvmlReturn_enum_NVML_ERROR_TIMEOUT);
        }
        std::thread::sleep(LOOK);
    }
}

impl World {
    fn refresh(&mut self) {
        let now = fs::metadata(&self.path).ok().map(|m| (m.ino(), m.mtime(), m.mtime_nsec(), m.len()));
        if now.is_some_and(|now| now != self.stamp)
            && let Some((stamp, scene)) = read(&self.path)
        {
            (self.stamp, self.scene) = (stamp, scene);
        }
    }

    /// The scene without what time has changed.
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// Since the initialisation.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A GPU as it is now, lost or not.
    pub fn device(&self, index: usize) -> Result<Device, Code> {
        let mut device = self.scene.device.get(index).cloned().ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
        let now = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.scene.change.iter().filter(|change| change.device == index && change.at_ms <= now);
        due.for_each(|change| change.make(&mut device));
        Ok(device)
    }

    /// What a handle stands for.
    ///
    /// # Errors
    /// It is none, or its GPU is lost.
    pub fn thing(&self, handle: c::nvmlDevice_t) -> Result<Thing, Code> {
        let number = (handle as usize).checked_sub(1).ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
        let (index, instance) = (number / 16, number % 16);
        let device = self.device(index)?;
        if device.lost {
            return Err(c::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST);
        }
        if instance == 0 {
            return Ok(Thing::Gpu(index, device));
        }
        let mig = device.mig.as_ref().and_then(|all| all.get(instance - 1)).cloned();
        mig.map(|mig| Thing::Instance(index, device, mig)).ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)
    }

    /// The GPU itself, for what an instance does not answer.
    pub fn gpu(&self, handle: c::nvmlDevice_t) -> Result<Device, Code> {
        match self.thing(handle)? {
            Thing::Gpu(_, device) => Ok(device),
            Thing::Instance(..) => Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        }
    }

    /// Events of this device are delivered from now on.
    pub fn watch(&mut self, index: usize) {
        self.watched.insert(index);
    }

    fn event(&mut self) -> Option<(usize, u64)> {
        let now = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        let is_due = |e: &&Event| e.at_ms <= now && self.watched.contains(&e.device) && !self.delivered.contains(e);
        let event = self.scene.event.iter().find(is_due)?.clone();
        let found = (event.device, event.xid);
        self.delivered.insert(event);
        Some(found)
    }
}

/// The handle of a GPU, or of its instance with that place from 1 on.
pub fn handle(index: usize, instance: usize) -> c::nvmlDevice_t {
    (index * 16 + instance + 1) as c::nvmlDevice_t
}

fn read(path: &PathBuf) -> Option<((u64, i64, i64, u64), Scene)> {
    let file = fs::metadata(path).ok()?;
    match toml::from_str(&fs::read_to_string(path).ok()?) {
        Ok(scene) => Some(((file.ino(), file.mtime(), file.mtime_nsec(), file.len()), scene)),
        Err(e) => {
            eprintln!("nvml stand-in: {} is no scene: {e}", path.display());
            None
        }
    }
}
