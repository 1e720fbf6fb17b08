//! What a GPU or an instance is, and what it does at this moment.

use super::{export, put, put_list, put_text};
use crate::scene::Device;
use crate::world::{Code, Thing, ask, handle};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_char, c_uint, c_ulong, c_ulonglong};

const MIB: u64 = 1 << 20;

/// Memory of a GPU or an instance in bytes: all of it, and what is in use.
fn memory(of: c::nvmlDevice_t) -> Result<(u64, u64), Code> {
    ask(|world| match world.thing(of)? {
        Thing::Gpu(_, device) => Ok((device.memory_mib * MIB, device.memory_used_mib * MIB)),
        Thing::Instance(_, _, mig) => Ok((mig.memory_mib * MIB, mig.memory_used_mib * MIB)),
    })
}

fn gpu(of: c::nvmlDevice_t) -> Result<Device, Code> {
    ask(|world| world.gpu(of))
}

export! {
    fn nvmlDeviceGetName(of: c::nvmlDevice_t, to: *mut c_char, length: c_uint) {
        let name = ask(|world| match world.thing(of)? {
            Thing::Gpu(_, device) => Ok(device.name),
            Thing::Instance(_, device, mig) => Ok(format!("{} MIG {}", device.name, mig.profile)),
        })?;
        put_text(to, length, &name)
    }

    fn nvmlDeviceGetUUID(of: c::nvmlDevice_t, to: *mut c_char, length: c_uint) {
        let uuid = ask(|world| match world.thing(of)? {
            Thing::Gpu(_, device) => Ok(device.uuid),
            Thing::Instance(_, _, mig) => Ok(mig.uuid),
        })?;
        put_text(to, length, &uuid)
    }

    fn nvmlDeviceGetIndex(of: c::nvmlDevice_t, to: *mut c_uint) {
        let index = ask(|world| match world.thing(of)? {
            Thing::Gpu(index, _) | Thing::Instance(index, _, _) => Ok(index),
        })?;
        put(to, index as c_uint)
    }

    fn nvmlDeviceGetMemoryInfo(of: c::nvmlDevice_t, to: *mut c::nvmlMemory_t) {
        let (total, used) = memory(of)?;
        put(to, c::nvmlMemory_t { total, free: total - used, used })
    }

    fn nvmlDeviceGetMemoryInfo_v2(of: c::nvmlDevice_t, to: *mut c::nvmlMemory_v2_t) {
        let (total, used) = memory(of)?;
        let version = (size_of::<c::nvmlMemory_v2_t>() | (2 << 24)) as c_uint;
        if to.is_null() || (*to).version != version {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        put(to, c::nvmlMemory_v2_t { version, total, reserved: 0, free: total - used, used })
    }

    fn nvmlDeviceGetMemoryAffinity(of: c::nvmlDevice_t, size: c_uint, to: *mut c_ulong, _scope: c_uint) {
        let numa = gpu(of)?.numa.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)?;
        for word in 0..size {
            let set = if word == numa / c_ulong::BITS { 1 << (numa % c_ulong::BITS) } else { 0 };
            put(to.wrapping_add(word as usize), set)?;
        }
        Ok(())
    }

    fn nvmlDeviceGetMigMode(of: c::nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint) {
        let on = c_uint::from(gpu(of)?.mig.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED).map(|_| true)?);
        put(current, on)?;
        put(pending, on)
    }

    fn nvmlDeviceGetMaxMigDeviceCount(of: c::nvmlDevice_t, to: *mut c_uint) {
        let most = gpu(of)?.mig.map_or(0, |_| 7);
        put(to, most)
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(of: c::nvmlDevice_t, place: c_uint, to: *mut c::nvmlDevice_t) {
        let instance = ask(|world| match world.thing(of)? {
            Thing::Gpu(index, device) if device.mig.as_ref().is_some_and(|m| m.len() > place as usize) => {
                Ok(handle(index, place as usize + 1))
            }
            _ => Err(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND),
        })?;
        put(to, instance)
    }

    fn nvmlDeviceGetUtilizationRates(of: c::nvmlDevice_t, to: *mut c::nvmlUtilization_t) {
        let device = gpu(of)?;
        if device.mig.is_some() {
            // With MIG on there are no such rates.
            return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
        }
        put(to, c::nvmlUtilization_t { gpu: device.utilisation, memory: device.utilisation / 2 })
    }

    fn nvmlDeviceGetTemperature(of: c::nvmlDevice_t, _sensor: c_uint, to: *mut c_uint) {
        put(to, gpu(of)?.temperature)
    }

    fn nvmlDeviceGetPowerUsage(of: c::nvmlDevice_t, to: *mut c_uint) {
        put(to, gpu(of)?.power_mw)
    }

    fn nvmlDeviceGetTotalEnergyConsumption(of: c::nvmlDevice_t, to: *mut c_ulonglong) {
        let used = ask(|world| {
            let device = world.gpu(of)?;
            let since = u64::try_from(world.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(device.energy_mj + device.energy_mj_per_s.saturating_mul(since) / 1000)
        })?;
        put(to, used)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(
        of: c::nvmlDevice_t,
        count: *mut c_uint,
        to: *mut c::nvmlProcessInfo_v2_t,
    ) {
        let all = gpu(of)?.process.into_iter().map(|p| c::nvmlProcessInfo_v2_t {
            pid: p.pid,
            usedGpuMemory: p.memory_mib * MIB,
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        });
        put_list(to, count, all.collect())
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(
        of: c::nvmlDevice_t,
        count: *mut c_uint,
        to: *mut c::nvmlProcessInfo_t,
    ) {
        let all = gpu(of)?.process.into_iter().map(|p| c::nvmlProcessInfo_t {
            pid: p.pid,
            usedGpuMemory: p.memory_mib * MIB,
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        });
        put_list(to, count, all.collect())
    }

    fn nvmlDeviceGetProcessUtilization(
        of: c::nvmlDevice_t,
        to: *mut c::nvmlProcessUtilizationSample_t,
        count: *mut c_uint,
        _since: c_ulonglong,
    ) {
        let all: Vec<_> = gpu(of)?.process.into_iter().map(|p| c::nvmlProcessUtilizationSample_t {
            pid: p.pid,
            timeStamp: 1,
            smUtil: p.utilisation,
            memUtil: p.utilisation / 2,
            encUtil: 0,
            decUtil: 0,
        }).collect();
        if all.is_empty() {
            return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
        }
        put_list(to, count, all)
    }
}
