//! Which GPUs reach each other's memory.

use cudarc::driver::sys::cuDeviceCanAccessPeer;
use seamline::cuda;

/// Pairs of the first `count` devices without access, in words.
///
/// # Errors
/// A driver that cannot tell.
pub fn closed(count: usize) -> Result<Vec<String>, seamline::Error> {
    cuda::has(&["cuDeviceCanAccessPeer"])?;
    let pairs = (0..count as i32).flat_map(|a| (0..count as i32).map(move |b| (a, b)));
    let closed = pairs.filter(|&(a, b)| a != b && !can_access(a, b));
    Ok(closed.map(|(a, b)| format!("{a} to {b}")).collect())
}

fn can_access(from: i32, to: i32) -> bool {
    let mut can = 0;
    // SAFETY: the driver is loaded and started, since it has counted its devices, and a device's handle is its ordinal. It
    // writes one int.
    unsafe { cuDeviceCanAccessPeer(&mut can, from, to) }.result().is_ok() && can == 1
}
