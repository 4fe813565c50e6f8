//! Which releases may start on a dir, and why others may not.

use std::path::Path;

use storage::schema::{
    Version,
    version::{Found, Judgement, V3_5, V3_6, V3_8, judge},
};
use wal::snapfile;

use super::{LogSurvey, Survey};

/// Those that a dir can be brought to; the last is ours.
pub(crate) const RELEASES: [Version; 4] = [V3_5, V3_6, V3_7, V3_8];
const V3_7: Version = Version::new(3, 7);

/// Whether `release` may start on the dir. `Err` says what stands in the way.
pub(crate) fn may_start(survey: &Survey, release: Version) -> Result<(), String> {
    if let Some(cluster) = survey.cluster.version().filter(|cluster| *cluster > release) {
        return Err(format!("the cluster version is {cluster}"));
    }
    match survey.found {
        Found::BeforeTerms if release > V3_5 => return Err("the file was written before 3.5".into()),
        Found::At(version) if version > release => return Err(format!("the file is at {version}")),
        found if release == V3_8 && judge(found, release) != Judgement::Start => {
            return Err("the file is two or more minors older".into());
        }
        _ => {}
    }
    if let Some((index, why)) = survey.log.newer_than(release, survey.log.at.index()) {
        return Err(format!("entry {index} {why}"));
    }
    if release < V3_7 && !survey.starts_from_snap {
        return Err("it needs a .snap file that the log lists, and there is none".into());
    }
    Ok(())
}

/// Whether releases that start from `.snap` files find what they need.
pub(super) fn has_snap(dir: &Path, log: &LogSurvey) -> bool {
    let listed = |path: &Path| {
        let found = snapfile::read(path).ok().and_then(|snapshot| snapshot.metadata);
        found.is_some_and(|m| log.snapshots.iter().any(|s| (s.index(), s.term()) == (m.index(), m.term())))
    };
    log.from_the_beginning && log.heads.first().is_some_and(|entry| entry.index() == 1)
        || snapfile::list(dir).unwrap_or_default().iter().any(|path| listed(path))
}
