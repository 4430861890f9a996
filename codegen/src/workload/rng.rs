//! Random numbers that are the same on every machine.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
///
/// Values are made by integer arithmetic and exact or correctly rounded operations alone: no library
/// function whose last bit depends on the platform.
#[derive(Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// An independent stream, a function of this one's state and `key`.
    pub(super) fn fork(&self, key: u64) -> Rng {
        let mut parent = Rng(self.0 ^ key.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Rng(parent.next())
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// In `[0, 1)`, of 24 bits.
    #[inline(always)]
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 * (1.0 / 16_777_216.0)
    }

    /// In `0..n`. The bias of a 64-bit product is far below what a test could see.
    #[inline(always)]
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Once in `n`.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    pub(super) fn pick<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.below(N)]
    }

    /// Nearly normal, of variance 1: the sum of four uniform numbers, so within 3.5.
    #[inline(always)]
    pub(super) fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
        /// Of the sum of four: 65536 / sqrt(3).
        const DEVIATION: f32 = 37_837.228;
        (sum as i32 - 131_070) as f32 * (1.0 / DEVIATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_splitmix64() {
        // The first three outputs of the published generator for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let got = [rng.next(), rng.next(), rng.next()];
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut rng = Rng::new(1);
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = f64::from(rng.normal());
            sum += x;
            squares += x * x;
        }
        assert!((sum / f64::from(n)).abs() < 0.02 && (squares / f64::from(n) - 1.0).abs() < 0.02);
    }

    #[test]
    fn forks_differ_from_each_other_and_from_their_parent() {
        let parent = Rng::new(0);
        let mut seen = std::collections::HashSet::from([parent.clone().next()]);
        assert!((0..1000).all(|key| seen.insert(parent.fork(key).next())));
    }
}
