//! In a process of its own, since it changes the environment.
#![cfg(feature = "cuda")]

use seamline_runtime::ErrorKind;
use seamline_runtime::cuda::{__private::locate, nvrtc};

#[test]
fn a_path_that_holds_no_nvrtc_is_named() {
    // SAFETY: the only test of this process; nothing else reads the environment yet.
    unsafe { std::env::set_var(locate::PATH_VARIABLE, "/nowhere/at/all") };
    let error = nvrtc::compile("extern \"C\" __global__ void k() {}", "sm_90a").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoNvrtc { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("SEAMLINE_NVRTC_PATH=/nowhere/at/all (which holds no libnvrtc)"), "{text}");
    assert!(text.contains("pip install nvidia-cuda-nvrtc"), "{text}");
}
