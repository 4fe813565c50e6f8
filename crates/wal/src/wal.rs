//! The log open for appending: create, open, save, cut, release, close.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{raftpb, walpb};

use crate::{
    disk::{Disk, OpenMode, OsDisk},
    encoder::Encoder,
    error::Error,
    pipeline::Pipeline,
    read::{self, ReadAll},
    repair,
    segment::{self, Name, Segment},
};

/// A sync that takes longer is worth a warning, as in etcd.
const SLOW_SYNC: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size a segment is preallocated to; the first save that reaches it starts the next segment.
    pub segment_bytes: u64,
    /// Never sync. A crash of the machine may then lose acknowledged writes.
    pub no_sync: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 64 * 1000 * 1000, no_sync: false }
    }
}

/// What a save did, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    /// Bytes handed to the file system.
    pub bytes: u64,
    /// Time in fdatasync; `None` if no sync was needed.
    pub sync: Option<Duration>,
    /// Whether a new segment was started.
    pub cut: bool,
}

/// A log open for appending. It belongs to one thread at a time.
///
/// Dropping it without [`Wal::close`] leaves what a crash would leave.
#[derive(Debug)]
pub struct Wal {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: Options,
    metadata: Vec<u8>,
    /// The state written last.
    state: raftpb::HardState,
    /// Index of the entry or snapshot saved last.
    last_index: u64,
    encoder: Encoder,
    /// Locked segments, oldest first; the last one is written to.
    held: Vec<Segment>,
    tail: Segment,
    pipeline: Pipeline,
    poisoned: bool,
}

impl Wal {
    /// Whether `dir` holds any segment.
    pub fn exists(dir: &Path) -> bool {
        segment::list(&OsDisk, dir).is_ok()
    }

    /// Starts a log in `dir`, which must not have one. `metadata` is repeated in every segment.
    pub fn create(dir: &Path, metadata: &[u8], options: Options) -> Result<Self, Error> {
        Self::create_on(Arc::new(OsDisk), dir, metadata, options)
    }

    /// Opens the log for appending and reads what follows the snapshot `at`, which must have a record in the log.
    ///
    /// A record that a crash left incomplete at the end is cut off, after copying its segment to `.broken`.
    pub fn open(dir: &Path, at: &walpb::Snapshot, options: Options) -> Result<(Self, ReadAll), Error> {
        Self::open_on(Arc::new(OsDisk), dir, at, options)
    }

    /// Reads what follows the snapshot `at`; takes no lock, changes nothing, leaves an incomplete last record out.
    pub fn read(dir: &Path, at: &walpb::Snapshot) -> Result<ReadAll, Error> {
        Self::read_on(&OsDisk, dir, at)
    }

    /// The snapshot records that may be started from: those not after the last commit index. Oldest first.
    pub fn valid_snapshots(dir: &Path) -> Result<Vec<walpb::Snapshot>, Error> {
        Self::valid_snapshots_on(&OsDisk, dir)
    }

    /// [`Wal::create`] on a given disk.
    pub fn create_on(disk: Arc<dyn Disk>, dir: &Path, metadata: &[u8], options: Options) -> Result<Self, Error> {
        let temporary = clear_for_create(&*disk, dir)?;
        // The log appears whole under its name or not at all.
        disk.create_dir_all(&temporary).map_err(Error::io("create", &temporary))?;
        let name = Name { seq: 0, index: 0 };
        let path = temporary.join(name.to_string());
        let file = disk.open(&path, OpenMode::Create).map_err(Error::io("create", &path))?;
        file.allocate(options.segment_bytes).map_err(Error::io("preallocate", &path))?;

        let mut encoder = Encoder::new(0, 0);
        encoder.crc();
        encoder.metadata(metadata);
        encoder.snapshot(&walpb::Snapshot { index: Some(0), term: Some(0), conf_state: None });
        encoder.flush(file.as_ref()).map_err(Error::io("write", &path))?;
        file.sync_data().map_err(Error::io("sync", &path))?;

        disk.sync_dir(&temporary).map_err(Error::io("sync", &temporary))?;
        disk.rename(&temporary, dir).map_err(Error::io("rename to", dir))?;
        let parent = parent_of(dir);
        disk.sync_dir(parent).map_err(Error::io("sync", parent))?;
        let tail = Segment { name, path: dir.join(name.to_string()), file };
        let state = raftpb::HardState::default();
        Self::start(disk, dir, options, metadata, state, 0, encoder, Vec::new(), tail)
    }

