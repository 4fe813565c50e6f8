//! Ways to a log: create it, open it for appending, read it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use proto::{raftpb, walpb};

use crate::{
    disk::{Disk, OpenMode, OsDisk},
    durable,
    encoder::Encoder,
    error::Error,
    pipeline::Pipeline,
    read::{self, EntryPlaces, ReadAll},
    repair,
    segment::{self, Name, Segment},
    wal::{Options, Wal},
};

impl Wal {
    /// Whether `dir` contains a segment.
    pub fn exists(dir: &Path) -> bool {
        Self::exists_on(&OsDisk, dir)
    }

    /// Creates a log in `dir`, which must be empty or absent. Every segment repeats `metadata`.
    pub fn create(dir: &Path, metadata: &[u8], options: Options) -> Result<Self, Error> {
        Self::create_on(Arc::new(OsDisk), dir, metadata, options)
    }

    /// Opens the log for appending, and reads what follows the snapshot `at`, which must have a
    /// record in the log.
    ///
    /// A record that a crash left incomplete at the end is removed; its segment is first copied to
    /// `<name>.broken`. On return everything that was read is on disk, unless [`Options::no_sync`]
    /// is set.
    pub fn open(dir: &Path, at: &walpb::Snapshot, options: Options) -> Result<(Self, ReadAll), Error> {
        Self::open_on(Arc::new(OsDisk), dir, at, options)
    }

    /// Reads what follows the snapshot `at`, without a lock and without changing anything. An
    /// incomplete last record is omitted.
    pub fn read(dir: &Path, at: &walpb::Snapshot) -> Result<ReadAll, Error> {
        Self::read_on(&OsDisk, dir, at)
    }

    /// The snapshot records that a member may start from: those up to the last commit index. Oldest
    /// first.
    pub fn valid_snapshots(dir: &Path) -> Result<Vec<walpb::Snapshot>, Error> {
        Self::valid_snapshots_on(&OsDisk, dir)
    }

    /// [`Wal::exists`] on a given disk.
    pub fn exists_on(disk: &dyn Disk, dir: &Path) -> bool {
        segment::list(disk, dir).is_ok()
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

        durable::sync_dir(&*disk, &temporary)?;
        disk.rename(&temporary, dir).map_err(Error::io("rename to", dir))?;
        durable::sync_dir(&*disk, durable::parent_of(dir))?;
        Ok(Self {
            pipeline: Pipeline::start(disk.clone(), dir, options.segment_bytes)?,
            disk,
            dir: dir.into(),
            options,
            metadata: metadata.into(),
            state: raftpb::HardState::default(),
            last_index: 0,
            encoder,
            held: Vec::new(),
            tail: Segment { name, path: dir.join(name.to_string()), file },
            poisoned: false,
            written: Default::default(),
        })
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
        if !options.no_sync {
            durable::make_durable(&*disk, dir, &tail, &end)?;
        }
        let wal = Self {
            pipeline: Pipeline::start(disk.clone(), dir, options.segment_bytes)?,
            disk,
            dir: dir.into(),
            options,
            metadata: all.metadata.to_vec(),
            state: all.hard_state,
            last_index: end.last_index,
            encoder: Encoder::new(end.offset, end.crc),
            held,
            tail,
            poisoned: false,
            written: Default::default(),
        };
        Ok((wal, all))
    }

    /// [`Wal::read`] on a given disk.
    pub fn read_on(disk: &dyn Disk, dir: &Path, at: &walpb::Snapshot) -> Result<ReadAll, Error> {
        let names = segment::list(disk, dir)?;
        let names = segment::select(dir, &names, at.index())?;
        let segments = segment::open(disk, dir, names, OpenMode::Read)?;
        Ok(read::read_segments(dir, &segments, at)?.0)
    }

    /// Like [`Wal::read`], but drops the data of the entries, so that a log of any size fits into
    /// memory. [`Wal::each_entry`] returns the data.
    pub fn read_heads(dir: &Path, at: &walpb::Snapshot) -> Result<(ReadAll, EntryPlaces), Error> {
        read::read_heads(dir, &segments_from(dir, at)?, at)
    }

    /// Calls `visit` with each entry that [`Wal::read_heads`] listed, complete and in order. Only
    /// one entry is in memory at a time. An error of `visit` ends the calls and is returned. Fails
    /// with [`Error::Changed`] if an entry is not there any more.
    pub fn each_entry<E: From<Error>>(
        dir: &Path,
        at: &walpb::Snapshot,
        entries: &EntryPlaces,
        visit: impl FnMut(raftpb::Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        read::each_entry(dir, &segments_from(dir, at)?, entries, visit)
    }

    /// [`Wal::valid_snapshots`] on a given disk.
    pub fn valid_snapshots_on(disk: &dyn Disk, dir: &Path) -> Result<Vec<walpb::Snapshot>, Error> {
        read::valid_snapshots(disk, dir)
    }
}

fn segments_from(dir: &Path, at: &walpb::Snapshot) -> Result<Vec<Segment>, Error> {
    let names = segment::list(&OsDisk, dir)?;
    segment::open(&OsDisk, dir, segment::select(dir, &names, at.index())?, OpenMode::Read)
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
