//! The floating-point environment of a worker thread.

/// Puts the calling thread into the environment that Rust assumes: round to nearest even, subnormals
/// kept, no traps.
///
/// A thread inherits its parent's control register, and libraries built with fast-math set
/// flush-to-zero in it when they are loaded. One such library in the process would change the
/// reference's bits.
pub(super) fn restore() {
    #[cfg(target_arch = "x86_64")]
    {
        /// All exceptions masked, everything else off: the value at reset.
        const MXCSR: u32 = 0x1F80;
        // SAFETY: the instruction only reads the constant, and establishes what the language assumes to
        // hold anyway.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &MXCSR, options(nostack, readonly));
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: zero is the register's value at reset, and what the language assumes to hold anyway.
    unsafe {
        std::arch::asm!("msr fpcr, {}", in(reg) 0u64, options(nostack, nomem));
    }
}
