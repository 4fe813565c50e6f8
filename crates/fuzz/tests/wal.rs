//! Log segments and `.snap` files of any content: an error or an answer, never a panic.

use std::{fs, path::Path, sync::LazyLock};

use bytes::Bytes;
use fuzz::{damage, pieces};
use prost::Message;
use proto::{raftpb, snappb, walpb};
use wal::{Options, Wal, snapfile};

const FIRST: &str = "0000000000000000-0000000000000000.wal";
const OPTIONS: Options = Options { segment_bytes: 8192, no_sync: true };

/// The segments of a small log: entries of several terms, a state, a snapshot record, a cut.
static LOG: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let dir = harness::tempdir();
    let path = dir.path().join("wal");
    let metadata = wal::Metadata { node_id: 1, cluster_id: 2 };
    let mut log = Wal::create(&path, &metadata.encode(), OPTIONS).expect("create");
    for index in 1..=40 {
        let data = Some(Bytes::from(vec![index as u8; 20 * index as usize]));
        let entry = raftpb::Entry { index: Some(index), term: Some(1 + index / 10), r#type: Some(0), data };
        let state = raftpb::HardState { term: Some(1 + index / 10), vote: Some(1), commit: Some(index) };
        log.save(Some(&state), &[entry]).expect("save");
        if index == 15 {
            let conf_state = Some(raftpb::ConfState { voters: vec![1], ..Default::default() });
            log.save_snapshot(&walpb::Snapshot { index: Some(15), term: Some(2), conf_state }).expect("snapshot");
        }
    }
    log.close().expect("close");
    let mut names: Vec<_> = fs::read_dir(&path).expect("list").flatten().map(|e| e.path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "wal"));
    names.sort();
    let name = |p: &Path| p.file_name().expect("name").to_string_lossy().into_owned();
    names.iter().map(|p| (name(p), fs::read(p).expect("read"))).collect()
});

/// Everything a log can be asked for. What opening for writing finds, reading finds too, before and after.
fn exercise(dir: &Path) {
    let mut starts = Wal::valid_snapshots(dir).unwrap_or_default();
    starts.push(walpb::Snapshot::default());
    for at in &starts {
        let read = Wal::read(dir, at);
        let Ok((log, opened)) = Wal::open(dir, at, OPTIONS) else { continue };
        let read = read.expect("a log that can be opened can be read");
        assert_eq!((&read.entries, &read.hard_state), (&opened.entries, &opened.hard_state));
        log.close().expect("close");
        let again = Wal::read(dir, at).expect("a log that was opened can be read");
        assert_eq!((again.entries, again.torn), (opened.entries, None));
    }
}

#[test]
fn segment_of_any_bytes() {
    bolero::check!().with_iterations(1000).for_each(|input: &[u8]| {
        let dir = harness::tempdir();
        fs::write(dir.path().join(FIRST), input).expect("write");
        exercise(dir.path());
    });
}

#[test]
fn damaged_segments() {
    bolero::check!().with_iterations(1000).with_max_len(64).for_each(|input: &[u8]| {
        let Some((&which, script)) = input.split_first() else { return };
        let dir = harness::tempdir();
        let which = which as usize % LOG.len();
        for (i, (name, bytes)) in LOG.iter().enumerate() {
            let bytes = if i == which { damage(bytes, script) } else { bytes.clone() };
            fs::write(dir.path().join(name), bytes).expect("write");
        }
        exercise(dir.path());
    });
}

/// Records whose checksums are right, so that what they hold is looked at.
#[test]
fn sealed_records() {
    bolero::check!().with_iterations(2000).for_each(|input: &[u8]| {
        let mut segment = Segment::default();
        segment.push(4, None);
        segment.push(1, Some(b"\x08\x01\x10\x02"));
        segment.push(5, Some(b"\x08\x00\x10\x00"));
        for piece in pieces(input) {
            let Some((kind, data)) = piece.split_first() else { continue };
            segment.push(i64::from(kind % 8), Some(data));
        }
        let dir = harness::tempdir();
        fs::write(dir.path().join(FIRST), segment.bytes).expect("write");
        exercise(dir.path());
    });
}

#[derive(Default)]
struct Segment {
    bytes: Vec<u8>,
    crc: u32,
}

impl Segment {
    fn push(&mut self, kind: i64, data: Option<&[u8]>) {
        self.crc = crc32c::crc32c_append(self.crc, data.unwrap_or_default());
        let data = data.map(Bytes::copy_from_slice);
        let record = walpb::Record { r#type: Some(kind), crc: Some(self.crc), data }.encode_to_vec();
        let pad = (8 - record.len() % 8) % 8;
        let flag = if pad == 0 { 0 } else { (0x80 | pad as u64) << 56 };
        self.bytes.extend((record.len() as u64 | flag).to_le_bytes());
        self.bytes.extend(record);
        self.bytes.extend(vec![0; pad]);
    }
}

#[test]
fn snap_file_of_any_bytes() {
    bolero::check!().with_iterations(4000).for_each(|input: &[u8]| {
        let _ = snapfile::decode(Bytes::copy_from_slice(input));
        let crc = Some(crc32c::crc32c(input));
        let sealed = snappb::Snapshot { crc, data: Some(Bytes::copy_from_slice(input)) }.encode_to_vec();
        // Fields of no version we know leave a snapshot without content, which is refused in a file.
        if let Ok(snapshot) = snapfile::decode(sealed.into())
            && snapshot != raftpb::Snapshot::default()
        {
            assert_eq!(snapfile::decode(snapfile::encode(&snapshot).into()).expect("own encoding"), snapshot);
        }
    });
}
