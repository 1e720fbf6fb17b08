//! How a GPU is: memory errors, remapped rows, what slows it down.

use super::{export, put};
use crate::world::{Code, ask};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_int, c_ulonglong};

fn ecc(of: c::nvmlDevice_t) -> Result<(u64, u64), Code> {
    ask(|world| world.gpu(of))?.ecc.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)
}

export! {
    fn nvmlDeviceGetEccMode(
        of: c::nvmlDevice_t,
        current: *mut c::nvmlEnableState_t,
        pending: *mut c::nvmlEnableState_t,
    ) {
        ecc(of)?;
        put(current, 1)?;
        put(pending, 1)
    }

    fn nvmlDeviceGetTotalEccErrors(
        of: c::nvmlDevice_t,
        kind: c::nvmlMemoryErrorType_t,
        _counter: c::nvmlEccCounterType_t,
        to: *mut c_ulonglong,
    ) {
        let (uncorrectable, corrected) = ecc(of)?;
        let uncorrected_kind = c::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
        put(to, if kind == uncorrected_kind { uncorrectable } else { corrected })
    }

    fn nvmlDeviceGetFieldValues(of: c::nvmlDevice_t, count: c_int, fields: *mut c::nvmlFieldValue_t) {
        let device = ask(|world| world.gpu(of))?;
        for place in 0..usize::try_from(count).unwrap_or(0) {
            let field = fields.wrapping_add(place).as_mut().ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
            let value = device.remapped.and_then(|(correctable, uncorrectable)| match field.fieldId {
                c::field_id::NVML_FI_DEV_REMAPPED_COR => Some(correctable),
                c::field_id::NVML_FI_DEV_REMAPPED_UNC => Some(uncorrectable),
                c::field_id::NVML_FI_DEV_REMAPPED_PENDING => Some(device.remap_pending.into()),
                c::field_id::NVML_FI_DEV_REMAPPED_FAILURE => Some(device.remap_failed.into()),
                _ => None,
            });
            match value {
                None => field.nvmlReturn = c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
                Some(value) => {
                    field.nvmlReturn = c::nvmlReturn_enum_NVML_SUCCESS;
                    field.valueType = c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT;
                    field.value.uiVal = value;
                }
            }
        }
        Ok(())
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons(of: c::nvmlDevice_t, to: *mut c_ulonglong) {
        put(to, ask(|world| world.gpu(of))?.throttle)
    }
}
