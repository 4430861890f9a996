//! The `#[fused_pattern]` attribute of [seamline](https://docs.rs/seamline).
//!
//! Thin: parsing, checking and the messages are in `seamline-codegen`, where the command uses them too.

mod expand;

use proc_macro::TokenStream;

/// Turns a fn into a fused kernel: `fn my_seam(…)` becomes the type `MySeam: Pattern` and its bundle
/// `MySeamArgs<'a>`.
///
/// The body is a description: it is never called, and computes on the types of `seamline::dsl`.
///
/// # Options
/// `#[fused_pattern(hidden = 7168, top_k = 8, dtype = bf16)]`; all may be left out.
///
/// | option | fixes | otherwise |
/// |---|---|---|
/// | `hidden = 7168` | channels of a token | bound at `prepare` |
/// | `top_k = 8` | experts of a token | bound at `prepare` |
/// | `dtype = bf16` | dtype of every type without `<…>`: `bf16`, `f16` or `f32` | bound at `prepare` |
/// | `ranks = 8` | size of the group | the group's |
/// | `wire = f32` | dtype that travels between ranks | the pattern's dtype |
/// | `crate = path` | where the `seamline` crate is: `crate = seam` for `seam = { package = "seamline", … }` | `::seamline` |
///
/// # Body
/// `let name = …;`, `name += …;`, `+ - *`, unary minus, decimal numbers, and calls of the operations
/// (`finalize`, `all_reduce`, `rms_norm`). The last line names what is returned, as in
/// `(residual_out, norm_out)`. A `mut` parameter that is assigned and returned is updated in place. A
/// statement has at most 1000 tokens and nests at most 40 levels deep.
///
/// Types and operations are known by the last segment of their path, whatever is in front (`dsl::all_reduce(x)`,
/// `renamed::prelude::all_reduce(x)`): a macro does not see imports. The compiler then resolves the path, and refuses one that
/// leads nowhere. A fn of your own that has the name of an operation is taken for the operation, so give it another name.
/// `Option` is `core`'s, in the signature and in the bundle.
///
/// # Generated
/// - the type, with the fn's name in CamelCase, its docs and visibility, a `Pattern`;
/// - the bundle: `tokens`, one field per parameter, and one per result that is not in place. So parameters and results have
///   names of their own, and none is `tokens`.
///
/// Docs, `cfg` and lint levels of the fn are taken over; other attributes are errors, as is a fn in an `impl` or a `trait`.
/// Parameters take no docs: what their fields say comes from their types.
#[proc_macro_attribute]
pub fn fused_pattern(attr: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attr.into(), item.into()).into()
}
