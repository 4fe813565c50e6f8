//! The log open for appending: save, cut, release, close.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use failpoint::failpoint;
use proto::{raftpb, walpb};

use crate::{
    check,
    disk::{Disk, DiskFile},
    encoder::Encoder,
    error::Error,
    pipeline::Pipeline,
    segment::{Name, Segment},
};

/// A sync that takes longer is worth a warning, as in etcd.
const SLOW_SYNC: Duration = Duration::from_secs(1);

/// The settings of a log that is open for appending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size in bytes to preallocate for a segment. The first save that reaches it starts the next
    /// segment.
    pub segment_bytes: u64,
    /// Omits every sync. A crash of the machine may then lose acknowledged writes.
    pub no_sync: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 64 * 1000 * 1000, no_sync: false }
    }
}

/// The bytes and the time that a save took, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    /// Bytes written to the file system since the previous `Saved`.
    pub bytes: u64,
    /// Time that those writes took.
    pub write: Duration,
    /// Time spent in fdatasync. `None` if no sync was needed.
    pub sync: Option<Duration>,
    /// Whether the save started a new segment.
    pub cut: bool,
}

/// A log open for appending, for use by one thread at a time.
///
/// Dropping it without [`Wal::close`] leaves the files as a crash would.
#[derive(Debug)]
pub struct Wal {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) metadata: Vec<u8>,
    /// The state written last.
    pub(crate) state: raftpb::HardState,
    /// Index of the entry or snapshot saved last.
    pub(crate) last_index: u64,
    pub(crate) encoder: Encoder,
    /// Locked segments before `tail`, oldest first.
    pub(crate) held: Vec<Segment>,
    /// The segment written to.
    pub(crate) tail: Segment,
    pub(crate) pipeline: Pipeline,
    pub(crate) poisoned: bool,
    /// Bytes that went to the file since the last [`Saved`], and how long that took.
    pub(crate) written: (u64, Duration),
}

impl Wal {
    /// Appends entries, then the hard state unless it is `None` or empty. On return they are on
    /// disk if there are entries or if term or vote changed. A new commit index alone is not
    /// synced, because a restarted member learns it again from the leader.
    pub fn save(&mut self, state: Option<&raftpb::HardState>, entries: &[raftpb::Entry]) -> Result<Saved, Error> {
        let must_sync = self.append(state, entries)?;
        if must_sync || self.is_full() { self.sync() } else { Ok(Saved::default()) }
    }

    /// Appends like [`Wal::save`], without waiting for the disk. Returns true if the caller must
    /// call [`Wal::sync`] before it acts on the records.
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
            self.write(Encoder::spill)?;
        }
        if let Some(state) = state {
            self.encoder.state(state);
            self.state = *state;
        }
        Ok(must_sync)
    }

    /// Makes everything appended durable, and starts the next segment if the current one is full.
    pub fn sync(&mut self) -> Result<Saved, Error> {
        self.check_alive()?;
        if self.is_full() { self.cut() } else { self.flush_and_sync() }
    }

    /// Appends a snapshot record and syncs. Call it before appending entries after the snapshot's
    /// index.
    pub fn save_snapshot(&mut self, snapshot: &walpb::Snapshot) -> Result<Saved, Error> {
        self.check_alive()?;
        check_snapshot(snapshot)?;
        self.encoder.snapshot(snapshot);
        self.last_index = self.last_index.max(snapshot.index());
        self.flush_and_sync()
    }

    /// Unlocks the segments that contain only entries before `index`, so that [`crate::purge`] may
    /// remove them. Of the segments that begin before `index`, the newest stays locked, because it
    /// may contain `index` itself.
    pub fn release_to(&mut self, index: u64) -> Result<(), Error> {
        let names = self.held.iter().chain([&self.tail]).map(|segment| segment.name.index);
        let before = names.take_while(|&first| first < index).count();
        self.held.drain(..before.saturating_sub(1));
        Ok(())
    }

    /// Syncs and closes the log. After a failed write it closes without a sync.
    pub fn close(mut self) -> Result<(), Error> {
        if !self.poisoned {
            self.flush_and_sync()?;
        }
        Ok(())
    }

    /// Raft index of the entry or snapshot that was saved last.
    pub fn last_index(&self) -> u64 {
        self.last_index
    }

    fn is_full(&self) -> bool {
        self.encoder.end() >= self.options.segment_bytes
    }

    fn flush_and_sync(&mut self) -> Result<Saved, Error> {
        self.write(Encoder::flush)?;
        let (bytes, write) = std::mem::take(&mut self.written);
        if self.options.no_sync {
            return Ok(Saved { bytes, write, sync: None, cut: false });
        }
        let start = Instant::now();
        let synced = self.sync_tail();
        self.or_poison("sync", synced)?;
        failpoint!("walAfterSync");
        let took = start.elapsed();
        if took > SLOW_SYNC {
            tracing::warn!(?took, expected = ?SLOW_SYNC, "slow fdatasync");
        }
        Ok(Saved { bytes, write, sync: Some(took), cut: false })
    }

    /// The point may return a text: then that is the error, and nothing is synced.
    fn sync_tail(&self) -> std::io::Result<()> {
        failpoint!("walBeforeSync", |text| return Err(std::io::Error::other(text)));
        self.tail.file.sync_data()
    }

    /// Has the encoder write what it will.
    fn write(&mut self, how: fn(&mut Encoder, &dyn DiskFile) -> std::io::Result<usize>) -> Result<(), Error> {
        let start = Instant::now();
        let result = how(&mut self.encoder, self.tail.file.as_ref());
        let bytes = self.or_poison("write", result)?;
        if bytes > 0 {
            self.written.0 += bytes as u64;
            self.written.1 += start.elapsed();
        }
        Ok(())
    }

    /// Ends the segment and starts the next, whose header is on disk before it gets its name.
    fn cut(&mut self) -> Result<Saved, Error> {
        self.write(Encoder::flush)?;
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
        Ok(Saved { bytes: old.bytes + new.bytes, write: old.write + new.write, sync, cut: true })
    }

    fn take_spare(&mut self) -> Result<crate::pipeline::Spare, Error> {
        let spare = self.pipeline.take().unwrap_or_else(|| Err(Error::Poisoned { path: self.dir.clone() }));
        self.poisoned |= spare.is_err();
        spare
    }

    fn check_alive(&self) -> Result<(), Error> {
        if self.poisoned { Err(Error::Poisoned { path: self.tail.path.clone() }) } else { Ok(()) }
    }

    /// A log that could not be opened again is not written in the first place.
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
            if !check::is_known_type(entry) {
                return refuse("its type is unknown, or it is a conf change without data");
            }
            last = index;
        }
        Ok(())
    }

    /// The same for states.
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
