//! What can be wrong with the source of a pattern.

use super::{Place, Reported, nesting};
use crate::check::{ProblemKind, catalog};
use proc_macro2::TokenStream;

catalog! {
    /// A message about the source of a pattern. Each ends with what to write instead.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum Diagnostic {
        /// Well-formed source that means nothing.
        #[error("{kind}")]
        Problem {
            /// What the checks say.
            kind: ProblemKind,
        },
        /// Not Rust.
        #[error("{message}")]
        Syntax {
            /// What the parser says.
            message: String,
        },
        /// Source that the parser might not come back from.
        #[error("this is nested too deep: a pattern has at most {} levels of brackets, operators in front and keywords, and {} tokens in one statement; name the inner parts with `let`", nesting::LEVELS, nesting::TOKENS)]
        TooDeep {},

        // The attribute.
        /// Not on a fn with a body.
        #[error("`#[fused_pattern]` expects a fn with a body: write `fn name(x: Tokens, …) -> Tokens {{ … }}`")]
        NotAFn {},
        /// On an associated fn.
        #[error("a pattern cannot be in an `impl` or a `trait`, since it becomes a type: write a free fn in front of it")]
        InImpl {},
        /// An option that does not exist.
        #[error("unknown option `{name}`{hint}: expected hidden, top_k, ranks, dtype, wire or crate")]
        UnknownOption {
            /// Its name.
            name: String,
            /// What may have been meant.
            hint: String,
        },
        /// An option given again.
        #[error("`{name}` is given twice: remove one")]
        OptionTwice {
            /// The option.
            name: String,
        },
        /// A value an option cannot have.
        #[error("`{name}` expects {expected}")]
        OptionValue {
            /// The option.
            name: String,
            /// What it expects.
            expected: String,
        },
        /// A dtype that does not exist.
        #[error("unknown dtype `{name}`: write bf16, f16 or f32")]
        UnknownDType {
            /// Its name.
            name: String,
        },
        /// An attribute of the fn that would do nothing.
        #[error("`#[{name}]` has no effect on a pattern: remove it (docs, `cfg` and lint levels are taken over)")]
        OuterAttribute {
            /// Its path.
            name: String,
        },

        // The signature.
        /// A fn whose name gives no type.
        #[error("`{name}` would give the type `{ty}`, which {why}: give the fn another name")]
        PatternName {
            /// The fn's name.
            name: String,
            /// The same in CamelCase.
            ty: String,
            /// What is wrong with it.
            why: &'static str,
        },
        /// `async`, `unsafe`, `const`, `extern`.
        #[error("a pattern cannot be `{what}`: it describes a kernel and is never called; remove `{what}`")]
        Modifier {
            /// The keyword.
            what: &'static str,
        },
        /// `<…>` or `where`.
        #[error("a pattern cannot be generic: sizes and dtypes that the attribute leaves out are bound at `prepare`; remove the parameters")]
        Generics {},
        /// `self`.
        #[error("a pattern has no `self`: write a free fn that takes every tensor as a parameter")]
        Receiver {},
        /// A parameter that is not `name: Type`.
        #[error("a parameter needs a name, which is its field in the bundle, and this is `{pattern}`: write `name: Type`")]
        ParameterPattern {
            /// The pattern.
            pattern: String,
        },
        /// A type that is not one of the pattern types.
        #[error("unknown type `{ty}`{hint}: expected Tokens, Permuted, RowMap, ExpertWeights, Channels, PerToken or Scalar, or an Option of one")]
        UnknownType {
            /// The type.
            ty: String,
            /// What may have been meant.
            hint: String,
        },
        /// `&Tokens`.
        #[error("parameters are taken by value: write `{ty}` without `&`")]
        ReferenceType {
            /// The type behind the reference.
            ty: String,
        },
        /// `Scalar<f32>`, `Tokens<f32, f32>`.
        #[error("`{ty}` takes {takes}: write {instead}")]
        TypeArguments {
            /// The type.
            ty: String,
            /// `no argument` or `one dtype`.
            takes: &'static str,
            /// How it may be written.
            instead: String,
        },
        /// No `->`.
        #[error("a pattern returns what its kernel writes: add `-> Tokens`, or `-> (Tokens, Tokens)` for two outputs")]
        NoReturnType {},
        /// A return type that is not `Tokens`.
        #[error("a pattern returns `Tokens`, `PerToken` or `Quantized`, and this is `{ty}`: write `Tokens`, or `Tokens<f32>` for a dtype of its own")]
        ReturnType {
            /// The type.
            ty: String,
        },
        /// `#[…]` inside the fn.
        #[error("attributes and doc comments are not supported on {on}: remove it, write the comment as `//`, or put `#[cfg]` on the whole fn")]
        InnerAttribute {
            /// What it is on.
            on: &'static str,
        },
        /// `mut` for nothing.
        #[error("parameter `{name}` is `mut` but never assigned: assign to it and return it to update it in place, or remove `mut`")]
        MutNeverAssigned {
            /// The parameter.
            name: String,
        },
        /// An update in place that no one could see.
        #[error("parameter `{name}` is assigned but not returned: return `{name}` to update it in place, or use `let`")]
        MutNotReturned {
            /// The parameter.
            name: String,
        },

        // Statements.
        /// `let (a, b) = …`.
        #[error("`let` takes one name here, and this is `{pattern}`: write `let name = …;`")]
        LetPattern {
            /// The pattern.
            pattern: String,
        },
        /// An operation with several results where one value stands.
        #[error("`{usage}` gives {count} results: take them apart first, `let ({names}) = …;`")]
        SeveralResults {
            /// How it is called.
            usage: String,
            /// How many results it has.
            count: usize,
            /// As many names.
            names: String,
        },
        /// `let x: T`.
        #[error("a `let` takes no type: values are f32 until they are returned; remove `: {ty}`")]
        LetType {
            /// The type.
            ty: String,
        },
        /// `let x;` or `let x = … else`.
        #[error("a `let` takes its value at once, and no `else`: write `let name = …;`")]
        LetValue {},
        /// A statement that computes and drops.
        #[error("this statement has no effect: name its value with `let`, or remove it")]
        NoEffect {},
        /// `-=`, `*=` and the like.
        #[error("`{operator}` is not supported: write `x = x {} …`", .operator.trim_end_matches('='))]
        CompoundAssignment {
            /// The operator.
            operator: String,
        },
        /// Assignment to something that is not a name.
        #[error("only a name can be assigned to: write `x = …` or `x += …`")]
        AssignTarget {},
        /// Assignment to something that is not `mut`.
        #[error("`{name}` is not `mut`: write `let {name} = …` for a new value, or `mut {name}` where it is declared")]
        AssignImmutable {
            /// The name.
            name: String,
        },
        /// Assignment of another shape.
        #[error("`{name}` is {from}, and this makes it {to}: write `let {name} = …` for a new value")]
        AssignShape {
            /// The name.
            name: String,
            /// What it was declared as.
            from: &'static str,
            /// What is assigned to it.
            to: &'static str,
        },
        /// fn, const, use … in the body.
        #[error("items are not supported in a pattern: move them out of the fn; write a constant as a number, or take it as a `Scalar`")]
        Item {},

        // Expressions.
        /// `/`.
        #[error("division is not supported: multiply by the reciprocal, as a number or a `Scalar` or `Channels` parameter")]
        Division {},
        /// `%`, `<<`, `==` and the like.
        #[error("operator `{operator}` is not supported: a pattern has `+`, `-` and `*`")]
        Operator {
            /// The operator.
            operator: String,
        },
        /// A name that is not defined.
        #[error("`{name}` is not a parameter or an earlier `let`{hint}: define it; write a constant as a number or take it as a `Scalar`")]
        Undefined {
            /// The name.
            name: String,
            /// What may have been meant.
            hint: String,
        },
        /// A call of something else.
        #[error("unknown operation `{name}`{hint}: the operations are {operations}")]
        UnknownOperation {
            /// Its name.
            name: String,
            /// What may have been meant.
            hint: String,
            /// All there are.
            operations: String,
        },
        /// Too few or too many operands.
        #[error("this takes {expected} operand{}, and {got} came: write `{usage}`", if *.expected == 1 { "" } else { "s" })]
        OperandCount {
            /// How it is called.
            usage: String,
            /// How many it takes.
            expected: usize,
            /// How many there are.
            got: usize,
        },
        /// A computed value where a parameter is needed.
        #[error("`{operand}` of `{usage}` is read from memory row by row, so it must be a parameter of type `{expected}`, not a computed value")]
        OperandNotAParameter {
            /// How the operation is called.
            usage: String,
            /// Which operand.
            operand: &'static str,
            /// The type it must have.
            expected: &'static str,
        },
        /// `finalize::<…>(…)`.
        #[error("`{name}` takes no type arguments: write `{name}(…)`")]
        CallTypeArguments {
            /// The operation.
            name: String,
        },
        /// `1.0f64`.
        #[error("literals are f32: write `{digits}` without `{suffix}`")]
        LiteralSuffix {
            /// The number.
            digits: String,
            /// Its suffix.
            suffix: String,
        },
        /// Not a decimal number.
        #[error("`{literal}` is not a decimal number: write one, as in `1.0` or `1e-6`")]
        LiteralKind {
            /// The literal.
            literal: String,
        },
        /// A number that f32 turns into infinity or zero.
        #[error("`{literal}` becomes {becomes} as f32: write a number between 1.4e-45 and 3.4e38")]
        LiteralRange {
            /// The literal.
            literal: String,
            /// `infinity` or `zero`.
            becomes: &'static str,
        },
        /// `if`, `match`.
        #[error("`{keyword}` is not supported, as every token takes the same path: take an input that may be absent as an `Option` and add it, or write two patterns")]
        Branch {
            /// `if` or `match`.
            keyword: &'static str,
        },
        /// `for`, `while`, `loop`.
        #[error("loops are not supported, as an operation covers all tokens and channels: write out each step")]
        Loop {},
        /// `x.f()`.
        #[error("method calls are not supported: {instead}")]
        MethodCall {
            /// What to write.
            instead: String,
        },
        /// `m!()`.
        #[error("macros are not supported in a pattern: write out what `{name}!` stands for")]
        Macro {
            /// Its name.
            name: String,
        },
        /// `|x| …`.
        #[error("closures are not supported: write the operations out where they are used")]
        Closure {},
        /// `&x`, `*x`.
        #[error("values are copied, never borrowed: remove `{operator}`")]
        Reference {
            /// The operator.
            operator: &'static str,
        },
        /// `x as f32`.
        #[error("`as` is not supported: arithmetic is f32, and the return type alone says what is stored, as in `-> Tokens<f32>`")]
        Cast {},
        /// `x[0]`, `x.0`.
        #[error("parts of a value cannot be taken: an operation covers all tokens and channels; use the whole value")]
        Part {},
        /// `(a, b)` as a value.
        #[error("a tuple is only the pattern's result: give each value a name with `let`")]
        TupleValue {},
        /// `{ … }`.
        #[error("blocks are not supported: write the statements out, with `let`")]
        Block {},
        /// `return`.
        #[error("`return` is not supported: write the result as the last line, without `return` and `;`")]
        Return {},
        /// Anything else.
        #[error("`{source_text}` is not supported in a pattern: write `let`, `+`, `-`, `*`, numbers and calls of operations")]
        Unsupported {
            /// What it is.
            source_text: String,
        },

        // The result.
        /// No last expression.
        #[error("the body ends without a result: name what the kernel writes in the last line, without `;`, as in `(residual_out, norm_out)`")]
        NoResult {},
        /// A returned value without a name.
        #[error("a result needs a name, which is its field in the bundle: write `let norm_out = …;` and return `norm_out`")]
        ResultNotNamed {},
        /// More or fewer values than types.
        #[error("the return type has {expected} output{}, and the body returns {got}: make them the same", if *.expected == 1 { "" } else { "s" })]
        ResultCount {
            /// How many the return type has.
            expected: usize,
            /// How many there are.
            got: usize,
        },
    }
}

impl Diagnostic {
    /// What the parser says of `tokens`. Of their end it does not know the place: that is their last token.
    pub(super) fn syntax(error: &syn::Error, tokens: &TokenStream) -> Reported {
        let message = error.to_string();
        let last =
            tokens.clone().into_iter().last().filter(|_| message.starts_with("unexpected end of input"));
        let span = last.map_or(error.span(), |token| token.span());
        Diagnostic::Syntax { message }.at(Place { start: span, end: span })
    }
}
