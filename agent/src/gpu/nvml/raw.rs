//! The few calls of NVML that have no safe wrapper; the only module of the GPU code with `unsafe` in it.
#![allow(unsafe_code, reason = "calls of NVML that its wrapper leaves out; each says why it is sound")]

use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::nvmlMemory_t;

/// Memory in bytes by the first form of the call, which every driver has: all of it, and what is in use.
///
/// # Errors
/// As the library says.
pub fn memory(nvml: &Nvml, device: &Device<'_>) -> Result<(u64, u64), NvmlError> {
    let call = nvml_sym(nvml.lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut memory = nvmlMemory_t { total: 0, free: 0, used: 0 };
    // SAFETY: the handle is alive as long as the library, which `nvml` keeps loaded; the place to write to is ours.
    nvml_try(unsafe { call(device.handle(), &mut memory) })?;
    Ok((memory.total, memory.used))
}

/// Whether two handles are of one device; unlike its uuid this can be told of one that is lost.
pub fn same(a: &Device<'_>, b: &Device<'_>) -> bool {
    // SAFETY: the handles are compared and not used.
    unsafe { a.handle() == b.handle() }
}

/// The same handle once more: some calls take theirs by value.
pub fn copy(device: &Device<'static>) -> Device<'static> {
    // SAFETY: it is alive as long as the library, which is never unloaded.
    unsafe { Device::new(device.handle(), device.nvml()) }
}
