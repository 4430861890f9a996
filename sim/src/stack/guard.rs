//! The page at the end of a stack that nothing may touch.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Larger pages would leave too little of a stack.
const LARGEST_PAGE: usize = 16 << 10;
/// `MADV_GUARD_INSTALL` of Linux 6.13: a guard inside a map.
#[cfg(target_os = "linux")]
const INSTALL: libc::c_int = 102;

/// Makes the page at `start` one that ends the process when touched, if the system has room for it.
///
/// # Safety
/// `start` is aligned to a page and is memory of the caller's that nobody uses.
pub(super) unsafe fn install(start: usize) {
    let Some(page) = page() else { return };
    let at = start as *mut libc::c_void;
    // SAFETY: the caller vouches for the page.
    #[cfg(target_os = "linux")]
    if unsafe { libc::madvise(at, page, INSTALL) } == 0 {
        return;
    }
    // Elsewhere a guard splits the map that it is in, and there may be so many.
    if take_one() {
        // SAFETY: as above. If it fails there is no guard, which the caller can do without.
        unsafe { libc::mprotect(at, page, libc::PROT_NONE) };
    }
}

fn page() -> Option<usize> {
    // SAFETY: no memory is involved.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).ok().filter(|page| (1..=LARGEST_PAGE).contains(page))
}

/// Takes one of the guards that may be made at the cost of two maps each: half of all maps are for others.
fn take_one() -> bool {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    TAKEN.fetch_add(1, Ordering::Relaxed) < most_maps() / 4
}

fn most_maps() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or(65530)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;

    #[test]
    fn a_guard_lets_nobody_in_and_its_neighbours_do() {
        let page = page().unwrap();
        let memory = MmapMut::map_anon(3 * page).unwrap();
        let start = memory.as_ptr() as usize;
        // SAFETY: the page is the test's own, and nothing looks into it but the system.
        unsafe { install(start + page) };
        // The system says for each page whether it may be read, where reading it would end the test.
        let is_read = |at: usize| {
            let mut pipe = [0; 2];
            // SAFETY: the pipe is the test's own; `write` answers EFAULT for an address that cannot be read.
            unsafe {
                assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
                let written = libc::write(pipe[1], at as *const libc::c_void, 1);
                libc::close(pipe[0]);
                libc::close(pipe[1]);
                written == 1
            }
        };
        assert_eq!([0, 1, 2].map(|i| is_read(start + i * page)), [true, false, true]);
    }
}
