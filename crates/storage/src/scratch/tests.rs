//! Against a map in memory, with so little room that nearly everything is in runs.

use std::ops::Bound;

use super::*;

/// The generator of Steele et al. (splitmix), which needs no more than a counter.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

fn scratch(dir: &std::path::Path, bytes_max: usize) -> Scratch<8> {
    Scratch::new(dir.join("db"), bytes_max, Arc::default())
}

fn all_from(map: &Scratch<8>, from: &[u8], to: &[u8], keys_max: usize) -> Vec<(Bytes, [u8; 8])> {
    let (mut all, mut next) = (Vec::new(), from.to_vec());
    loop {
        let some = map.some_from(&next, |key| key < to, keys_max, 1 << 10);
        let Some((last, _)) = some.last() else { return all };
        next = [last, &[0][..]].concat();
        all.extend(some);
    }
}

#[test]
fn is_as_a_map_in_memory() {
    for seed in 0..20 {
        let (dir, mut random) = (harness::tempdir(), Random(seed));
        let mut map = scratch(dir.path(), 2000 + 500 * seed as usize);
        let mut model = BTreeMap::new();
        for step in 0..3000u64 {
            let key = random.below(500).to_string().into_bytes();
            match random.below(5) {
                0 | 1 => {
                    map.delete(&key);
                    model.remove(&key);
                }
                2 => assert_eq!(map.get(&key), model.get(&key).copied(), "seed {seed}, step {step}"),
                3 if step % 100 == 0 => map.settle(),
                _ => {
                    map.put(&key, step.to_be_bytes());
                    model.insert(key, step.to_be_bytes());
                }
            }
            if step % 300 == 0 {
                let [from, to] = [0; 2].map(|_| random.below(600).to_string().into_bytes());
                let found = all_from(&map, &from, &to, 1 + random.below(100) as usize);
                let range = (Bound::Included(&from), Bound::Excluded((&to).max(&from)));
                let want = model.range::<Vec<u8>, _>(range).map(|(key, value)| (Bytes::copy_from_slice(key), *value));
                assert!(found.into_iter().eq(want), "seed {seed}, step {step}");
            }
        }
        assert!(!map.runs.is_empty() && map.runs.len() <= RUNS_MAX);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files have no names");
    }
}

#[test]
fn what_fits_makes_no_file() {
    let mut map = Scratch::<8>::new("/nowhere/db".into(), 1 << 20, Arc::default());
    (0..1000u64).for_each(|i| map.put(&i.to_be_bytes(), i.to_be_bytes()));
    (0..1000u64).for_each(|i| map.delete(&i.to_be_bytes()));
    assert_eq!((map.memory.len(), map.memory_bytes, map.get(b"a")), (0, 0, None));
    assert!(map.fuse.blown().is_none());
}

#[test]
fn a_disk_that_fails_is_told_and_nothing_is_made_up() {
    let mut map = Scratch::<8>::new("/nowhere/db".into(), 1000, Arc::default());
    (0..1000u64).for_each(|i| map.put(&i.to_be_bytes(), i.to_be_bytes()));
    let failure = map.fuse.blown().unwrap().to_string();
    assert!(failure.contains("/nowhere/db") && failure.contains("scratch"), "{failure}");
    assert!(map.some_from(b"", |_| true, 10, 1000).is_empty());
    assert!(map.memory_bytes <= 1000);
}
