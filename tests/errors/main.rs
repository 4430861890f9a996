//! Bad input: what each gets, before anything runs. On the reference executor; the checks are every
//! executor's.

mod arguments;
mod prepare;
mod ranks;
mod support;
mod threads;
