//! Types and operations match by their last segment: nothing needs to be imported.

#[::seamline::fused_pattern]
pub fn qualified(
    x: seamline::dsl::Tokens,
    w: ::seamline::prelude::Channels<::seamline::dsl::bf16>,
    bias: ::core::option::Option<seamline::dsl::Channels>,
) -> (::seamline::dsl::Tokens,) {
    let y = seamline::dsl::rms_norm(::seamline::dsl::all_reduce(x), w, 1e-6) + bias;
    (y,)
}
