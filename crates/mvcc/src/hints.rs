//! Finding a key in a sorted list without looking at most of its keys.
//!
//! The keys of a list share a prefix; of what follows, eight bytes are kept as a number next to one another. Halving
//! over these numbers touches a few cache lines, where halving over the keys would touch one or more for each step.

/// Numbers in the order of keys that are held elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// How many bytes all keys have in common.
    shared: usize,
    numbers: Vec<u64>,
}

impl Hints {
    /// Where the key is, or where it would be. `key_at` gives the keys of the list.
    pub(crate) fn find<'a>(&self, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> Result<usize, usize> {
        if self.numbers.is_empty() {
            return Err(0);
        }
        let prefix = &key_at(0)[..self.shared];
        let head = &key[..key.len().min(self.shared)];
        if head != prefix {
            return Err(if head < prefix { 0 } else { self.numbers.len() });
        }
        let number = number(&key[self.shared..]);
        let from = self.numbers.partition_point(|n| *n < number);
        let alike = self.numbers[from..].iter().take_while(|n| **n == number).count();
        // Mostly none or one; a list of keys that are alike for long is halved again.
        let (mut low, mut high) = (from, from + alike);
        while low < high {
            let middle = low + (high - low) / 2;
            match key_at(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Takes in that `key` is now at `i`. `key_at` gives the keys of the list with it.
    pub(crate) fn insert<'a>(&mut self, i: usize, key: &[u8], step: usize, key_at: impl Fn(usize) -> &'a [u8]) {
        if self.numbers.len() == self.numbers.capacity() {
            self.numbers.reserve_exact(step);
        }
        let len = self.numbers.len() + 1;
        // Any other key has the prefix of all.
        let other = if i == 0 { len - 1 } else { 0 };
        let shared = if len == 1 { key.len() } else { common(&key_at(other)[..self.shared], key) };
        if shared < self.shared {
            return self.rebuild_with(shared, len, key_at);
        }
        self.shared = shared;
        self.numbers.insert(i, number(&key[shared..]));
    }

    pub(crate) fn rebuild<'a>(&mut self, len: usize, key_at: impl Fn(usize) -> &'a [u8]) {
        self.numbers = Vec::with_capacity(len);
        let shared = if len == 0 { 0 } else { common(key_at(0), key_at(len - 1)) };
        self.rebuild_with(shared, len, key_at);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.numbers.capacity() * 8
    }

    fn rebuild_with<'a>(&mut self, shared: usize, len: usize, key_at: impl Fn(usize) -> &'a [u8]) {
        self.shared = shared;
        self.numbers.clear();
        self.numbers.extend((0..len).map(|i| number(&key_at(i)[shared..])));
    }
}

/// Orders as the bytes do, but for keys that are alike for eight bytes and for zeros at the end.
fn number(rest: &[u8]) -> u64 {
    match rest.first_chunk::<8>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(eight)
        }
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that are prefixes of one another, end in zeros, or differ late are found as in a plain list.
    #[test]
    fn finds_what_halving_finds() {
        let mut random = 3u64;
        let mut next = move |n: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % n
        };
        for round in 0..200 {
            let head = ["", "a", "prefix/", "a-long-one-of-more-than-eight/"][round % 4].as_bytes();
            let mut keys: Vec<Vec<u8>> = Vec::new();
            let mut hints = Hints::default();
            for _ in 0..80 {
                let mut key = if next(8) == 0 { Vec::new() } else { head.to_vec() };
                key.extend((0..next(12)).map(|_| [0, b'a', b'b', 0xff][next(4) as usize]));
                let want = keys.binary_search(&key);
                assert_eq!(hints.find(&key, |i| &keys[i]), want);
                match want {
                    Err(i) => {
                        keys.insert(i, key.clone());
                        hints.insert(i, &key, 4, |i| &keys[i]);
                    }
                    Ok(i) if next(3) == 0 => {
                        keys.remove(i);
                        hints.rebuild(keys.len(), |i| &keys[i]);
                    }
                    Ok(_) => {}
                }
                assert_eq!(hints.numbers.len(), keys.len());
                assert!(hints.numbers.is_sorted());
            }
        }
    }
}
