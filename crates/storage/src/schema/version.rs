//! The version a file is at, and whether a binary may start on it.

pub use proto::Version;

use super::{Bucket, DecodeError, cluster, meta};
use crate::Read;

/// Files of this version are known by the term they keep.
pub const V3_5: Version = Version::new(3, 5);
/// What the first leader sets when it cannot ask every member. No file of this version has terms, so with them it says
/// only that the version is still to be decided.
const V3_0: Version = Version::new(3, 0);
/// From this version on a file says its version itself.
pub const V3_6: Version = Version::new(3, 6);
/// The first version of ours, and the first with a feature gate in its files.
pub const V3_8: Version = Version::new(3, 8);

pub(super) fn decode(bucket: Bucket, key: &[u8], value: &[u8]) -> Result<Version, DecodeError> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|t| t.parse().ok()).ok_or_else(|| DecodeError::value(bucket, key, "a version such as 3.7.0", value))
}

/// What a file says about its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No entry was ever applied to it.
    New,
    /// Entries were applied, but no leader has decided a cluster version yet, or only the one for want of answers.
    Undecided,
    At(Version),
    /// Written before 3.5.
    BeforeTerms,
}

/// Reads the version of the file. 3.6 and newer write it; 3.5 is known by the term it keeps beside the index.
///
/// The storage version follows the cluster version a moment later, so a file of 3.6 or newer may be found with the
/// second alone: then that is what it was going to be. And a first start cut short before the cluster version was
/// decided leaves neither, in any version.
pub fn detect(read: &impl Read) -> Result<Found, DecodeError> {
    if let Some(version) = meta::storage_version(read)? {
        return Ok(Found::At(version));
    }
    let (index, term) = meta::consistent(read)?;
    Ok(match cluster::version(read)? {
        _ if index == 0 => Found::New,
        _ if term == 0 => Found::BeforeTerms,
        Some(cluster) if cluster >= V3_6 => Found::At(cluster),
        None | Some(V3_0) => Found::Undecided,
        Some(_) => Found::At(V3_5),
    })
}

/// Whether a binary may start on a file. As text: what was found and the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Start,
    TooNew { found: Version, binary: Version },
    TooOld { found: Option<Version>, binary: Version },
}

/// The same minor and one minor older may start; the file then stays at the cluster version in it.
pub fn judge(found: Found, binary: Version) -> Judgement {
    match found {
        Found::New | Found::Undecided => Judgement::Start,
        Found::BeforeTerms => Judgement::TooOld { found: None, binary },
        Found::At(found) if found > binary => Judgement::TooNew { found, binary },
        Found::At(found) if found.major == binary.major && found.minor + 1 >= binary.minor => Judgement::Start,
        Found::At(found) => Judgement::TooOld { found: Some(found), binary },
    }
}

impl Judgement {
    /// What was found and the way out. `place` is the data dir in the words of a command line: `--data-dir D`.
    pub fn advise(self, place: &str) -> String {
        match self {
            Judgement::Start => "the data dir can be started on".to_owned(),
            Judgement::TooNew { found, binary } => format!(
                "the data dir is at storage version {found}, newer than this binary ({binary}): start a {found} binary on \
                 it, and bring the cluster to {binary} with `downgrade enable {binary}` before starting this one; or, with \
                 every member stopped, run `migrate {place} --target-version {binary}` of {found}'s offline tool on \
                 each member's data dir"
            ),
            Judgement::TooOld { found, binary } => {
                let needed = Version::new(binary.major, binary.minor.saturating_sub(1));
                let (is, first) = match found {
                    Some(found) => (format!("is at storage version {found}"), ""),
                    None => ("was written before 3.5".to_owned(), "start etcd 3.5 on it once, "),
                };
                format!(
                    "the data dir {is}; this binary ({binary}) starts on {needed} and {binary}: {first}stop every member, \
                     run `lockgateutl migrate {place} --target-version {needed}` on each, then start this binary"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: Version = Version::new(3, 8);

    #[test]
    fn one_minor_of_distance_starts() {
        let judged = |major, minor| judge(Found::At(Version::new(major, minor)), BINARY);
        assert_eq!(judged(3, 8), Judgement::Start);
        assert_eq!(judged(3, 7), Judgement::Start);
        assert_eq!(judge(Found::New, BINARY), Judgement::Start);
        assert_eq!(judge(Found::Undecided, BINARY), Judgement::Start);
        assert!(matches!(judged(3, 6), Judgement::TooOld { .. }));
        assert!(matches!(judged(2, 8), Judgement::TooOld { .. }));
        assert!(matches!(judged(3, 9), Judgement::TooNew { .. }));
        assert!(matches!(judged(4, 0), Judgement::TooNew { .. }));
        assert!(matches!(judge(Found::BeforeTerms, BINARY), Judgement::TooOld { found: None, .. }));
    }

    #[test]
    fn refusals_name_both_versions_and_the_way_out() {
        let text = |found| judge(found, BINARY).advise("--data-dir /data");
        assert_eq!(
            text(Found::At(Version::new(3, 9))),
            "the data dir is at storage version 3.9, newer than this binary (3.8): start a 3.9 binary on it, and bring \
             the cluster to 3.8 with `downgrade enable 3.8` before starting this one; or, with every member stopped, run \
             `migrate --data-dir /data --target-version 3.8` of 3.9's offline tool on each member's data dir"
        );
        assert_eq!(
            text(Found::At(V3_5)),
            "the data dir is at storage version 3.5; this binary (3.8) starts on 3.7 and 3.8: stop every member, run \
             `lockgateutl migrate --data-dir /data --target-version 3.7` on each, then start this binary"
        );
        assert!(text(Found::BeforeTerms).contains("was written before 3.5"));
        assert!(text(Found::BeforeTerms).contains("start etcd 3.5 on it once, stop every member"));
    }
}
