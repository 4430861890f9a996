//! Element types and their conversions' names.

/// The type of one stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// bfloat16: 8 bits of exponent, 7 of fraction.
    Bf16,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// Two's-complement 32-bit integer; row maps only.
    I32,
    /// OCP 8-bit floating point (E4M3): 4 bits of exponent, 3 of fraction, no infinities; what quantisers give.
    E4m3,
}

/// An element of [`DType::E4m3`], by its bits.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct e4m3(pub u8);

impl e4m3 {
    /// Its value.
    pub fn to_f32(self) -> f32 {
        crate::numerics::from_e4m3(self.0)
    }

    /// To nearest even; what is beyond ±448 becomes that.
    pub fn from_f32(x: f32) -> e4m3 {
        e4m3(crate::numerics::to_e4m3(x))
    }
}

impl DType {
    /// The floating-point types a pattern may be instantiated for.
    pub const FLOATS: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];

    /// Every one.
    pub const ALL: [DType; 5] = [DType::Bf16, DType::F16, DType::F32, DType::I32, DType::E4m3];

    /// Size of one element in bits.
    pub const fn bits(self) -> u32 {
        8 * self.size() as u32
    }

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::E4m3 => 1,
            DType::Bf16 | DType::F16 => 2,
            DType::F32 | DType::I32 => 4,
        }
    }

    /// The name used in attributes, messages and generated code: `bf16`, `f16`, `f32`, `i32`, `e4m3`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bf16 => "bf16",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::I32 => "i32",
            DType::E4m3 => "e4m3",
        }
    }

    /// The type that `name` names, if any.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
