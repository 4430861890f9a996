//! The floating-point environment of a run: to nearest even, subnormals kept (contract rule 1).

/// Sets it for this OS thread, and puts back what was there. A host program may have flushed subnormals for its own use.
pub(crate) struct Environment {
    #[cfg(target_arch = "x86_64")]
    saved: u32,
}

/// All exceptions masked, to nearest, neither flush-to-zero nor denormals-are-zero.
#[cfg(target_arch = "x86_64")]
const DEFAULT: u32 = 0x1F80;

impl Environment {
    pub fn set() -> Environment {
        #[cfg(target_arch = "x86_64")]
        {
            let mut saved = 0u32;
            // SAFETY: SSE is part of x86-64; the store and the load are of four bytes each.
            unsafe {
                std::arch::asm!("stmxcsr [{}]", in(reg) &mut saved, options(nostack));
                std::arch::asm!("ldmxcsr [{}]", in(reg) &DEFAULT, options(nostack, readonly));
            }
            Environment { saved }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Environment {}
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: as in `set`.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &self.saved, options(nostack, readonly));
        }
    }
}
