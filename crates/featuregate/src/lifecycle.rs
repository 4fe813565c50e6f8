//! The rules of a feature's life, checked between one release and the next.
//!
//! Why each rule: in a cluster that is half upgraded, members of two releases must agree on what a feature is at the
//! cluster version they share. So what a release said about a version stays said; and before the code for a value is
//! gone, there must have been a minor release in which that value could no longer be chosen.

use std::fmt;

use crate::{Release, Row, Spec, Stage, Version};

/// A rule of a feature's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The two records are of one minor release, or of two that follow each other.
    NextRelease,
    /// A name that was retired is never used again, and a feature that leaves is recorded as retired.
    NameOnce,
    /// A level never changes.
    LevelFixed,
    /// A lock, default or stage never changes in a patch, nor for a version that is already out.
    SaidStaysSaid,
    /// A feature is locked only after it was in a minor release unlocked.
    LockAfterMinor,
    /// Anything but alpha leaves only after a minor release as Deprecated and locked, and not in a patch.
    LeaveLocked,
}

impl Rule {
    /// The rule as a sentence fragment, for messages about a violation.
    pub const fn text(self) -> &'static str {
        match self {
            Rule::NextRelease => "a table is compared with the release right before it",
            Rule::NameOnce => "a name is never reused",
            Rule::LevelFixed => "a level never changes",
            Rule::SaidStaysSaid => {
                "a lock, default or stage never changes in a patch or for a version already released"
            }
            Rule::LockAfterMinor => "a feature is locked only after one minor release unlocked",
            Rule::LeaveLocked => {
                "a feature that is not alpha leaves after one minor release stable, then one as Deprecated and locked"
            }
        }
    }
}

/// A difference between two releases that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The feature's name. Empty if the violation concerns the release as a whole.
    pub feature: String,
    /// The rule that the change breaks.
    pub rule: Rule,
    /// The change, as the two records show it.
    pub found: String,
    /// A sentence that says how to change the new table so that it follows the rule.
    pub remedy: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.feature.is_empty() {
            write!(f, "{}: ", self.feature)?;
        }
        write!(f, "{} ({}). {}", self.found, self.rule.text(), self.remedy)
    }
}

/// Returns every violation of a [`Rule`] in `new`, compared with `old`, the release before it.
/// Sorted by feature. If `new` does not follow `old`, that is the only violation reported.
pub fn check_lifecycle(old: &Release, new: &Release) -> Vec<Violation> {
    if let Some(violation) = check_order(old, new) {
        return vec![violation];
    }
    let check = Check { old, new, patch: old.version == new.version };
    let mut found = Vec::new();
    let names = old.features.keys().chain(&old.retired).chain(new.features.keys()).chain(&new.retired);
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        check.name(name, &mut found);
        match (old.features.get(name), new.features.get(name)) {
            (Some(was), Some(is)) => check.stays(name, was, is, &mut found),
            (Some(was), None) => check.leaves(name, was, &mut found),
            (None, Some(is)) => check.comes(name, is, &mut found),
            (None, None) => {}
        }
    }
    found
}

/// Other comparisons would say nothing: a step over a release hides what that release promised.
fn check_order(old: &Release, new: &Release) -> Option<Violation> {
    let next_minor = new.version.major == old.version.major && new.version.minor == old.version.minor.saturating_add(1);
    let next_major = new.version.major == old.version.major.saturating_add(1) && new.version.minor == 0;
    if (old.version == new.version && old.patch <= new.patch) || next_minor || next_major {
        return None;
    }
    Some(Violation {
        feature: String::new(),
        rule: Rule::NextRelease,
        found: format!("{}.{} does not follow {}.{}", new.version, new.patch, old.version, old.patch),
        remedy: format!("Compare {} with the last release of the same minor or of the one before.", new.version),
    })
}

struct Check<'a> {
    old: &'a Release,
    new: &'a Release,
    /// Both releases are of one minor.
    patch: bool,
}

