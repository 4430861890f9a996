"""Makes e4m3.txt: the bits of an f32, and of the e4m3 that ml_dtypes converts it to, a line each.

    pip install ml_dtypes==0.6.0 numpy && python3 e4m3.py > e4m3.txt

Clamped to ±448 first, since ml_dtypes has no saturating mode: it makes NaN of what is beyond.
"""

import ml_dtypes
import numpy as np

values = np.arange(0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
middles = (values[:-1] + values[1:]) / 2
points = np.concatenate([values, middles, np.float32([449, 464, 480, 1e9, 3e38, np.inf, 1e-30, 1e-45])])
bits = points.view(np.uint32).astype(np.int64)
near = np.unique(np.concatenate([bits + d for d in (-2, -1, 0, 1, 2)]).clip(0, 0x7F800000)).astype(np.uint32)
samples = np.concatenate([near, near | 0x80000000]).view(np.float32)
converted = np.clip(samples, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
for x, q in zip(samples.view(np.uint32), converted):
    print(f"{x:08x} {q:02x}")
# PTX, and the contract: every NaN is 0x7F.
for x in (0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFC00000, 0xFFFFFFFF):
    print(f"{x:08x} 7f")
