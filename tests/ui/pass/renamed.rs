//! The crate under another name.

use ::seamline as renamed;
use renamed::prelude::*;

#[fused_pattern(crate = renamed)]
pub fn by_relative_path(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(crate = crate::pass::renamed::renamed, hidden = 128)]
pub fn by_absolute_path(x: Tokens) -> Tokens {
    let y = x * x;
    y
}
