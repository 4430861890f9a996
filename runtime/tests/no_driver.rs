//! What a machine without a GPU gets.
#![cfg(feature = "cuda")]

use seamline_runtime::{ErrorKind, cuda};

#[test]
fn without_a_driver_there_is_an_error_and_no_panic() {
    match cuda::present() {
        Ok(()) => assert!(cuda::driver_version().unwrap() >= 11_080, "a driver that knows clusters"),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::NoDriver { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("libcuda.so.1") && text.contains("Group::simulated"), "{text}");
            assert!(matches!(cuda::context(0).unwrap_err().kind(), ErrorKind::NoDriver { .. }));
            // SAFETY: without a driver nobody looks at it.
            let raw = unsafe { cuda::raw_context(std::ptr::null_mut()) };
            assert!(matches!(raw.unwrap_err().kind(), ErrorKind::NoDriver { .. }));
            assert!(matches!(cuda::driver_version().unwrap_err().kind(), ErrorKind::NoDriver { .. }));
        }
    }
}
