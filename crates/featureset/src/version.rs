//! ClusterVersion where no version operator keeps it: beginning, completing and aborting the way to a version.

use featuregate::Version;

use crate::object::{
    ClusterOperator, ClusterVersion, Extra, HISTORY_MAX, Meta, Release, Update, UpdateState, find_condition,
};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    #[error("the version is empty")]
    Empty,
    #[error("{0:?} is no version: it has spaces or control characters in it")]
    Odd(String),
    #[error("{0} is under way; complete or abort it first")]
    UnderWay(String),
    #[error("{0} is installed already")]
    Installed(String),
    #[error("{version} is not under way; {found}")]
    NotUnderWay { version: String, found: String },
    #[error("{0} is the first version here: there is none to go back to")]
    NothingBefore(String),
    #[error("the cluster may not be upgraded from {from} to {to}: {why}")]
    NotUpgradeable { from: String, to: String, why: String },
}

/// A ClusterVersion with nothing in it.
pub fn new_cluster_version(cluster_id: &str) -> ClusterVersion {
    let mut spec = Extra::new();
    spec.insert("clusterID".to_owned(), cluster_id.into());
    ClusterVersion {
        api_version: crate::object::API_VERSION.to_owned(),
        kind: ClusterVersion::KIND.to_owned(),
        metadata: Meta::named(ClusterVersion::NAME),
        spec,
        status: Default::default(),
        extra: Extra::new(),
    }
}

/// Begun twice is begun once.
pub fn begin(object: &ClusterVersion, version: &str, now: &str) -> Result<ClusterVersion, VersionError> {
    if version.trim().is_empty() {
        return Err(VersionError::Empty);
    }
    if is_odd(version) {
        return Err(VersionError::Odd(version.to_owned()));
    }
    match object.status.history.first() {
        Some(newest) if newest.state == UpdateState::Partial && newest.version == version => return Ok(object.clone()),
        Some(newest) if newest.state == UpdateState::Partial => {
            return Err(VersionError::UnderWay(newest.version.clone()));
        }
        Some(newest) if newest.version == version => return Err(VersionError::Installed(version.to_owned())),
        _ => {}
    }
    let mut new = object.clone();
    go_to(&mut new, version, now);
    Ok(new)
}

/// What nobody means: the end of a line from a file, or two words. No component would ever find its row under it.
pub(crate) fn is_odd(version: &str) -> bool {
    version.contains(|c: char| c.is_whitespace() || c.is_control())
}

pub fn complete(object: &ClusterVersion, version: &str, now: &str) -> Result<ClusterVersion, VersionError> {
    let mut new = object.clone();
    let newest = under_way(&mut new, version)?;
    newest.state = UpdateState::Completed;
    newest.completion_time = Some(now.to_owned());
    Ok(new)
}

/// Going back is a way of its own, to be completed like any other. The row of the version that is left stays while it is in
/// the history: parts of the cluster may run it already.
pub fn abort(object: &ClusterVersion, version: &str, now: &str) -> Result<ClusterVersion, VersionError> {
    let mut new = object.clone();
    under_way(&mut new, version)?.completion_time = Some(now.to_owned());
    let done = |update: &&Update| update.state == UpdateState::Completed && !update.version.is_empty();
    let before = object.status.history.iter().find(done).map(|update| update.version.clone());
    let before = before.ok_or_else(|| VersionError::NothingBefore(version.to_owned()))?;
    go_to(&mut new, &before, now);
    Ok(new)
}

/// Sets that block upgrades block those to another minor release; patches pass, and so does the way down.
pub fn check_upgradeable(
    object: &ClusterVersion,
    operator: Option<&ClusterOperator>,
    version: &str,
) -> Result<(), VersionError> {
    let blocked = operator.and_then(|operator| find_condition(&operator.status.conditions, "Upgradeable"));
    let (Some(from), Some(blocked)) = (object.latest(), blocked.filter(|condition| !condition.is_true())) else {
        return Ok(());
    };
    let refused =
        |why: String| Err(VersionError::NotUpgradeable { from: from.to_owned(), to: version.to_owned(), why });
    match (from.parse::<Version>(), version.parse::<Version>()) {
        (Ok(old), Ok(new)) if new > old => refused(blocked.message.clone()),
        (Ok(_), Ok(_)) => Ok(()),
        // Whatever it is, it must not be the way round.
        (Err(error), _) | (_, Err(error)) => refused(format!("{}; and {error}", blocked.message)),
    }
}

