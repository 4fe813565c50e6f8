//! Reading a whole log: the rules across segments, and what raft starts from.

use std::path::Path;

use bytes::Bytes;
use prost::Message;
use proto::{
    raftpb::{Entry, HardState},
    walpb,
};

use crate::{
    check,
    decoder::{PlaceInFile, Record, SegmentReader, Step},
    disk::{Disk, OpenMode},
    error::Error,
    frame::Kind,
    segment::{self, Segment},
};

/// The contents of a log after the snapshot that it was opened at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadAll {
    /// The metadata record, byte for byte; see [`crate::Metadata::decode`].
    pub metadata: Bytes,
    /// The last hard state; the default (all fields 0) if the log has none.
    pub hard_state: HardState,
    /// The entries from the index after the snapshot on, without gaps. A new leader may still
    /// replace entries after `hard_state.commit`.
    pub entries: Vec<Entry>,
    /// All snapshot records read, in log order, including those after the commit index, which are
    /// not usable yet.
    pub snapshots: Vec<walpb::Snapshot>,
    /// Why the last record was omitted, if a crash left it incomplete. `None` if the log ends with
    /// a complete record.
    pub torn: Option<String>,
}

/// Where the entries of a log are, for [`crate::Wal::each_entry`].
///
/// Index and term do not identify an entry: a member that is started with `--force-new-cluster` drops entries and
/// writes others with the same index and term.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryPlaces {
    /// Sequence number of the segment and offset of the record, in the order of the entries.
    places: Vec<(u64, u64)>,
}

/// Where reading stopped.
#[derive(Debug)]
pub(crate) struct Tail {
    /// After the last good record of the last segment.
    pub(crate) offset: u64,
    pub(crate) crc: u32,
    pub(crate) torn: Option<String>,
    /// Index of the last entry or snapshot saved.
    pub(crate) last_index: u64,
}

/// Whether entries are kept with what they carry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    All,
    /// Index, term and type alone, and where the entry is.
    Heads,
}

/// Reads the entries without their data, and where they are.
pub(crate) fn read_heads(
    dir: &Path,
    segments: &[Segment],
    at: &walpb::Snapshot,
) -> Result<(ReadAll, EntryPlaces), Error> {
    let (all, _, places) = read_with(dir, segments, at, Keep::Heads)?;
    Ok((all, places))
}

/// Reads segments that are open already.
pub(crate) fn read_segments(dir: &Path, segments: &[Segment], at: &walpb::Snapshot) -> Result<(ReadAll, Tail), Error> {
    let (all, tail, _) = read_with(dir, segments, at, Keep::All)?;
    Ok((all, tail))
}

fn read_with(
    dir: &Path,
    segments: &[Segment],
    at: &walpb::Snapshot,
    keep: Keep,
) -> Result<(ReadAll, Tail, EntryPlaces), Error> {
    let mut builder = Builder::new(at, keep);
    let mut tail = scan(segments, |reader, record| builder.add(reader, record))?;
    let Builder { mut all, metadata, matched, last_index, places, .. } = builder;
    if !matched {
        return Err(Error::SnapshotNotFound { dir: dir.into(), index: at.index(), term: at.term() });
    }
    tail.last_index = last_index;
    all.metadata = metadata.unwrap_or_default();
    all.torn.clone_from(&tail.torn);
    Ok((all, tail, EntryPlaces { places }))
}

/// See [`crate::Wal::each_entry`].
pub(crate) fn each_entry<E: From<Error>>(
    dir: &Path,
    segments: &[Segment],
    entries: &EntryPlaces,
    mut visit: impl FnMut(Entry) -> Result<(), E>,
) -> Result<(), E> {
    let (mut next, mut failed) = (0, None);
    let scanned = scan(segments, |reader, record| {
        let place = record.place;
        let wanted = entries.places.get(next) == Some(&(reader.seq(), place.offset)) && record.kind == Kind::Entry;
        if wanted && failed.is_none() {
            next += 1;
            let entry = check::parse_entry(record.data).map_err(|what| reader.corrupt(place, what))?;
            failed = visit(entry).err();
        }
        Ok(())
    });
    match failed {
        Some(error) => return Err(error),
        None => scanned?,
    };
    if next < entries.places.len() { Err(Error::Changed { path: dir.into() }.into()) } else { Ok(()) }
}