    /// [`Wal::open`] on a given disk.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        at: &walpb::Snapshot,
        options: Options,
    ) -> Result<(Self, ReadAll), Error> {
        let names = segment::list(&*disk, dir)?;
        let names = segment::select(dir, &names, at.index())?;
        let mut held = segment::open(&*disk, dir, names, OpenMode::Write)?;
        let (all, end) = read::read_segments(dir, &held, at)?;
        let last = all.entries.last().map_or(at.index(), raftpb::Entry::index);
        if all.hard_state.commit() > last {
            return Err(Error::CommitBeyondLog { dir: dir.into(), commit: all.hard_state.commit(), last });
        }
        let Some(tail) = held.pop() else { return Err(Error::FileNotFound { dir: dir.into() }) };
        if let Some(why) = &end.torn {
            repair::cut_torn_tail(&*disk, &tail, end.offset, why)?;
        }
        repair::zero_from(&tail, end.offset, options.segment_bytes)?;
        let encoder = Encoder::new(end.offset, end.crc);
        let state = all.hard_state;
        let wal = Self::start(disk, dir, options, &all.metadata, state, end.last_index, encoder, held, tail)?;
        Ok((wal, all))
    }

    /// [`Wal::read`] on a given disk.
    pub fn read_on(disk: &dyn Disk, dir: &Path, at: &walpb::Snapshot) -> Result<ReadAll, Error> {
        let names = segment::list(disk, dir)?;
        let names = segment::select(dir, &names, at.index())?;
        let segments = segment::open(disk, dir, names, OpenMode::Read)?;
        Ok(read::read_segments(dir, &segments, at)?.0)
    }

    /// [`Wal::valid_snapshots`] on a given disk.
    pub fn valid_snapshots_on(disk: &dyn Disk, dir: &Path) -> Result<Vec<walpb::Snapshot>, Error> {
        read::valid_snapshots(disk, dir)
    }

    /// Appends entries, then the state if it is not empty. On return they are on disk if there are entries or if term
    /// or vote changed; a new commit index alone is not worth a sync, as it can be learnt again.
    pub fn save(&mut self, state: Option<&raftpb::HardState>, entries: &[raftpb::Entry]) -> Result<Saved, Error> {
        let must_sync = self.append(state, entries)?;
        if must_sync || self.is_full() { self.sync() } else { Ok(Saved::default()) }
    }

    /// The first half of [`Wal::save`]: takes the records up without waiting for the disk. `true` if the caller must
    /// [`Wal::sync`] before it acts on them.
    pub fn append(&mut self, state: Option<&raftpb::HardState>, entries: &[raftpb::Entry]) -> Result<bool, Error> {
        self.check_alive()?;
        let state = state.filter(|state| !is_empty(state));
        self.check_entries(entries)?;
        self.check_state(state)?;
        let must_sync = !entries.is_empty()
            || state.is_some_and(|new| new.term() != self.state.term() || new.vote() != self.state.vote());
        for entry in entries {
            self.encoder.entry(entry);
            self.last_index = entry.index();
            let spilled = self.encoder.spill(self.tail.file.as_ref());
            self.or_poison("write", spilled)?;
        }
        if let Some(state) = state {
            self.encoder.state(state);
            self.state = *state;
        }
        Ok(must_sync)
    }

    /// Puts everything appended on disk, and starts the next segment if this one is full.
    pub fn sync(&mut self) -> Result<Saved, Error> {
        self.check_alive()?;
        if self.is_full() { self.cut() } else { self.flush_and_sync() }
    }

    /// Appends a snapshot record and syncs. It must precede entries after the snapshot's index.
    pub fn save_snapshot(&mut self, snapshot: &walpb::Snapshot) -> Result<Saved, Error> {
        self.check_alive()?;
        check_snapshot(snapshot)?;
        self.encoder.snapshot(snapshot);
        self.last_index = self.last_index.max(snapshot.index());
        self.flush_and_sync()
    }

    /// Unlocks the segments that only hold entries before `index`, so that [`crate::purge`] may remove them. The newest
    /// of the segments that begin before `index` stays, as it may hold `index` itself.
    pub fn release_to(&mut self, index: u64) -> Result<(), Error> {
        let names = self.held.iter().chain([&self.tail]).map(|segment| segment.name.index);
        let before = names.take_while(|&first| first < index).count();
        self.held.drain(..before.saturating_sub(1));
        Ok(())
    }

    /// Syncs and closes.
    pub fn close(mut self) -> Result<(), Error> {
        if !self.poisoned {
            self.flush_and_sync()?;
        }
        Ok(())
    }

    /// Index of the entry or snapshot saved last.
    pub fn last_index(&self) -> u64 {
        self.last_index
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where create and open meet, private")]
    fn start(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: Options,
        metadata: &[u8],
        state: raftpb::HardState,
        last_index: u64,
        encoder: Encoder,
        held: Vec<Segment>,
        tail: Segment,
    ) -> Result<Self, Error> {
        let pipeline = Pipeline::start(disk.clone(), dir, options.segment_bytes)?;
        let (dir, metadata) = (dir.to_path_buf(), metadata.to_vec());
        Ok(Self { disk, dir, options, metadata, state, last_index, encoder, held, tail, pipeline, poisoned: false })
    }

    fn is_full(&self) -> bool {
        self.encoder.end() >= self.options.segment_bytes
    }

    fn flush_and_sync(&mut self) -> Result<Saved, Error> {
        let flushed = self.encoder.flush(self.tail.file.as_ref());
        let bytes = self.or_poison("write", flushed)? as u64;
        if self.options.no_sync {
            return Ok(Saved { bytes, sync: None, cut: false });
        }
        let start = Instant::now();
        let synced = self.tail.file.sync_data();
        self.or_poison("sync", synced)?;
        let took = start.elapsed();
        if took > SLOW_SYNC {
            tracing::warn!(?took, expected = ?SLOW_SYNC, "slow fdatasync");
        }
        Ok(Saved { bytes, sync: Some(took), cut: false })
    }

    /// Ends the segment and starts the next, whose header is on disk before it gets its name.
    fn cut(&mut self) -> Result<Saved, Error> {
        let flushed = self.encoder.flush(self.tail.file.as_ref());
        let bytes = self.or_poison("write", flushed)? as u64;
        let cut = self.tail.file.set_size(self.encoder.end());
        self.or_poison("truncate", cut)?;
        let old = self.flush_and_sync()?;

        let name = Name { seq: self.tail.name.seq + 1, index: self.last_index + 1 };
        let (temporary, file) = self.take_spare()?;
        let next = Segment { name, path: temporary.clone(), file };
        self.held.push(std::mem::replace(&mut self.tail, next));
        self.encoder.next_file();
        self.encoder.crc();
        self.encoder.metadata(&self.metadata);
        if !is_empty(&self.state) {
            self.encoder.state(&self.state);
        }
        let new = self.flush_and_sync()?;

        let path = self.dir.join(name.to_string());
        let renamed = self.disk.rename(&temporary, &path);
        self.or_poison("rename", renamed)?;
        let synced = self.disk.sync_dir(&self.dir);
        self.or_poison("sync the directory of", synced)?;
        tracing::info!(path = %path.display(), "created a new WAL segment");
        self.tail.path = path;
        let sync = old.sync.zip(new.sync).map(|(old, new)| old + new);
        Ok(Saved { bytes: bytes + new.bytes, sync, cut: true })
    }

    fn take_spare(&mut self) -> Result<crate::pipeline::Spare, Error> {
        let spare = self.pipeline.take().unwrap_or_else(|| Err(Error::Poisoned { path: self.dir.clone() }));
        self.poisoned |= spare.is_err();
        spare
    }

    fn check_alive(&self) -> Result<(), Error> {
        if self.poisoned { Err(Error::Poisoned { path: self.tail.path.clone() }) } else { Ok(()) }
    }

    /// A log with a hole could not be opened again, so the hole is refused before anything is written.
    fn check_entries(&self, entries: &[raftpb::Entry]) -> Result<(), Error> {
        let mut last = self.last_index;
        for entry in entries {
            let (index, term) = (entry.index(), entry.term());
            let refuse = |what| Err(Error::InvalidEntry { index, term, last, what });
            if index == 0 || term == 0 {
                return refuse("index and term begin at 1");
            }
            if index - 1 > last {
                return refuse("entries between them are missing");
            }
            last = index;
        }
        Ok(())
    }

    /// What a reader would take for damage is not written in the first place.
    fn check_state(&self, state: Option<&raftpb::HardState>) -> Result<(), Error> {
        let (term_before, commit_before) = (self.state.term(), self.state.commit());
        match state.map(|state| (state.term(), state.commit())) {
            Some((term, commit)) if term < term_before.max(1) || commit < commit_before => {
                Err(Error::InvalidState { term, commit, term_before, commit_before })
            }
            _ => Ok(()),
        }
    }

    fn or_poison<T>(&mut self, action: &'static str, result: std::io::Result<T>) -> Result<T, Error> {
        self.poisoned |= result.is_err();
        result.map_err(|source| Error::Io { action, path: self.tail.path.clone(), source })
    }
}

