//! The library itself: coming up, versions, the GPUs by index.

use super::{export, put, put_text};
use crate::world::{ask, handle, open};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_char, c_int, c_uint};

export! {
    fn nvmlInit_v2() { open() }

    fn nvmlShutdown() { Ok(()) }

    fn nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) {
        let version = ask(|world| Ok(world.scene().driver.clone()))?;
        put_text(to, length, &version)
    }

    fn nvmlSystemGetNVMLVersion(to: *mut c_char, length: c_uint) {
        let version = ask(|world| Ok(world.scene().nvml.clone()))?;
        put_text(to, length, &version)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) { put(to, 12_040) }

    fn nvmlDeviceGetCount_v2(to: *mut c_uint) {
        let count = ask(|world| Ok(world.scene().device.len()))?;
        put(to, count as c_uint)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut c::nvmlDevice_t) {
        let lost = ask(|world| Ok(world.device(index as usize)?.lost))?;
        if lost {
            return Err(c::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST);
        }
        put(to, handle(index as usize, 0))
    }
}