/// See [`crate::Wal::valid_snapshots`].
pub(crate) fn valid_snapshots(disk: &dyn Disk, dir: &Path) -> Result<Vec<walpb::Snapshot>, Error> {
    const ATTEMPTS: usize = 3;
    let mut attempt = 1;
    loop {
        match try_valid_snapshots(disk, dir) {
            // A purge removed a segment between listing and opening.
            Err(error) if error.is_vanished() && attempt < ATTEMPTS => attempt += 1,
            other => return other,
        }
    }
}

fn try_valid_snapshots(disk: &dyn Disk, dir: &Path) -> Result<Vec<walpb::Snapshot>, Error> {
    let names = segment::list(disk, dir)?;
    segment::check_sequence(dir, &names, 0)?;
    let segments = segment::open(disk, dir, &names, OpenMode::Read)?;
    let mut snapshots = Vec::new();
    let mut state = HardState::default();
    scan(&segments, |reader, record| {
        match record.kind {
            Kind::Snapshot => snapshots.push(parse_snapshot(reader, &record)?),
            Kind::State => state = parse_state(reader, record, &state)?,
            Kind::Metadata | Kind::Entry | Kind::Crc => {}
        }
        Ok(())
    })?;
    snapshots.retain(|snapshot| snapshot.index() <= state.commit());
    Ok(snapshots)
}

/// Walks all records of `segments`, checking what every segment must begin with.
pub(crate) fn scan(
    segments: &[Segment],
    mut visit: impl FnMut(&SegmentReader<'_>, Record) -> Result<(), Error>,
) -> Result<Tail, Error> {
    let mut tail = Tail { offset: 0, crc: 0, torn: None, last_index: 0 };
    for (number, segment) in segments.iter().enumerate() {
        let last = number + 1 == segments.len();
        let mut reader = SegmentReader::new(segment, last, tail.crc)?;
        let torn = loop {
            match reader.next()? {
                Step::Record(record) => {
                    check_head(&reader, &record, (number > 0).then_some(tail.crc))?;
                    visit(&reader, record)?;
                }
                Step::End => break None,
                Step::Torn(why) => break Some(why),
            }
        };
        // A cut syncs crc and metadata before the segment gets its name.
        if reader.records() < 2 {
            let at = PlaceInFile { offset: reader.offset(), record: reader.records() };
            return Err(reader.corrupt(at, "the segment ends before its metadata record"));
        }
        tail = Tail { offset: reader.offset(), crc: reader.crc(), torn, last_index: 0 };
    }
    Ok(tail)
}

/// A segment begins with the checksum so far, then the metadata; neither comes again.
fn check_head(reader: &SegmentReader<'_>, record: &Record, crc_before: Option<u32>) -> Result<(), Error> {
    match (record.place.record, record.kind) {
        (0, Kind::Crc) => match crc_before {
            Some(computed) if computed != record.crc => {
                let place = reader.place(record.place);
                Err(Error::CrcMismatch { place, expected: record.crc, computed })
            }
            _ => Ok(()),
        },
        (1, Kind::Metadata) => Ok(()),
        (0, kind) => Err(reader.corrupt(record.place, format!("a segment that begins with {kind:?}"))),
        (1, kind) => Err(reader.corrupt(record.place, format!("a segment with {kind:?} in place of its metadata"))),
        (_, Kind::Crc) => Err(reader.corrupt(record.place, "a crc record inside a segment")),
        (_, _) => Ok(()),
    }
}

fn parse_snapshot(reader: &SegmentReader<'_>, record: &Record) -> Result<walpb::Snapshot, Error> {
    walpb::Snapshot::decode(record.data.clone())
        .map_err(|e| reader.corrupt(record.place, format!("a snapshot record that does not decode: {e}")))
}

fn parse_state(reader: &SegmentReader<'_>, record: Record, before: &HardState) -> Result<HardState, Error> {
    check::parse_state(record.data, before).map_err(|what| reader.corrupt(record.place, what))
}

struct Builder<'a> {
    at: &'a walpb::Snapshot,
    keep: Keep,
    all: ReadAll,
    /// Of `all.entries`; empty if the entries are kept with their data.
    places: Vec<(u64, u64)>,
    metadata: Option<Bytes>,
    matched: bool,
    last_index: u64,
    /// Term of the entry at the snapshot's index, if the log has come to one and gone on from it.
    term_at: Option<u64>,
}

