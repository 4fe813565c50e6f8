//! Reproducible random numbers: a seed gives the same numbers on every machine.
#![warn(missing_docs)]

/// SplitMix64 (Steele, Lea, Flood 2014): a small and fast generator, good enough for random choices
/// and for spreading timeouts. Its numbers are predictable: do not use it for secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns a generator whose numbers depend on `seed` alone. Every seed is valid, also 0.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns a number from the full range of `u64`.
    #[expect(clippy::should_implement_trait, reason = "an iterator ends, and this does not")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`. Panics if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns true with a probability of `often` %: never at 0, always from 100 on.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// Returns true with a probability of 1 in `n`. Panics if `n` is 0.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns `len` random bytes. Each takes one call of [`Random::next`].
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Returns one of the elements, each with equal probability, or `None` if `from` is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len() as u64) as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds appear in test names, files and bug reports, so their numbers must never change.
    #[test]
    fn a_seed_gives_the_published_numbers() {
        let mut random = Random::new(1234567);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(numbers, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn stays_within_bounds_and_reaches_them() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 6)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&6)));
        assert!((0..1000).all(|_| !random.percent(0) && random.percent(100) && random.one_in(1)));
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!(random.pick(&["only"]), Some(&"only"));
    }
}
