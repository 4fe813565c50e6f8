//! Who watches a key: a map for single keys, an interval tree for ranges.

use bytes::Bytes;

use crate::{End, KeyRange};

#[expect(clippy::disallowed_types, reason = "looked up by key, never iterated")]
type Points = std::collections::HashMap<Bytes, Vec<u32>>;

/// Watchers of type `T`, found by key.
#[derive(Debug)]
pub(crate) struct Interest<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    points: Points,
    ranges: Tree,
}

/// Names a watcher until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

impl<T> Default for Interest<T> {
    fn default() -> Self {
        Interest { slots: Vec::new(), free: Vec::new(), points: Points::default(), ranges: Tree::default() }
    }
}

impl<T> Interest<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.slots.get(slot.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.slots.get_mut(slot.0 as usize)?.as_mut()
    }

    /// Those that are taken now.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let taken = |(at, slot): (usize, &Option<T>)| slot.as_ref().map(|_| Slot(at as u32));
        self.slots.iter().enumerate().filter_map(taken).collect()
    }

    pub(crate) fn insert(&mut self, key: &Bytes, range_end: &Bytes, watcher: T) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(watcher);
        match KeyRange::new(key, range_end).end {
            End::Point => self.points.entry(key.clone()).or_default().push(slot),
            _ => self.ranges.insert(key, range_end, slot),
        }
        Slot(slot)
    }

    pub(crate) fn remove(&mut self, key: &Bytes, range_end: &Bytes, slot: Slot) -> Option<T> {
        let watcher = self.slots.get_mut(slot.0 as usize)?.take()?;
        self.free.push(slot.0);
        match KeyRange::new(key, range_end).end {
            End::Point => {
                if let Some(slots) = self.points.get_mut(key) {
                    slots.retain(|s| *s != slot.0);
                    if slots.is_empty() {
                        self.points.remove(key);
                    }
                }
            }
            _ => self.ranges.remove(key, range_end, slot.0),
        }
        Some(watcher)
    }

    /// Calls `f` on each watcher of a key.
    pub(crate) fn each(&self, key: &[u8], f: &mut dyn FnMut(Slot, &T)) {
        let mut give = |slots: &[u32]| {
            for &slot in slots {
                if let Some(watcher) = self.get(Slot(slot)) {
                    f(Slot(slot), watcher);
                }
            }
        };
        if let Some(slots) = self.points.get(key) {
            give(slots);
        }
        self.ranges.stab(self.ranges.root, key, &mut give);
    }
}

const NONE: u32 = u32::MAX;

/// A treap of ranges by start and end. Each node knows how far the ranges below it reach, so those that hold a key are
/// found without visiting the others. Equal ranges share a node.
#[derive(Debug)]
struct Tree {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    /// Decides the shape; counts up, so that two runs build the same tree.
    seed: u64,
}

#[derive(Debug, Default)]
struct Node {
    start: Bytes,
    end: Reach,
    reach: Reach,
    priority: u64,
    left: u32,
    right: u32,
    slots: Vec<u32>,
}

/// The end of a range; one without end is the largest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Before(Bytes),
    #[default]
    Open,
}

impl Reach {
    fn is_after(&self, key: &[u8]) -> bool {
        match self {
            Reach::Before(end) => key < &end[..],
            Reach::Open => true,
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Tree { nodes: Vec::new(), free: Vec::new(), root: NONE, seed: 0 }
    }
}

impl Tree {
    fn insert(&mut self, start: &Bytes, range_end: &Bytes, slot: u32) {
        let end = reach_of(range_end);
        if let Some(node) = self.find(start, &end) {
            return self.nodes[node as usize].slots.push(slot);
        }
        let node = self.new_node(start.clone(), end.clone(), slot);
        let (left, right) = self.split(self.root, start, &end);
        let left = self.join(left, node);
        self.root = self.join(left, right);
    }

    fn remove(&mut self, start: &Bytes, range_end: &Bytes, slot: u32) {
        let end = reach_of(range_end);
        let Some(node) = self.find(start, &end) else { return };
        let slots = &mut self.nodes[node as usize].slots;
        slots.retain(|s| *s != slot);
        if slots.is_empty() {
            self.root = self.unlink(self.root, start, &end);
            self.nodes[node as usize] = Node::default();
            self.free.push(node);
        }
    }

    fn stab(&self, at: u32, key: &[u8], give: &mut dyn FnMut(&[u32])) {
        let Some(node) = self.nodes.get(at as usize) else { return };
        if !node.reach.is_after(key) {
            return;
        }
        self.stab(node.left, key, give);
        if &node.start[..] <= key {
            if node.end.is_after(key) {
                give(&node.slots);
            }
            self.stab(node.right, key, give);
        }
    }

