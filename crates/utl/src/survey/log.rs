//! What the log after the last snapshot holds, entry by entry, with one of them in memory at a time.

use std::path::Path;

use anyhow::{Context, bail};
use prost::Message;
use proto::{
    MinVersion, V2Change, V2Request, Version,
    etcdserverpb::InternalRaftRequest,
    min_version_of_entry,
    raftpb::{Entry, EntryType, HardState},
    walpb,
};
use wal::{EntryPlaces, Metadata, Wal};

/// A log after its last usable snapshot record.
pub(crate) struct LogSurvey {
    pub at: walpb::Snapshot,
    pub metadata: Metadata,
    pub hard_state: HardState,
    /// What raft knows of each entry, without what it carries.
    pub heads: Vec<Entry>,
    /// Where these entries are.
    pub places: EntryPlaces,
    /// Every snapshot record that may be started from.
    pub snapshots: Vec<walpb::Snapshot>,
    /// Whether the first segment is the first there ever was.
    pub from_the_beginning: bool,
    pub last: u64,
    pub commit: u64,
    /// The highest version that an entry needs, and the first entry that does.
    pub newest: Option<(Version, u64)>,
    /// Entries that ask for more than a version, by index.
    pub needed: Vec<Needed>,
    /// Cluster versions that entries set, by index.
    pub versions_set: Vec<(u64, Version)>,
    /// The last entry of each version above 3.5.
    pub last_of: Vec<(Version, u64)>,
    /// Bytes of all entries.
    pub bytes: u64,
}

/// An entry that asks for something special of its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    pub index: u64,
    pub need: Need,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing but this version.
    Version(Version),
    /// Something that this binary does not know, and where it stands.
    Unknown(String),
    /// A request of the v2 API; whether it is one that 3.6 still applies.
    V2 { what: String, applied_by_3_6: bool },
    /// It cannot be read at all.
    Unreadable(String),
}

impl LogSurvey {
    pub(crate) fn look(dir: &Path) -> anyhow::Result<LogSurvey> {
        let snapshots = Wal::valid_snapshots(dir)?;
        let at = snapshots.iter().max_by_key(|snapshot| snapshot.index()).cloned().unwrap_or_default();
        let (read, places) = Wal::read_heads(dir, &at)?;
        let metadata = Metadata::decode(&read.metadata).context("the log's metadata cannot be read")?;
        let mut survey = LogSurvey {
            metadata,
            hard_state: read.hard_state,
            last: read.entries.last().map_or(at.index(), Entry::index),
            commit: read.hard_state.commit().max(at.index()),
            heads: read.entries,
            from_the_beginning: dir.join(FIRST_SEGMENT).exists(),
            snapshots,
            newest: None,
            needed: Vec::new(),
            versions_set: Vec::new(),
            last_of: Vec::new(),
            bytes: 0,
            places: EntryPlaces::default(),
            at: at.clone(),
        };
        Wal::each_entry(dir, &at, &places, |entry| {
            survey.add(&entry);
            Ok::<_, wal::Error>(())
        })?;
        survey.places = places;
        Ok(survey)
    }

    fn add(&mut self, entry: &Entry) {
        let index = entry.index();
        self.bytes += entry.data.as_ref().map_or(0, |data| data.len() as u64);
        match need_of(entry) {
            Need::Version(version) => {
                if self.newest.is_none_or(|(newest, _)| version > newest) {
                    self.newest = Some((version, index));
                }
                if version > Version::new(3, 5) {
                    self.last_of.retain(|(known, _)| *known != version);
                    self.last_of.push((version, index));
                }
            }
            need => self.needed.push(Needed { index, need }),
        }
        if let Some(version) = request_of(entry).and_then(version_set) {
            self.versions_set.push((index, version));
        }
    }

    /// Refuses logs that cannot be all of what was written.
    pub(crate) fn judge(&self, applied: u64) -> anyhow::Result<()> {
        if self.last < applied {
            bail!(
                "the log ends at index {} but the database has applied index {applied}: entries are missing from the log; \
                 give the log's directory with --wal-dir if it is elsewhere, else restore a snapshot",
                self.last
            );
        }
        if self.last < self.commit {
            bail!(
                "the log ends at index {} but says that index {} was committed: entries are missing from the log; \
                 restore a snapshot",
                self.last,
                self.commit
            );
        }
        Ok(())
    }

    /// An entry after `after` that a reader at `target` could not read, and why.
    pub(crate) fn newer_than(&self, target: Version, after: u64) -> Option<(u64, String)> {
        let special = self.needed.iter().filter(|needed| needed.index > after);
        let special = special.filter_map(|needed| Some((needed.index, needed.need.refused_by(target)?)));
        let newer = self.last_of.iter().filter(|(version, index)| *version > target && *index > after);
        let newer = newer.map(|(version, index)| (*index, format!("needs {version}")));
        special.chain(newer).min()
    }
}

impl Need {
    /// Whether it is something that this binary does not know.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Need::Unknown(_))
    }

    /// Why a release cannot take an entry with this need, if so.
    pub(crate) fn refused_by(&self, target: Version) -> Option<String> {
        match self {
            Need::Version(version) => (*version > target).then(|| format!("needs {version}")),
            Need::Unknown(path) => Some(format!("holds {path}, which this binary does not know")),
            Need::Unreadable(why) => Some(format!("cannot be read ({why})")),
            Need::V2 { what, .. } if target >= Version::new(3, 7) => {
                Some(format!("is a request of the v2 API ({what}), which no release since 3.7 can read"))
            }
            Need::V2 { what, applied_by_3_6: false } if target == Version::new(3, 6) => {
                Some(format!("is a request of the v2 API ({what}), which 3.6 does not apply"))
            }
            Need::V2 { .. } => None,
        }
    }
}

/// What an entry asks of its reader. Requests of the v2 API are recognised first: they are no message of today.
pub(super) fn need_of(entry: &Entry) -> Need {
    let data = entry.data.clone().unwrap_or_default();
    if entry.r#type() == EntryType::EntryNormal
        && let Some(request) = V2Request::recognise(&data)
    {
        let applied_by_3_6 = matches!(request.change(), V2Change::Today(_));
        return Need::V2 { what: request.describe(), applied_by_3_6 };
    }
    match min_version_of_entry(entry) {
        Ok(MinVersion::Known(version)) => Need::Version(version),
        Ok(MinVersion::Newer { path }) => Need::Unknown(path),
        Err(error) => Need::Unreadable(error.to_string()),
    }
}

/// What an entry asks for, in the words of today.
fn request_of(entry: &Entry) -> Option<InternalRaftRequest> {
    let data = entry.data.as_ref().filter(|_| entry.r#type() == EntryType::EntryNormal)?;
    match V2Request::recognise(data).map(|request| request.change()) {
        Some(V2Change::Today(request)) => Some(*request),
        Some(V2Change::Unsupported(_)) => None,
        None => InternalRaftRequest::decode(data.clone()).ok(),
    }
}

/// The version that a request sets, if it does.
fn version_set(request: InternalRaftRequest) -> Option<Version> {
    // A decision about features names the version that it is for, and moves nothing.
    request.cluster_version_set.filter(|set| set.feature_gates.is_none())?.ver.parse().ok()
}

const FIRST_SEGMENT: &str = "0000000000000000-0000000000000000.wal";
