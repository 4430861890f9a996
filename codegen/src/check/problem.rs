//! What can be wrong with a graph.

use crate::DType;

super::catalog! {
    /// What is wrong with a graph. Every message ends with what to do.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ProblemKind {
        /// A dim in the attribute is not one a kernel can be made for.
        #[error("`{dim} = {got}` is out of range: give 1 to {max}")]
        DimOutOfRange {
            /// `hidden`, `top_k` or `ranks`.
            dim: &'static str,
            /// What the attribute says.
            got: u32,
            /// The most.
            max: u32,
        },
        /// The attribute fixes something that the pattern does not have.
        #[error("`{dim}` is fixed, but the pattern has no {needs}: remove `{dim}`")]
        DimWithoutUse {
            /// `top_k`, `ranks` or `wire`.
            dim: &'static str,
            /// What would use it.
            needs: String,
        },
        /// The attribute's dtype is not one activations or the wire can have.
        #[error("`{dim} = {got}` is not supported: write bf16, f16 or f32")]
        DimDType {
            /// `dtype` or `wire`.
            dim: &'static str,
            /// What the attribute says.
            got: DType,
        },
        /// A parameter or output of a dtype that it cannot have.
        #[error("`{ty}<{got}>` is not supported: write {instead}")]
        UnsupportedDType {
            /// The type.
            ty: &'static str,
            /// Its argument.
            got: DType,
            /// What to write.
            instead: String,
        },
        /// A parameter of a type that only results have.
        #[error("`{ty}` is what a quantiser gives, and no operation reads it: take the rows as `Tokens`")]
        ResultType {
            /// The type.
            ty: &'static str,
        },
        /// `Option` of a type that cannot be absent.
        #[error("`Option<{ty}>` is not supported: {instead}")]
        UnsupportedOption {
            /// The type.
            ty: &'static str,
            /// What to write.
            instead: &'static str,
        },
        /// A name that another field of the bundle has.
        #[error("`{name}` is also the name of {by}, and the bundle has a field for each: rename one{hint}")]
        NameTaken {
            /// The name.
            name: String,
            /// What has it already.
            by: &'static str,
            /// What else may have been meant.
            hint: &'static str,
        },
        /// More arguments than a kernel takes.
        #[error("the pattern has {got} parameters and outputs, and {max} is the most: split it in two patterns")]
        TooManyArguments {
            /// How many there are; one that is in place counts once.
            got: usize,
            /// The most.
            max: usize,
        },
        /// A parameter that nothing reads.
        #[error("parameter `{name}` is never read: use it or remove it")]
        UnusedParameter {
            /// Its name.
            name: String,
        },
        /// A `mut` parameter whose memory is only written.
        #[error("`{name}` is overwritten before it is read: remove the parameter and write `let {name} = …`, which makes it an output")]
        InPlaceNeverRead {
            /// Its name.
            name: String,
        },
        /// A value that nothing reads and that is not returned.
        #[error("{value} is never used: use it, return it or remove it")]
        UnusedValue {
            /// Its name, in backticks, or `this value`.
            value: String,
        },
        /// A parameter that only an operation can read, used as a value.
        #[error("`{name}` is of type `{ty}`, which no arithmetic reads: pass it to `{operation}`")]
        NotAValue {
            /// The parameter.
            name: String,
            /// Its type.
            ty: &'static str,
            /// What takes it.
            operation: String,
        },
        /// A parameter of the wrong type for an operation.
        #[error("`{operand}` of `{usage}` takes a parameter of type `{expected}`, and `{name}` is of type `{got}`: pass one of type `{expected}`")]
        OperandType {
            /// How the operation is called.
            usage: String,
            /// Which operand.
            operand: &'static str,
            /// The type it must have.
            expected: &'static str,
            /// The parameter.
            name: String,
            /// The type it has.
            got: &'static str,
        },
        /// A value of the wrong shape for an operation.
        #[error("`{operand}` of `{usage}` must be {expected}, and this is {got}: pass a value of that shape")]
        OperandShape {
            /// How the operation is called.
            usage: String,
            /// Which operand.
            operand: &'static str,
            /// The shapes it may have.
            expected: String,
            /// The shape it has.
            got: &'static str,
        },
        /// An `Option` where a value is needed.
        #[error("`{name}` may be absent, and {user} needs a value: an `Option` can only be added or subtracted, as in `x + {name}`")]
        OptionalOperand {
            /// The parameter.
            name: String,
            /// What needs a value.
            user: String,
        },
        /// `a + b` where both may be absent.
        #[error("`{left}` and `{right}` may both be absent, which leaves no value: add each to something that is always there, as in `x + {left} + {right}`")]
        BothOptional {
            /// The left operand.
            left: String,
            /// The right operand.
            right: String,
        },
        /// `a + b` where the shape depends on whether `b` is there.
        #[error("`{name}` is {got} and may be absent, so the shape of this sum would depend on it: add it to something that is {got} without it")]
        OptionalWidens {
            /// The optional parameter.
            name: String,
            /// Its shape.
            got: &'static str,
        },
        /// A collective of what another one returned.
        #[error("this `{second}` depends on an earlier `{first}`, and a kernel exchanges once: sum everything before one `{first}`, or return a value between them and make the rest a second pattern")]
        DependentCollectives {
            /// The earlier one.
            first: &'static str,
            /// The later one.
            second: &'static str,
        },
        /// More collectives than a kernel has exchanges.
        #[error("this is collective {got} of the pattern, and this version of seamline supports {max}: add the values before one collective, or make two patterns")]
        TooManyCollectives {
            /// Which one it is, counted from 1.
            got: usize,
            /// The most.
            max: usize,
        },
        /// A quantised value where a number is needed.
        #[error("`{name}` is quantised for storage, and {user} needs a value: return it, and compute with what it was made of")]
        QuantizedOperand {
            /// The value.
            name: String,
            /// What needs a value.
            user: String,
        },
        /// A returned value of another shape than its type.
        #[error("`{name}` is {got}, and is returned as {declared}: {instead}")]
        OutputShape {
            /// The output.
            name: String,
            /// Its shape, or that it is quantised.
            got: &'static str,
            /// The type in the return type, and what that is.
            declared: String,
            /// What to write.
            instead: String,
        },
        /// An `Option` returned as it is.
        #[error("`{name}` may be absent, so it cannot be returned: add it to something that is always there")]
        OptionalOutput {
            /// The output.
            name: String,
        },
        /// The same value in two outputs.
        #[error("`{name}` is the same value as `{first}`, which is already returned: return it once")]
        ReturnedTwice {
            /// The later output.
            name: String,
            /// The earlier one.
            first: String,
        },
        /// A parameter that cannot be written in place.
        #[error("`{name}` is of type `{ty}`, and only `Tokens` can be updated in place: remove `mut` and give the result a name with `let`")]
        InPlaceType {
            /// The parameter.
            name: String,
            /// Its type.
            ty: &'static str,
        },
        /// Read as one dtype, written as another, in the same memory.
        #[error("`{name}` is updated in place, but is `{read}` as a parameter and `{written}` as a result: make them the same, or return it under another name")]
        InPlaceDType {
            /// The parameter.
            name: String,
            /// The parameter's type.
            read: String,
            /// The type in the return type.
            written: String,
        },
    }
    beyond source {
        /// A graph that no source text gives: made by hand, with ids that name nothing.
        #[error("the graph does not hold together: {what}: take graphs from `#[fused_pattern]` or the parser")]
        Malformed {
            /// What is wrong.
            what: String,
        },
    }
}