fn is_empty(state: &raftpb::HardState) -> bool {
    state.term() == 0 && state.vote() == 0 && state.commit() == 0
}

/// etcd 3.5 and later start from snapshot records alone, so a record must say who voted then.
fn check_snapshot(snapshot: &walpb::Snapshot) -> Result<(), Error> {
    let refuse = |what| Err(Error::InvalidSnapshot { what });
    match (snapshot.index, snapshot.term, &snapshot.conf_state) {
        (None, _, _) => refuse("snapshot is missing index"),
        (_, None, _) => refuse("snapshot is missing term"),
        (Some(1..), _, None) => refuse("saved (not-initial) snapshot is missing ConfState"),
        _ => Ok(()),
    }
}

/// Makes sure that renaming the returned temporary directory to `dir` will destroy nothing but left-over spare files.
fn clear_for_create(disk: &dyn Disk, dir: &Path) -> Result<PathBuf, Error> {
    let temporary = PathBuf::from(format!("{}.tmp", dir.display()));
    for name in list_if_present(disk, dir)? {
        if Name::parse(&name).is_some() {
            return Err(Error::Exists { dir: dir.into() });
        }
        if !name.ends_with(".tmp") {
            return Err(Error::NotEmpty { dir: dir.into(), name });
        }
    }
    for dir in [dir, &temporary] {
        let names = list_if_present(disk, dir)?;
        for name in &names {
            let path = dir.join(name);
            disk.remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(temporary)
}

fn list_if_present(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, Error> {
    match disk.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(Error::io("list", dir)),
    }
}

fn parent_of(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