impl<'a> Builder<'a> {
    fn new(at: &'a walpb::Snapshot, keep: Keep) -> Self {
        let (all, places) = (ReadAll::default(), Vec::new());
        Self { at, keep, all, places, metadata: None, matched: false, last_index: at.index(), term_at: None }
    }

    fn add(&mut self, reader: &SegmentReader<'_>, record: Record) -> Result<(), Error> {
        match record.kind {
            Kind::Entry => self.add_entry(reader, record)?,
            Kind::State => self.all.hard_state = parse_state(reader, record, &self.all.hard_state)?,
            Kind::Metadata => self.add_metadata(reader, record)?,
            Kind::Snapshot => self.add_snapshot(reader, &record)?,
            Kind::Crc => {}
        }
        Ok(())
    }

    /// An entry replaces the one of its index and drops those after it: the leader that sent it had another log.
    fn add_entry(&mut self, reader: &SegmentReader<'_>, record: Record) -> Result<(), Error> {
        let place = record.place;
        let mut entry = check::parse_entry(record.data).map_err(|what| reader.corrupt(place, what))?;
        if self.keep == Keep::Heads {
            entry.data = None;
        }
        self.last_index = entry.index();
        if entry.index() <= self.at.index() {
            // It drops those after it, too: what was read of them is of another leader.
            self.truncate(0);
            self.term_at = (entry.index() == self.at.index()).then(|| entry.term());
            return Ok(());
        }
        let position = entry.index() - self.at.index() - 1;
        if position > self.all.entries.len() as u64 {
            return Err(Error::SliceOutOfRange {
                place: reader.place(place),
                snapshot_index: self.at.index(),
                snapshot_term: self.at.term(),
                index: entry.index(),
                term: entry.term(),
                entries: self.all.entries.len(),
            });
        }
        self.truncate(position as usize);
        let before = self.all.entries.last().map(Entry::term).or(self.term_at).unwrap_or(0);
        check::check_term(&entry, before).map_err(|what| reader.corrupt(place, what))?;
        self.all.entries.push(entry);
        if self.keep == Keep::Heads {
            self.places.push((reader.seq(), place.offset));
        }
        Ok(())
    }

    fn truncate(&mut self, count: usize) {
        self.all.entries.truncate(count);
        self.places.truncate(count);
    }

    fn add_metadata(&mut self, reader: &SegmentReader<'_>, record: Record) -> Result<(), Error> {
        match &self.metadata {
            Some(metadata) if *metadata != record.data => {
                return Err(Error::MetadataConflict { place: reader.place(record.place) });
            }
            // A copy of its own, as it lives long and would keep a whole chunk.
            Some(_) => {}
            None => self.metadata = Some(Bytes::copy_from_slice(&record.data)),
        }
        Ok(())
    }

    fn add_snapshot(&mut self, reader: &SegmentReader<'_>, record: &Record) -> Result<(), Error> {
        let snapshot = parse_snapshot(reader, record)?;
        if snapshot.index() == self.at.index() {
            if snapshot.term() != self.at.term() {
                return Err(Error::SnapshotMismatch {
                    place: reader.place(record.place),
                    index: snapshot.index(),
                    wanted: self.at.term(),
                    found: snapshot.term(),
                });
            }
            self.matched = true;
            if self.term_at != Some(snapshot.term()) {
                // Received from a leader, since this log had no such entry: its own entries after that index are void.
                self.truncate(0);
                self.term_at = Some(snapshot.term());
            }
        }
        self.last_index = self.last_index.max(snapshot.index());
        self.all.snapshots.push(snapshot);
        Ok(())
    }
}
