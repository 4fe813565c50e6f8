//! Intervals against a naive model, and against what etcd's own tree answered.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// Keys near each other, so that ranges touch, overlap and begin alike.
fn key() -> impl Strategy<Value = &'static [u8]> {
    let keys: Vec<&[u8]> = vec![b"\0", b"a", b"a\0", b"aa", b"ab", b"b", b"b\0", b"ba", b"c", b"d", b"d\0"];
    select(keys)
}

/// One key, a range, or all keys from one on.
fn interval() -> impl Strategy<Value = Interval> {
    (key(), key(), 0..4).prop_map(|(a, b, kind)| match kind {
        0 => Interval::point(a),
        1 => Interval::new(a, b""),
        _ if a < b => Interval::new(a, b),
        _ => Interval::new(b, &[a, b"\0"].concat()),
    })
}

fn holds(interval: &Interval, key: &[u8]) -> bool {
    compare(&interval.begin, key).is_le() && compare(key, &interval.end).is_lt()
}

proptest! {
    /// Between two neighbouring bounds nothing changes, so the bounds are all the keys that have to be looked at.
    #[test]
    fn covers_what_leaves_no_key_out(intervals in vec(interval(), 0..20), wanted in interval(), by_end in any::<bool>()) {
        let order = if by_end { Order::BeginAndEnd } else { Order::Begin };
        let tree = Tree::build(intervals.clone(), order);
        let bounds = intervals.iter().flat_map(|i| [&i.begin, &i.end]).chain([&wanted.begin]);
        let mut keys = bounds.filter(|key| holds(&wanted, key));
        let expected = keys.all(|key| intervals.iter().any(|i| holds(i, key)));
        prop_assert_eq!(tree.covers(&wanted), expected);
    }

    #[test]
    fn meets_what_shares_a_key(intervals in vec(interval(), 0..20), key in key()) {
        let tree = Tree::build(intervals.clone(), Order::BeginAndEnd);
        prop_assert_eq!(tree.meets(&Interval::point(key)), intervals.iter().any(|i| holds(i, key)));
    }

    /// No red node below a red one, and as many black ones on every way down.
    #[test]
    fn stays_balanced(intervals in vec(interval(), 0..200)) {
        let tree = Tree::build(intervals, Order::Begin);
        prop_assert!(!tree.nodes[tree.root].red);
        black_height(&tree, tree.root);
    }
}

fn black_height(tree: &Tree, at: usize) -> usize {
    if at == NIL {
        return 0;
    }
    let node = &tree.nodes[at];
    let heights = node.children.map(|child| {
        assert!(!(node.red && tree.nodes[child].red), "a red node below a red one");
        black_height(tree, child)
    });
    assert_eq!(heights[0], heights[1]);
    heights[0] + usize::from(!node.red)
}

/// `testdata/intervals.txt`: what the trees of etcd 3.5.33 and 3.7.3 answered, also where a range ends before it begins.
#[test]
fn answers_as_etcd_does() {
    let text = include_str!("../testdata/intervals.txt");
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [order, intervals, wanted, covers, meets] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}: not five fields")
        };
        let order = if order == "3.5" { Order::Begin } else { Order::BeginAndEnd };
        let tree = Tree::build(intervals.split(';').map(parse), order);
        let wanted = parse(wanted);
        assert_eq!(tree.covers(&wanted).to_string(), covers, "{line}");
        assert_eq!(tree.meets(&wanted).to_string(), meets, "{line}");
        count += 1;
    }
    assert!(count > 500, "{count} lines");
}

/// `b,d`; a bound that is not there lies behind all keys.
fn parse(text: &str) -> Interval {
    let (begin, end) = text.split_once(',').unwrap();
    Interval::new(begin.as_bytes(), end.as_bytes())
}
