//! The order of permissions in a role, as Go's `sort.Sort` leaves it.
//!
//! etcd adds a permission at the end and sorts by key alone, with a sort that is not stable: among permissions with one
//! key the order is whatever the algorithm makes of it, it is stored, and it decides which of them a later grant finds.
//! The list was in order before, so most of pattern-defeating quicksort (arXiv 2106.05123, as Go has had it since 1.19) cannot happen:
//! up to 12 elements are sorted by insertion, and from 50 on the one that is out of place is shifted, both of which
//! keep the order of equals. In between it is partitioned around medians of three.

const INSERTION_MAX: usize = 12;
const SHIFTING_MIN: usize = 50;

/// Puts the last element into its place among the others, which are in order.
pub(crate) fn place_last<T>(list: &mut [T], less: impl Fn(&T, &T) -> bool) {
    if (INSERTION_MAX + 1..SHIFTING_MIN).contains(&list.len()) {
        let badness_max = usize::BITS - list.len().leading_zeros();
        let range = 0..list.len();
        return Sort { list, less }.sort(range.start, range.end, badness_max);
    }
    let Some(last) = list.len().checked_sub(1) else { return };
    let place = list[..last].partition_point(|other| !less(&list[last], other));
    list[place..].rotate_right(1);
}

struct Sort<'a, T, L> {
    list: &'a mut [T],
    less: L,
}

impl<T, L: Fn(&T, &T) -> bool> Sort<'_, T, L> {
    fn less(&self, a: usize, b: usize) -> bool {
        (self.less)(&self.list[a], &self.list[b])
    }

    /// Sorts `from..to`; after `badness` lopsided partitions by a heap.
    fn sort(&mut self, mut from: usize, mut to: usize, mut badness: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        while to - from > INSERTION_MAX {
            if badness == 0 {
                return self.heap_sort(from, to);
            }
            if !balanced {
                self.scatter(from, to);
                badness -= 1;
            }
            let (pivot, looks_sorted) = self.choose_pivot(from, to);
            if balanced && partitioned && looks_sorted && self.is_sorted(from, to) {
                return;
            }
            // Nothing here is less than what lies before it: equals of the pivot come first, and are done.
            if from > 0 && !self.less(from - 1, pivot) {
                from = self.split_equal(from, to, pivot);
                continue;
            }
            let length = to - from;
            let middle;
            (middle, partitioned) = self.split(from, to, pivot);
            let (left, right) = (middle - from, to - middle);
            balanced = left.min(right) >= length / 8;
            if left < right {
                self.sort(from, middle, badness);
                from = middle + 1;
            } else {
                self.sort(middle + 1, to, badness);
                to = middle;
            }
        }
        self.insertion_sort(from, to);
    }

    fn insertion_sort(&mut self, from: usize, to: usize) {
        for end in from + 1..to {
            let mut at = end;
            while at > from && self.less(at, at - 1) {
                self.list.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    fn is_sorted(&self, from: usize, to: usize) -> bool {
        (from + 1..to).all(|at| !self.less(at, at - 1))
    }

    /// The median of three, and whether they were in order.
    fn choose_pivot(&self, from: usize, to: usize) -> (usize, bool) {
        let quarter = (to - from) / 4;
        let mut three = [from + quarter, from + 2 * quarter, from + 3 * quarter];
        let mut in_order = true;
        for (a, b) in [(0, 1), (1, 2), (0, 1)] {
            if self.less(three[b], three[a]) {
                three.swap(a, b);
                in_order = false;
            }
        }
        (three[1], in_order)
    }

    /// Less than the pivot to the left, the others to the right; the pivot's place, and whether it was so before.
    fn split(&mut self, from: usize, to: usize, pivot: usize) -> (usize, bool) {
        self.list.swap(from, pivot);
        let (mut low, mut high, mut swaps) = (from + 1, to - 1, 0);
        loop {
            while low <= high && self.less(low, from) {
                low += 1;
            }
            while low <= high && !self.less(high, from) {
                high -= 1;
            }
            if low > high {
                self.list.swap(high, from);
                return (high, swaps == 0);
            }
            self.list.swap(low, high);
            (low, high, swaps) = (low + 1, high - 1, swaps + 1);
        }
    }

    /// Equals of the pivot to the left, greater ones to the right; where these begin.
    fn split_equal(&mut self, from: usize, to: usize, pivot: usize) -> usize {
        self.list.swap(from, pivot);
        let (mut low, mut high) = (from + 1, to - 1);
        loop {
            while low <= high && !self.less(from, low) {
                low += 1;
            }
            while low <= high && self.less(from, high) {
                high -= 1;
            }
            if low > high {
                return low;
            }
            self.list.swap(low, high);
            (low, high) = (low + 1, high - 1);
        }
    }

    /// Swaps three elements in the middle with others, chosen by a generator that starts from the length.
    fn scatter(&mut self, from: usize, to: usize) {
        let length = to - from;
        let mask = (1u64 << (usize::BITS - length.leading_zeros())) - 1;
        let (mut random, middle) = (length as u64, from + length / 4 * 2);
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = (random & mask) as usize;
            self.list.swap(at, from + if other >= length { other - length } else { other });
        }
    }

    fn heap_sort(&mut self, from: usize, to: usize) {
        let length = to - from;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(from, root, length);
        }
        for end in (0..length).rev() {
            self.list.swap(from, from + end);
            self.sift_down(from, 0, end);
        }
    }

    fn sift_down(&mut self, first: usize, mut root: usize, end: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.list.swap(first + root, first + child);
            root = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `testdata/sort.txt`: keys, each with the place it was added at, as Go 1.26 left them.
    #[test]
    fn sorts_as_go_does() {
        let mut lengths = std::collections::BTreeSet::new();
        for line in include_str!("../testdata/sort.txt").lines().filter(|line| !line.starts_with('#')) {
            let (added, sorted) = line.split_once(" = ").unwrap();
            let mut list: Vec<(u32, usize)> = Vec::new();
            for (place, key) in added.split(' ').enumerate() {
                list.push((key.parse().unwrap(), place));
                place_last(&mut list, |a, b| a.0 < b.0);
            }
            let found: Vec<_> = list.iter().map(|(_, place)| place.to_string()).collect();
            assert_eq!(found.join(" "), sorted, "{added}");
            lengths.insert(list.len());
        }
        assert!(lengths.contains(&13) && lengths.contains(&49) && lengths.contains(&60), "{lengths:?}");
    }
}
