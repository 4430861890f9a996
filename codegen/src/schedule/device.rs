//! What launches are shaped for.

/// What ranks must have in common of their devices; geometry depends on the multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceModel {
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub sms: u32,
}

impl DeviceModel {
    /// What is assumed where there is no device: the simulator, and `show`.
    pub const H200: DeviceModel = DeviceModel { capability: (9, 0), sms: 132 };
}
