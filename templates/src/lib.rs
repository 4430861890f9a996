//! The hand-written half of [seamline](https://docs.rs/seamline)'s CUDA: plain C++ templates over a policy struct, which
//! the generator writes. They can be read, compiled and run without it.

/// A source file: the name that compilers report, and its text.
pub type File = (&'static str, &'static str);

macro_rules! file {
    ($name:literal) => {
        (concat!("seamline/", $name), include_str!(concat!("../cuda/", $name)))
    };
}

/// What is PTX or a CUDA builtin; the only part that a CPU needs a twin of.
pub const DEVICE: File = file!("device.cuh");

/// Everything else, in the order in which the files build on each other.
pub const PORTABLE: [File; 7] = [
    file!("prelude.cuh"),
    file!("finalize.cuh"),
    file!("row.cuh"),
    file!("exchange.cuh"),
    file!("local.cuh"),
    file!("one_shot.cuh"),
    file!("owner.cuh"),
];