fn go_to(object: &mut ClusterVersion, version: &str, now: &str) {
    object.status.desired = Release { version: version.to_owned(), ..Release::default() };
    let update = Update {
        state: UpdateState::Partial,
        started_time: Some(now.to_owned()),
        completion_time: None,
        version: version.to_owned(),
        image: String::new(),
        verified: false,
        extra: Extra::new(),
    };
    object.status.history.insert(0, update);
    object.status.history.truncate(HISTORY_MAX);
}

fn under_way<'a>(object: &'a mut ClusterVersion, version: &str) -> Result<&'a mut Update, VersionError> {
    let found = match object.status.history.first() {
        None => "nothing is".to_owned(),
        Some(newest) if newest.state == UpdateState::Partial => format!("{} is", newest.version),
        Some(newest) => format!("{} is completed", newest.version),
    };
    match object.status.history.first_mut() {
        Some(newest) if newest.state == UpdateState::Partial && newest.version == version => Ok(newest),
        _ => Err(VersionError::NotUnderWay { version: version.to_owned(), found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(object: &ClusterVersion) -> String {
        let entry = |update: &Update| format!("{}:{:?}", update.version, update.state);
        object.status.history.iter().map(entry).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn up_and_back() {
        let object = begin(&new_cluster_version("x"), "1.4.0", "t").unwrap();
        assert_eq!(abort(&object, "1.4.0", "t"), Err(VersionError::NothingBefore("1.4.0".to_owned())));
        let object = complete(&object, "1.4.0", "t").unwrap();
        assert_eq!(begin(&object, "1.4.0", "t"), Err(VersionError::Installed("1.4.0".to_owned())));
        let object = begin(&object, "1.5.0", "t").unwrap();
        assert_eq!(begin(&object, "1.5.0", "later"), Ok(object.clone()));
        assert_eq!(begin(&object, "1.6.0", "t"), Err(VersionError::UnderWay("1.5.0".to_owned())));
        assert_eq!(object.running(), ["1.4.0", "1.5.0"]);
        let error = complete(&object, "1.4.0", "t").unwrap_err().to_string();
        assert_eq!(error, "1.4.0 is not under way; 1.5.0 is");
        let object = abort(&object, "1.5.0", "t").unwrap();
        assert_eq!(
            (history(&object).as_str(), object.latest()),
            ("1.4.0:Partial 1.5.0:Partial 1.4.0:Completed", Some("1.4.0"))
        );
        let object = complete(&object, "1.4.0", "t").unwrap();
        assert_eq!(history(&object), "1.4.0:Completed 1.5.0:Partial 1.4.0:Completed");
        assert_eq!(object.running(), ["1.4.0"]);
        let mut odd = object.clone();
        odd.status.history.insert(0, Update { version: String::new(), ..odd.status.history[0].clone() });
        odd.status.desired.version = String::new();
        assert_eq!(odd.running(), ["1.4.0"], "an entry without a version ends nothing");
        assert_eq!(begin(&object, " ", "t"), Err(VersionError::Empty));
        for odd in ["1.6.0\n", " 1.6.0", "1.6.0 x", "1.6.0\0"] {
            assert_eq!(begin(&object, odd, "t"), Err(VersionError::Odd(odd.to_owned())));
        }
    }

    #[test]
    fn a_history_has_a_bound() {
        let mut object = new_cluster_version("x");
        for i in 0..120 {
            let version = format!("1.{i}.0");
            object = complete(&begin(&object, &version, "t").unwrap(), &version, "t").unwrap();
        }
        assert_eq!((object.status.history.len(), object.latest()), (HISTORY_MAX, Some("1.119.0")));
    }

    #[test]
    fn blocked_are_minor_upgrades_alone() {
        let object = complete(&begin(&new_cluster_version("x"), "1.4.0", "t").unwrap(), "1.4.0", "t").unwrap();
        let mut operator = ClusterOperator::new("o");
        let condition =
            crate::object::Condition::new("Upgradeable", false, "R", "\"TechPreviewNoUpgrade\" does not allow updates");
        operator.status.conditions.push(condition);
        for (version, ok) in [("1.4.1", true), ("1.3.0", true), ("1.5.0", false), ("2.0.0", false), ("v1.4.1", false)] {
            assert_eq!(check_upgradeable(&object, Some(&operator), version).is_ok(), ok, "{version}");
        }
        assert!(check_upgradeable(&object, None, "1.5.0").is_ok());
    }
}
