//! The device layer's own division and root, against IEEE for every operand.

use super::support::gpu;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use seamline::cuda::nvrtc;
use seamline_templates::DEVICE;

/// Counts the operands for which `got` is not what the compiler's IEEE operations give; NaN is NaN.
const KERNELS: &str = r#"
template <class F> __device__ void sweep(u32* wrong, F differs) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 bits = (u64)blockIdx.x * blockDim.x + threadIdx.x; bits < 1ull << 32; bits += step)
    if (differs(__uint_as_float((u32)bits))) {
      atomicAdd(wrong, 1);
      wrong[1] = (u32)bits;
    }
}
__device__ bool differ(float got, float expected) {
  return __float_as_uint(got) != __float_as_uint(expected) && !(got != got && expected != expected);
}
extern "C" __global__ void inverse_sqrt(u32* wrong) {
  sweep(wrong, [](float x) { return differ(device::inverse_sqrt(x), __frcp_rn(__fsqrt_rn(x))); });
}
extern "C" __global__ void divide(u32* wrong, float b) {
  sweep(wrong, [=](float a) {
    return __float_as_uint(a) != 0x80000000u && differ(device::divide(a, b), __fdiv_rn(a, b));
  });
}
"#;

/// Powers of two, sizes that models have, the ends of the range, and some of no kind.
fn divisors() -> Vec<u32> {
    let powers = (0..=16).map(|i| 1 << i);
    let models = [576, 1001, 1032, 1536, 2688, 2880, 3840, 5120, 6144, 7168, 12_288, 18_432];
    let ends = [3, 5, 7, 9, 11, 13, 4095, 4097, 65_531, 65_533, 65_535];
    let others = (1..=24).map(|i| (2_654_435_761u32.wrapping_mul(i) % 65_536) | 1);
    powers.chain(models).chain(ends).chain(others).collect()
}

#[test]
fn division_and_root_are_ieee_for_every_operand() {
    let Some(gpu) = gpu() else { return };
    let attribute = |which| gpu.context.attribute(which).unwrap();
    let (major, minor) = (
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    );
    let source = format!("#line 1 \"{}\"\n{}\n{KERNELS}", DEVICE.0, DEVICE.1);
    let compiled = nvrtc::compile(&source, &format!("sm_{major}{minor}")).unwrap();
    let module = gpu.context.load_module(Ptx::from_binary(compiled.cubin.clone())).unwrap();
    let stream = gpu.context.new_stream().unwrap();
    let config = LaunchConfig { grid_dim: (4096, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let sweep = |kernel: &str, operand: Option<f32>| {
        let function = module.load_function(kernel).unwrap();
        let mut wrong = stream.alloc_zeros::<u32>(2).unwrap();
        let mut launch = stream.launch_builder(&function);
        launch.arg(&mut wrong);
        if let Some(operand) = &operand {
            launch.arg(operand);
        }
        // SAFETY: the kernel takes these arguments, and writes two words.
        unsafe { launch.launch(config) }.unwrap();
        let wrong = stream.clone_dtoh(&wrong).unwrap();
        assert_eq!(wrong[0], 0, "{kernel} {operand:?}: the bits {:#010x}, for one", wrong[1]);
    };
    sweep("inverse_sqrt", None);
    let divisors = divisors();
    assert!(divisors.len() >= 64 && divisors.iter().max() == Some(&65_536));
    divisors.iter().for_each(|b| sweep("divide", Some(*b as f32)));
    println!("1 / sqrt(x) and a / b for {} divisors: every operand", divisors.len());
}
