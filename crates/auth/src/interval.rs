//! Ranges of keys, and whether they cover another one.
//!
//! For a range whose end lies behind its begin any correct method gives one answer. Clients may also ask for a range that
//! ends before it begins; etcd then answers by what its walk through a red-black tree happens to meet, and a
//! transaction that holds such a range is applied or refused by that answer. So the tree is built and walked here as
//! there ("Introduction to Algorithms", 3rd ed., chapter 13; the greatest end below each node as in chapter 14.3).

use std::cmp::Ordering;

use bytes::Bytes;

/// How ranges that begin alike are put into the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they come: etcd before 3.7.
    Begin,
    /// By their end: etcd since 3.7.
    BeginAndEnd,
}

/// From `begin` to before `end`. An empty bound lies behind all keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interval {
    pub begin: Bytes,
    pub end: Bytes,
}

impl Interval {
    pub(crate) fn new(begin: &[u8], end: &[u8]) -> Interval {
        Interval { begin: Bytes::copy_from_slice(begin), end: Bytes::copy_from_slice(end) }
    }

    pub(crate) fn point(key: &[u8]) -> Interval {
        Interval::new(key, &[key, b"\0"].concat())
    }

    /// Which side of `other` it is on; `Equal` if they meet. Where bounds are the wrong way round, the order of the
    /// questions decides.
    fn side(&self, other: &Interval) -> Ordering {
        if compare(&self.begin, &other.begin).is_lt() && compare(&self.end, &other.begin).is_le() {
            Ordering::Less
        } else if compare(&self.begin, &other.end).is_ge() {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }
}

pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    a.is_empty().cmp(&b.is_empty()).then_with(|| a.cmp(b))
}

const LEFT: usize = 0;
const RIGHT: usize = 1;
/// The place of the node that stands for none, and is black.
const NIL: usize = 0;

struct Node {
    interval: Interval,
    /// The greatest end of it and of all below it.
    max: Bytes,
    children: [usize; 2],
    parent: usize,
    red: bool,
}

impl Node {
    fn new(interval: Interval, parent: usize, red: bool) -> Node {
        Node { max: interval.end.clone(), interval, children: [NIL; 2], parent, red }
    }
}

pub(crate) struct Tree {
    nodes: Vec<Node>,
    root: usize,
}

impl Tree {
    pub(crate) fn build(intervals: impl IntoIterator<Item = Interval>, order: Order) -> Tree {
        let nil = Node::new(Interval::new(b"", b""), NIL, false);
        let mut tree = Tree { nodes: vec![nil], root: NIL };
        for interval in intervals {
            tree.insert(interval, order);
        }
        tree.find_max(tree.root);
        tree
    }

    /// Whether some interval meets it.
    pub(crate) fn meets(&self, wanted: &Interval) -> bool {
        let mut at = self.root;
        while at != NIL && wanted.side(&self.nodes[at].interval).is_ne() {
            let [left, right] = self.nodes[at].children;
            let may_be_left = left != NIL && compare(&self.nodes[left].max, &wanted.begin).is_gt();
            at = if may_be_left { left } else { right };
        }
        at != NIL
    }

    /// Whether the intervals that meet it, taken together, leave none of it out.
    pub(crate) fn covers(&self, wanted: &Interval) -> bool {
        let mut reach: Option<Interval> = None;
        let whole = self.visit(self.root, wanted, &mut |found| match &mut reach {
            None => {
                reach = Some(found.clone());
                true
            }
            Some(reach) if compare(&reach.end, &found.begin).is_lt() => false,
            Some(reach) => {
                if compare(&found.end, &reach.end).is_gt() {
                    reach.end = found.end.clone();
                }
                true
            }
        });
        let Some(reach) = reach.filter(|_| whole) else { return false };
        compare(&reach.end, &wanted.end).is_ge() && compare(&reach.begin, &wanted.begin).is_le()
    }

    /// Visits what meets `wanted`, in order, until `f` has enough; whether it never had.
    fn visit(&self, at: usize, wanted: &Interval, f: &mut impl FnMut(&Interval) -> bool) -> bool {
        if at == NIL {
            return true;
        }
        let node = &self.nodes[at];
        let [left, right] = node.children;
        match wanted.side(&node.interval) {
            Ordering::Less => self.visit(left, wanted, f),
            Ordering::Greater => {
                let below = Interval { begin: node.interval.begin.clone(), end: node.max.clone() };
                below.side(wanted).is_ne() || (self.visit(left, wanted, f) && self.visit(right, wanted, f))
            }
            Ordering::Equal => self.visit(left, wanted, f) && f(&node.interval) && self.visit(right, wanted, f),
        }
    }

    fn insert(&mut self, interval: Interval, order: Order) {
        let (mut parent, mut at, mut side) = (NIL, self.root, LEFT);
        while at != NIL {
            let here = &self.nodes[at].interval;
            let by_begin = compare(&interval.begin, &here.begin);
            let by_end = compare(&interval.end, &here.end);
            let is_left = by_begin.is_lt() || (order == Order::BeginAndEnd && by_begin.is_eq() && by_end.is_lt());
            side = if is_left { LEFT } else { RIGHT };
            parent = at;
            at = self.nodes[at].children[side];
        }
        let new = self.nodes.len();
        self.nodes.push(Node::new(interval, parent, true));
        self.hang(parent, side, new);
        self.balance(new);
    }

    fn hang(&mut self, parent: usize, side: usize, child: usize) {
        match parent {
            NIL => self.root = child,
            _ => self.nodes[parent].children[side] = child,
        }
    }

    fn side_of(&self, parent: usize, child: usize) -> usize {
        usize::from(self.nodes[parent].children[RIGHT] == child)
    }

    fn balance(&mut self, mut at: usize) {
        while self.nodes[self.nodes[at].parent].red {
            let parent = self.nodes[at].parent;
            let grandparent = self.nodes[parent].parent;
            let side = self.side_of(grandparent, parent);
            let uncle = self.nodes[grandparent].children[1 - side];
            self.nodes[grandparent].red = true;
            if self.nodes[uncle].red {
                self.nodes[parent].red = false;
                self.nodes[uncle].red = false;
                at = grandparent;
                continue;
            }
            if self.side_of(parent, at) != side {
                at = parent;
                self.rotate(at, side);
            }
            let top = self.nodes[at].parent;
            self.nodes[top].red = false;
            self.rotate(grandparent, 1 - side);
        }
        let root = self.root;
        self.nodes[root].red = false;
    }

    /// Moves a node down to `side`, and its child of the other side into its place.
    fn rotate(&mut self, down: usize, side: usize) {
        let up = self.nodes[down].children[1 - side];
        let inner = self.nodes[up].children[side];
        self.nodes[down].children[1 - side] = inner;
        if inner != NIL {
            self.nodes[inner].parent = down;
        }
        let parent = self.nodes[down].parent;
        let place = self.side_of(parent, down);
        self.hang(parent, place, up);
        self.nodes[up].parent = parent;
        self.nodes[up].children[side] = down;
        self.nodes[down].parent = up;
    }

    fn find_max(&mut self, at: usize) {
        for child in self.nodes[at].children.into_iter().filter(|child| *child != NIL) {
            self.find_max(child);
            if compare(&self.nodes[child].max, &self.nodes[at].max).is_gt() {
                self.nodes[at].max = self.nodes[child].max.clone();
            }
        }
    }
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
