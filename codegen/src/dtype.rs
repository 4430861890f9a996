//! Element types and their conversions' names.

/// The type of one stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// bfloat16: 8 bits of exponent, 7 of fraction.
    Bf16,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// Two's-complement 32-bit integer; row maps only.
    I32,
}

impl DType {
    /// The floating-point types a pattern may be instantiated for.
    pub const FLOATS: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bf16 | DType::F16 => 2,
            DType::F32 | DType::I32 => 4,
        }
    }

    /// The name used in attributes, messages and generated code: `bf16`, `f16`, `f32`, `i32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bf16 => "bf16",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::I32 => "i32",
        }
    }

    /// The type that `name` names, if any.
    pub fn from_name(name: &str) -> Option<DType> {
        [DType::Bf16, DType::F16, DType::F32, DType::I32].into_iter().find(|d| d.name() == name)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
