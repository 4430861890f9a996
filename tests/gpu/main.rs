//! Kernels on a GPU: the bits of the reference, the exchange, capture, faults, and what bad input gets there.
//!
//! Without a GPU every test says that it is skipped. They run one after the other: ranks that share a device
//! must all fit on it.
#![cfg(feature = "cuda")]

mod arithmetic;
mod bits;
mod covering;
mod device;
mod exchange;
mod fork;
mod input;
mod one_grid;
mod pairs;
mod patterns;
mod quantised;
mod random;
mod streams;
mod strides;
mod support;
mod weights;
