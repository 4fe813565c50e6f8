//! Chunks: a long count cut into runs that are short enough to lose.

/// Some numbers in a row, such as seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// From 1.
    pub number: u64,
    pub first: u64,
    pub count: u64,
}

/// Cuts `total` numbers from `first` on; the last chunk takes what is left.
pub(super) fn cut(first: u64, total: u64, count_max: u64) -> Vec<Chunk> {
    let count_max = count_max.max(1);
    let chunk = |i: u64| {
        let done = i * count_max;
        Chunk { number: i + 1, first: first + done, count: count_max.min(total - done) }
    };
    (0..total.div_ceil(count_max)).map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_number_once() {
        for (total, count_max) in [(0, 10), (1, 10), (10, 10), (25, 10), (100_000, 1_000), (3, 0)] {
            let chunks = cut(7, total, count_max);
            let numbers: Vec<u64> = chunks.iter().flat_map(|c| c.first..c.first + c.count).collect();
            assert_eq!(numbers, (7..7 + total).collect::<Vec<_>>(), "{total} by {count_max}");
        }
    }

    #[test]
    fn the_last_chunk_is_shorter() {
        let chunks = cut(1, 25, 10);
        assert_eq!(chunks[2], Chunk { number: 3, first: 21, count: 5 });
        assert_eq!(chunks.len(), 3);
    }
}
