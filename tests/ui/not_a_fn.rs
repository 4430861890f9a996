use seamline::prelude::*;

#[fused_pattern]
struct Pattern;

fn main() {}