    fn find(&self, start: &Bytes, end: &Reach) -> Option<u32> {
        let mut at = self.root;
        while let Some(node) = self.nodes.get(at as usize) {
            at = match (start, end).cmp(&(&node.start, &node.end)) {
                std::cmp::Ordering::Less => node.left,
                std::cmp::Ordering::Equal => return Some(at),
                std::cmp::Ordering::Greater => node.right,
            };
        }
        None
    }

    fn new_node(&mut self, start: Bytes, end: Reach, slot: u32) -> u32 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let node = Node {
            start,
            reach: end.clone(),
            end,
            priority: z ^ (z >> 31),
            left: NONE,
            right: NONE,
            slots: vec![slot],
        };
        match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// Those before the range, and those from it on.
    fn split(&mut self, at: u32, start: &Bytes, end: &Reach) -> (u32, u32) {
        let Some(node) = self.nodes.get(at as usize) else { return (NONE, NONE) };
        let (left, right) = (node.left, node.right);
        if (&node.start, &node.end) < (start, end) {
            let (middle, rest) = self.split(right, start, end);
            self.nodes[at as usize].right = middle;
            self.update(at);
            (at, rest)
        } else {
            let (rest, middle) = self.split(left, start, end);
            self.nodes[at as usize].left = middle;
            self.update(at);
            (rest, at)
        }
    }

    fn join(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return if left == NONE { right } else { left };
        }
        if self.nodes[left as usize].priority > self.nodes[right as usize].priority {
            let joined = self.join(self.nodes[left as usize].right, right);
            self.nodes[left as usize].right = joined;
            self.update(left);
            left
        } else {
            let joined = self.join(left, self.nodes[right as usize].left);
            self.nodes[right as usize].left = joined;
            self.update(right);
            right
        }
    }

    /// The tree below `at` without the node of a range.
    fn unlink(&mut self, at: u32, start: &Bytes, end: &Reach) -> u32 {
        let Some(node) = self.nodes.get(at as usize) else { return NONE };
        let (left, right) = (node.left, node.right);
        match (start, end).cmp(&(&node.start, &node.end)) {
            std::cmp::Ordering::Equal => return self.join(left, right),
            std::cmp::Ordering::Less => self.nodes[at as usize].left = self.unlink(left, start, end),
            std::cmp::Ordering::Greater => self.nodes[at as usize].right = self.unlink(right, start, end),
        }
        self.update(at);
        at
    }

    fn update(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let below = |child: u32| self.nodes.get(child as usize).map(|n| &n.reach);
        let reach = [below(node.left), below(node.right)].into_iter().flatten().fold(&node.end, Ord::max).clone();
        self.nodes[at as usize].reach = reach;
    }
}

fn reach_of(range_end: &Bytes) -> Reach {
    if **range_end == [0] { Reach::Open } else { Reach::Before(range_end.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(n: u64) -> Bytes {
        Bytes::copy_from_slice(format!("{n:02}").as_bytes())
    }

    /// Random inserts and removals give what a plain list gives.
    #[test]
    fn finds_what_a_list_finds() {
        let mut random = 7u64;
        let mut next = move |n: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % n
        };
        let mut interest = Interest::<u64>::default();
        let mut list: Vec<(Bytes, Bytes, Slot, u64)> = Vec::new();
        for id in 0..3000 {
            if next(3) == 0 && !list.is_empty() {
                let (key, end, slot, id) = list.swap_remove(next(list.len() as u64) as usize);
                assert_eq!(interest.remove(&key, &end, slot), Some(id));
                assert_eq!(interest.remove(&key, &end, slot), None);
            } else {
                let key = bytes(next(40));
                let end = match next(4) {
                    0 => Bytes::new(),
                    1 => Bytes::from_static(b"\0"),
                    _ => bytes(next(40)),
                };
                let slot = interest.insert(&key, &end, id);
                list.push((key, end, slot, id));
            }
            let key = bytes(next(42));
            let mut found = Vec::new();
            interest.each(&key, &mut |_, id| found.push(*id));
            found.sort();
            let holds = |(k, e, _, _): &&(Bytes, Bytes, Slot, u64)| KeyRange::new(k, e).contains(&key);
            let mut want: Vec<u64> = list.iter().filter(holds).map(|w| w.3).collect();
            want.sort();
            assert_eq!(found, want);
        }
        for (key, end, slot, _) in list {
            interest.remove(&key, &end, slot);
        }
        assert!(interest.is_empty());
        assert!(interest.points.is_empty());
        assert_eq!(interest.ranges.root, NONE);
    }
}
