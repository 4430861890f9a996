//! NVRTC's functions, from the very library that was chosen.
//!
//! Not through cudarc, which looks for one by name: where the loader knows another, that would compile. And its
//! results are numbers here, since a newer NVRTC has results that an enum of today lacks.

use libloading::Library;
use std::ffi::{CStr, OsStr, c_char, c_int};

/// A program of NVRTC's.
pub(super) type Program = *mut std::ffi::c_void;

/// What went well.
const SUCCESS: c_int = 0;
/// The source is wrong; the log says where.
pub(super) const COMPILATION: c_int = 6;

macro_rules! functions {
    ($($field:ident: $symbol:literal ($($argument:ty),*) -> $result:ty,)*) => {
        /// The functions that compiling takes.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// From `library`, which is never unloaded.
            ///
            /// # Errors
            /// It cannot be loaded, or is another library.
            pub(super) fn load(library: impl AsRef<OsStr>) -> Result<Functions, libloading::Error> {
                // SAFETY: NVRTC's initialisers are meant to run in any process.
                let library = unsafe { Library::new(library.as_ref()) }?;
                // SAFETY: the signatures are those of NVRTC 12 and 13.
                let functions = unsafe { Functions { $($field: *library.get($symbol)?,)* } };
                std::mem::forget(library);
                Ok(functions)
            }
        }
    };
}

functions! {
    version: b"nvrtcVersion\0" (*mut c_int, *mut c_int) -> c_int,
    count_archs: b"nvrtcGetNumSupportedArchs\0" (*mut c_int) -> c_int,
    archs: b"nvrtcGetSupportedArchs\0" (*mut c_int) -> c_int,
    create: b"nvrtcCreateProgram\0"
        (*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int,
    compile: b"nvrtcCompileProgram\0" (Program, c_int, *const *const c_char) -> c_int,
    log_size: b"nvrtcGetProgramLogSize\0" (Program, *mut usize) -> c_int,
    log: b"nvrtcGetProgramLog\0" (Program, *mut c_char) -> c_int,
    cubin_size: b"nvrtcGetCUBINSize\0" (Program, *mut usize) -> c_int,
    cubin: b"nvrtcGetCUBIN\0" (Program, *mut c_char) -> c_int,
    destroy: b"nvrtcDestroyProgram\0" (*mut Program) -> c_int,
    error_string: b"nvrtcGetErrorString\0" (c_int) -> *const c_char,
}

impl Functions {
    /// What a call answered, in words.
    ///
    /// # Errors
    /// Whatever is not success.
    pub(super) fn result(&self, code: c_int) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: takes any number.
        let text = unsafe { (self.error_string)(code) };
        match text.is_null() {
            true => Err(format!("error {code}")),
            // SAFETY: a C string that is never freed.
            false => Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()),
        }
    }
}
