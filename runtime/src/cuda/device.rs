//! What a device is, as far as kernels care.

use super::{DriverContext, partition};
use crate::error::{Error, ErrorKind};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use seamline_codegen::schedule::DeviceModel;

/// Hopper.
const OLDEST: (u32, u32) = (9, 0);

/// A device that kernels can run on.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What launches are shaped by.
    pub model: DeviceModel,
    /// What kernels are compiled for.
    pub arch: String,
    /// The most that its memory can move.
    pub peak_bytes_per_second: Option<f64>,
}

impl Device {
    /// Asks the device of `context`.
    ///
    /// # Errors
    /// [`ErrorKind::OldDevice`], or a driver that fails.
    pub fn of(context: &CudaContext) -> Result<Device, Error> {
        let ask =
            |attribute| context.attribute(attribute).doing(|| format!("asking the device for {attribute:?}"));
        let number = |attribute| ask(attribute).map(|n| n.max(0) as u32);
        let name = context.name().doing(|| "asking the device for its name".into())?;
        let capability = (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        supported(&name, capability)?;
        context.bind_to_thread().doing(|| "binding the device's context".into())?;
        let all = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let model = DeviceModel { capability, sms: partition::multiprocessors(context, all) };
        // In kHz and bits; memory moves twice a cycle. Some devices answer zero.
        let clock = number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bits = number(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        let peak = f64::from(clock) * 1e3 * 2.0 * f64::from(bits) / 8.0;
        Ok(Device {
            name,
            model,
            arch: arch(capability),
            peak_bytes_per_second: (peak > 0.0).then_some(peak),
        })
    }
}

/// Refuses what has no clusters or no dependent launches.
fn supported(device: &str, capability: (u32, u32)) -> Result<(), ErrorKind> {
    match capability >= OLDEST {
        true => Ok(()),
        false => Err(ErrorKind::OldDevice { device: device.to_owned(), capability }),
    }
}

/// The architecture to compile for: the real one, so that the driver compiles nothing.
///
/// ```
/// # use seamline_runtime::cuda::__private::arch;
/// assert_eq!(arch((9, 0)), "sm_90a");
/// assert_eq!(arch((12, 0)), "sm_120");
/// ```
pub fn arch((major, minor): (u32, u32)) -> String {
    match major {
        9 | 10 => format!("sm_{major}{minor}a"),
        _ => format!("sm_{major}{minor}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_hopper_is_refused_by_name() {
        for capability in [(9, 0), (10, 0), (10, 3), (12, 0), (13, 5)] {
            assert_eq!(supported("a GPU", capability), Ok(()));
        }
        for capability in [(8, 9), (8, 0), (7, 5), (0, 0)] {
            let error = supported("NVIDIA A100", capability).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains(&format!(
                    "NVIDIA A100 has compute capability {}.{}",
                    capability.0, capability.1
                )),
                "{text}"
            );
            assert!(text.contains("kernels need 9.0 (Hopper) or newer"), "{text}");
        }
    }
}
