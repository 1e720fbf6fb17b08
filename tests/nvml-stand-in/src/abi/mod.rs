//! The C symbols: from pointers to questions and back. Each does what the real function of that name is documented to
//! do, as far as somebody asks for it.
#![allow(
    unsafe_code,
    reason = "a C library is called with pointers; the caller vouches for them, null ones are refused"
)]

mod device;
mod events;
mod health;
mod links;
mod system;

use crate::world::Code;
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_char, c_uint};

/// Exports functions whose bodies give `Ok(())` or a return code.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the names are NVIDIA's")]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            let done = || -> Result<(), $crate::world::Code> {
                // SAFETY: the caller vouches for its pointers, as for those of the real library.
                #[allow(unused_unsafe, reason = "some bodies have no pointers")]
                unsafe { $body }
            };
            done().err().unwrap_or(nvml_wrapper_sys::bindings::nvmlReturn_enum_NVML_SUCCESS)
        }
    )*};
}
use export;

/// Gives a value to the caller.
///
/// # Safety
/// `to` is null or may be written to.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { to.write(value) };
    Ok(())
}

/// Gives a text to the caller, with a NUL behind it.
///
/// # Safety
/// `to` is null or has `length` bytes.
unsafe fn put_text(to: *mut c_char, length: c_uint, text: &str) -> Result<(), Code> {
    if to.is_null() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for the text and one byte more.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Gives a list to the caller, who says in `count` for how many there is room, and learns there how many there are.
///
/// # Safety
/// `count` is null or may be read and written; `to` is null or has room for `count` values.
unsafe fn put_list<T>(to: *mut T, count: *mut c_uint, values: Vec<T>) -> Result<(), Code> {
    if count.is_null() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: not null.
    let room = unsafe { count.read() } as usize;
    // SAFETY: as above.
    unsafe { count.write(values.len() as c_uint) };
    if values.len() > room {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (place, value) in values.into_iter().enumerate() {
        // SAFETY: there is room for so many.
        unsafe { put(to.wrapping_add(place), value)? };
    }
    Ok(())
}
