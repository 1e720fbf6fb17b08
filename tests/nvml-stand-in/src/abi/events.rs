//! Event sets: XID errors as they happen. There is one set, since its one user needs one.

use super::{export, put};
use crate::world::{Thing, ask, handle, wait};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_uint, c_ulonglong};
use std::time::Duration;

/// The handle of the set.
const SET: usize = 1;

export! {
    fn nvmlEventSetCreate(to: *mut c::nvmlEventSet_t) { put(to, SET as c::nvmlEventSet_t) }

    fn nvmlEventSetFree(_set: c::nvmlEventSet_t) { Ok(()) }

    fn nvmlDeviceGetSupportedEventTypes(of: c::nvmlDevice_t, to: *mut c_ulonglong) {
        ask(|world| world.gpu(of))?;
        put(to, c_ulonglong::from(c::nvmlEventTypeXidCriticalError))
    }

    fn nvmlDeviceRegisterEvents(of: c::nvmlDevice_t, types: c_ulonglong, set: c::nvmlEventSet_t) {
        if set as usize != SET || types != c_ulonglong::from(c::nvmlEventTypeXidCriticalError) {
            return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
        }
        ask(|world| match world.thing(of)? {
            Thing::Gpu(index, _) => {
                world.watch(index);
                Ok(())
            }
            Thing::Instance(..) => Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        })
    }

    fn nvmlEventSetWait_v2(set: c::nvmlEventSet_t, to: *mut c::nvmlEventData_t, at_most_ms: c_uint) {
        if set as usize != SET {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        let (index, xid) = wait(Duration::from_millis(at_most_ms.into()))?;
        put(to, c::nvmlEventData_t {
            device: handle(index, 0),
            eventType: c_ulonglong::from(c::nvmlEventTypeXidCriticalError),
            eventData: xid,
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        })
    }
}
