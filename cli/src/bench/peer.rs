//! Other implementations of the seam, in shared libraries: the Rust side of `cli/peers/seamline_peer.h`.

use super::graph::Launch;
use super::seam::{Seam, Way};
use anyhow::{Context, Result, bail};
use cudarc::driver::CudaStream;
use libloading::Symbol;
use std::ffi::{CStr, c_char, c_float, c_int, c_long, c_void};
use std::path::Path;

const RANKS: usize = 8;

/// `struct seamline_seam`.
#[repr(C)]
struct RawSeam {
    ranks: c_int,
    tokens: c_int,
    hidden: c_int,
    top_k: c_int,
    rows: c_long,
    gemm2_out: [u64; RANKS],
    row_map: [u64; RANKS],
    weights: [u64; RANKS],
    weights_bf16: [u64; RANKS],
    shared: [u64; RANKS],
    residual_in: [u64; RANKS],
    gamma: [u64; RANKS],
    residual_out: [u64; RANKS],
    norm_out: [u64; RANKS],
    eps: c_float,
    pdl: c_int,
}

/// A loaded library.
pub struct Library(libloading::Library);

impl Library {
    /// Loads the library at `path`.
    pub fn open(path: &Path) -> Result<Library> {
        // SAFETY: the user names the library, and with that vouches for its initialisers.
        let library = unsafe { libloading::Library::new(path) };
        Ok(Library(library.with_context(|| format!("cannot load the peer `{}`", path.display()))?))
    }

    /// A function of the header.
    fn function<T>(&self, name: &str) -> Result<Symbol<'_, T>> {
        // SAFETY: callers name the types that the header declares.
        unsafe { self.0.get(name.as_bytes()) }.with_context(|| format!("the peer has no `{name}`"))
    }

    /// Its ways through `seam`, with and without programmatic dependent launch.
    pub fn ways<'a>(&'a self, seam: &'a Seam) -> Result<Vec<Way<'a>>> {
        let count = self.function::<unsafe extern "C" fn() -> c_int>("seamline_peer_count")?;
        let name = self.function::<unsafe extern "C" fn(c_int) -> *const c_char>("seamline_peer_name")?;
        // SAFETY: as the header declares it.
        let count = unsafe { count() };
        let mut ways = Vec::new();
        for way in 0..count {
            // SAFETY: `way` is below the count; names are static C strings.
            let name = unsafe { CStr::from_ptr(name(way)) }.to_string_lossy().into_owned();
            for pdl in [true, false] {
                let name = format!("{name}{}", if pdl { ", PDL" } else { "" });
                ways.push(Way { name, ours: false, launch: self.launch(seam, way, pdl)? });
            }
        }
        Ok(ways)
    }

    fn launch<'a>(
        &'a self,
        seam: &'a Seam,
        way: c_int,
        pdl: bool,
    ) -> Result<Result<Box<Launch<'a>>, String>> {
        let open = self
            .function::<unsafe extern "C" fn(c_int, *const RawSeam) -> *mut c_void>("seamline_peer_open")?;
        let queue = self.function::<Queue>("seamline_peer_launch")?;
        let close = self.function::<Close>("seamline_peer_close")?;
        let raw = RawSeam::new(seam, pdl)?;
        // SAFETY: `raw` is the header's struct, and the library copies it.
        let state = unsafe { open(way, &raw) };
        if state.is_null() {
            return Ok(Err("cannot run this case, or its CTAs would not all be resident".to_owned()));
        }
        let state = State { state, queue, close };
        Ok(Ok(Box::new(move |rank| state.queue(rank, seam.stream(rank)))))
    }
}

type Queue = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void) -> c_int;
type Close = unsafe extern "C" fn(*mut c_void);

/// An open way of a library.
struct State<'a> {
    state: *mut c_void,
    queue: Symbol<'a, Queue>,
    close: Symbol<'a, Close>,
}

impl State<'_> {
    fn queue(&self, rank: usize, stream: &CudaStream) -> Result<()> {
        // SAFETY: the state is open until `self` is dropped; the stream is the rank's.
        match unsafe { (self.queue)(self.state, rank as c_int, stream.cu_stream().cast()) } {
            0 => Ok(()),
            error => bail!("the peer's launch failed with CUDA error {error}"),
        }
    }
}

impl Drop for State<'_> {
    fn drop(&mut self) {
        // SAFETY: it was opened once, and this closes it once.
        unsafe { (self.close)(self.state) }
    }
}

impl RawSeam {
    fn new(seam: &Seam, pdl: bool) -> Result<RawSeam> {
        let ranks = seam.ranks.len();
        anyhow::ensure!(ranks <= RANKS, "peers have at most {RANKS} ranks");
        let each = |f: fn(&super::seam::Addresses) -> u64| {
            let mut all = [0; RANKS];
            for (to, rank) in all.iter_mut().zip(&seam.ranks) {
                *to = f(rank);
            }
            all
        };
        Ok(RawSeam {
            ranks: ranks as c_int,
            tokens: seam.tokens as c_int,
            hidden: seam.hidden as c_int,
            top_k: seam.top_k as c_int,
            rows: seam.rows as c_long,
            gemm2_out: each(|r| r.gemm2_out),
            row_map: each(|r| r.row_map),
            weights: each(|r| r.weights),
            weights_bf16: each(|r| r.weights_bf16),
            shared: each(|r| r.shared),
            residual_in: each(|r| r.residual_in),
            gamma: each(|r| r.gamma),
            residual_out: each(|r| r.residual_out),
            norm_out: each(|r| r.norm_out),
            eps: seam.eps,
            pdl: pdl.into(),
        })
    }
}