impl Check<'_> {
    fn name(&self, name: &str, found: &mut Vec<Violation>) {
        let (old, new) = (self.old, self.new);
        let mut add = |what: String, remedy: String| {
            found.push(Violation { feature: name.to_owned(), rule: Rule::NameOnce, found: what, remedy });
        };
        let retired = old.retired.contains(name) || new.retired.contains(name);
        if new.features.contains_key(name) {
            if retired {
                add("is registered though the name is retired".into(), "Choose a new name.".into());
            }
        } else if !new.retired.contains(name) {
            let was = if old.retired.contains(name) { "was retired" } else { "has left" };
            let what = format!("{was}, but {} does not list it as retired", new.version);
            add(what, "Add it to the retired names, so that it is never taken again.".into());
        }
    }

    fn stays(&self, name: &str, was: &Row, is: &Row, found: &mut Vec<Violation>) {
        let mut add = |rule, what, remedy| {
            found.push(Violation { feature: name.to_owned(), rule, found: what, remedy });
        };
        if was.level != is.level {
            let what = format!("was {}-level and is now {}-level", was.level, is.level);
            let remedy = format!("Leave it {}-level and register the other under a new name.", was.level);
            add(Rule::LevelFixed, what, remedy);
        }
        for version in said_versions(was, is, self.old.version) {
            let (before, after) = (was.spec_at(version), is.spec_at(version));
            if !same(before, after) {
                let what = format!("was {} at {version} and is now {}", show(before), show(after));
                let remedy = match before {
                    Some(spec) => format!("Put `{spec}` back and {}.", self.next_minor_advice()),
                    None => format!("Drop that spec and {}.", self.next_minor_advice()),
                };
                add(Rule::SaidStaysSaid, what, remedy);
            }
        }
        // The old table may have announced it for a later version; then this is its first release all the same.
        if was.spec_at(self.old.version).is_none() {
            self.lock_of_newcomer(name, is, found);
        }
    }

    fn leaves(&self, name: &str, was: &Row, found: &mut Vec<Violation>) {
        let Some(last) = was.spec_at(self.old.version) else { return };
        if last.stage == Stage::Alpha {
            return;
        }
        let ready = last.stage == Stage::Deprecated && last.locked;
        if ready && !self.patch {
            return;
        }
        let remedy = if ready {
            format!("Keep it in {} and remove it in the next minor release.", self.new.version)
        } else if self.patch {
            format!("Keep it; make it Deprecated and locked in the minor after {}.", self.new.version)
        } else {
            let value = if last.default { "on" } else { "off" };
            let version = self.new.version;
            format!(
                "Keep it in {version} with the spec `{version} deprecated {value} locked`, and remove it after that."
            )
        };
        let what = format!("left in {}.{} while it was {}", self.new.version, self.new.patch, show(Some(last)));
        found.push(Violation { feature: name.to_owned(), rule: Rule::LeaveLocked, found: what, remedy });
    }

    /// For versions that are out, a newcomer must read like what those releases say of it: not there, so off.
    fn comes(&self, name: &str, is: &Row, found: &mut Vec<Violation>) {
        let released = |spec: &&Spec| spec.version <= self.old.version;
        if let Some(spec) = is.specs.iter().filter(released).find(|spec| spec.default || spec.locked) {
            found.push(Violation {
                feature: name.to_owned(),
                rule: Rule::SaidStaysSaid,
                found: format!(
                    "is new in {}.{}, but says {} at {}, which is already out without it",
                    self.new.version,
                    self.new.patch,
                    show(Some(spec)),
                    spec.version
                ),
                remedy: format!("Make it off and unlocked there, and {}.", self.next_minor_advice()),
            });
            return;
        }
        self.lock_of_newcomer(name, is, found);
    }

    fn lock_of_newcomer(&self, name: &str, is: &Row, found: &mut Vec<Violation>) {
        if let Some(spec) = is.specs.iter().find(|spec| spec.version <= self.new.version && spec.locked) {
            found.push(Violation {
                feature: name.to_owned(),
                rule: Rule::LockAfterMinor,
                found: format!("is new in {} and already {}", self.new.version, show(Some(spec))),
                remedy: "Leave it unlocked for its first minor release.".into(),
            });
        }
    }

    /// Where a change that came too early belongs.
    fn next_minor_advice(&self) -> String {
        let version = self.new.version;
        if self.patch {
            format!("make the change in the minor after {version}")
        } else {
            format!("make the change in a spec for {version}")
        }
    }
}

/// The versions up to `released` at which either row says something new.
fn said_versions(was: &Row, is: &Row, released: Version) -> Vec<Version> {
    let mut versions: Vec<Version> =
        was.specs.iter().chain(&is.specs).map(|spec| spec.version).filter(|version| *version <= released).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

/// Equal in what they say; since when they say it does not matter.
fn same(a: Option<&Spec>, b: Option<&Spec>) -> bool {
    let said = |spec: &Spec| (spec.stage, spec.default, spec.locked);
    a.map(said) == b.map(said)
}

pub(crate) fn show(spec: Option<&Spec>) -> String {
    match spec {
        None => "absent".to_owned(),
        Some(spec) => {
            let lock = if spec.locked { "locked " } else { "" };
            format!("{} and {lock}{}", spec.stage.word(), if spec.default { "on" } else { "off" })
        }
    }
}
