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

/// By its [`name`](DType::name), or as PyTorch and a model's `config.json` call it: `bfloat16`, `float16` or `half`, `float32`
/// or `float`, `int32` or `int`, `float8_e4m3fn`, each with or without `torch.` before it.
///
/// ```
/// # use seamline_codegen::DType;
/// let dtype: DType = "bfloat16".parse()?;
/// assert_eq!(dtype, DType::Bf16);
/// assert_eq!("torch.float16".parse(), Ok(DType::F16));
/// # Ok::<(), seamline_codegen::UnknownDType>(())
/// ```
impl std::str::FromStr for DType {
    type Err = UnknownDType;

    fn from_str(name: &str) -> Result<DType, UnknownDType> {
        match name.strip_prefix("torch.").unwrap_or(name) {
            "bfloat16" => Ok(DType::Bf16),
            "float16" | "half" => Ok(DType::F16),
            "float32" | "float" => Ok(DType::F32),
            "int32" | "int" => Ok(DType::I32),
            "float8_e4m3fn" => Ok(DType::E4m3),
            _ => DType::from_name(name).ok_or_else(|| UnknownDType { name: name.to_owned() }),
        }
    }
}

/// A name that is no [`DType`]'s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no dtype: use bfloat16, float16, float32, int32 or float8_e4m3fn")]
#[non_exhaustive]
pub struct UnknownDType {
    /// What came.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dtype_is_known_by_every_name_of_its_own_and_no_other() {
        for (names, dtype) in [
            (&["bf16", "bfloat16", "torch.bfloat16"][..], DType::Bf16),
            (&["f16", "float16", "half", "torch.float16", "torch.half"], DType::F16),
            (&["f32", "float32", "float", "torch.float32"], DType::F32),
            (&["i32", "int32", "int", "torch.int32"], DType::I32),
            (&["e4m3", "float8_e4m3fn", "torch.float8_e4m3fn"], DType::E4m3),
        ] {
            for name in names {
                assert_eq!(name.parse(), Ok(dtype), "{name}");
            }
        }
        for name in ["", "BF16", "torch.", "torch.bf16", "float64", " float32", "float8_e5m2"] {
            let error = name.parse::<DType>().unwrap_err();
            assert_eq!(error.name, name);
            assert!(error.to_string().starts_with(&format!("`{name}` is no dtype: use bfloat16")), "{error}");
        }
    }
}
