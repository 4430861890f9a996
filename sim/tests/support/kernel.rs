//! Small kernels, written by hand, and the memory that they run on.
#![allow(dead_code, reason = "each test takes a part")]

use seamline_sim::{AccessRole, DEVICE_LAYER, Launch, Library, Options, Range, Report, SimError, Source};
use std::sync::Arc;

/// Builds `body` as the kernel `kernel`, with arguments of up to four pointers.
pub fn build(body: &str) -> Result<Arc<Library>, SimError> {
    build_with("", body)
}

/// The same, with functions that it may call.
pub fn build_with(functions: &str, body: &str) -> Result<Arc<Library>, SimError> {
    let text = format!(
        "#line 1 \"{}\"\n{}\n\
         struct Words {{ u32 w[4]; }};\n\
         #define POLL(p) ({{ Words v; device::exchange_load16(v.w, p, true); v; }})\n\
         #define PUSH(p, ...) ({{ const u32 w[4] = {{__VA_ARGS__}}; device::exchange_push16(p, w); }})\n\
         #line 1 \"functions.cu\"\n\
         {functions}\n\
         #line 1 \"test.cu\"\n\
         struct Args {{ u32 *a, *b, *c, *d; }};\n\
         SEAMLINE_KERNEL(1024, 1) kernel(SEAMLINE_PARAM Args args) {{\n{body}\n}}\n",
        DEVICE_LAYER.0, DEVICE_LAYER.1
    );
    Library::build(&Source { pattern: "test", text: &text, entries: &["kernel"] })
}

/// Words, aligned as a GPU's memory is.
pub struct Memory(Vec<u128>);

impl Memory {
    pub fn new(words: usize, word: u32) -> Memory {
        let mut memory = Memory(vec![0; words.div_ceil(4)]);
        memory.words_mut().fill(word);
        memory
    }

    pub fn words(&self) -> &[u32] {
        // SAFETY: u32 has no invalid values and a lower alignment; the length is the same in bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 4) }
    }

    pub fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 4) }
    }

    /// All of it, for one use.
    pub fn range(&mut self, name: &'static str, usage: AccessRole) -> Range {
        Range { name: name.into(), start: self.0.as_mut_ptr() as u64, bytes: self.0.len() as u64 * 16, usage }
    }
}

/// A launch of `kernel` on rank 0, whose arguments are `memory` in order.
pub fn launch(library: &Arc<Library>, blocks: u32, threads: u32, memory: Vec<Range>) -> Launch {
    let library = Arc::clone(library);
    let mut args = memory.iter().map(|r| r.start).collect::<Vec<_>>();
    args.resize(4, 0);
    Launch {
        library,
        entry: "kernel".into(),
        rank: 0,
        grid: (blocks, 1),
        cluster: 1,
        threads,
        dependent: false,
        args,
        memory,
    }
}

pub fn run(launches: &[Launch], options: &Options) -> Result<Report, SimError> {
    // SAFETY: `launch` passes what the kernels' `Args` are made of, and the ranges are buffers that the tests hold.
    unsafe { seamline_sim::run(launches, options) }
}
