//! From a registry and settings to values: which settings are refused, which are only remarked on, and what results.

use std::fmt;

use crate::{ALL_ALPHA, ALL_BETA, Feature, Gate, Gates, Level, ParseError, Registry, Settings, Spec, Stage, Version};

/// The values of a level's features, and remarks for the operator on the settings that led to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The resolved values.
    pub gates: Gates,
    /// Remarks to log, sorted by feature name. This crate logs nothing itself.
    pub notices: Vec<Notice>,
}

/// Why a setting is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The flag's text is not a list of `NAME=BOOL`.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The registry has no feature of this name, at either level.
    #[error("unrecognized feature gate: {name}")]
    Unknown {
        /// The name in the settings.
        name: String,
        /// All names that the flag accepts, including [`ALL_ALPHA`] and [`ALL_BETA`]; see
        /// [`SetError::hint`].
        known: Vec<&'static str>,
    },
    /// The feature belongs to the other level, so another flag sets it.
    #[error(
        "cannot set feature gate {name} with {}, it is a {actual}-level feature: use {}", given.flag(), actual.flag()
    )]
    WrongLevel {
        /// Name of the feature.
        name: &'static str,
        /// The level of the flag that was used.
        given: Level,
        /// The level of the feature, whose flag would be right.
        actual: Level,
    },
    /// The feature is locked and the setting differs from its default.
    #[error("cannot set feature gate {name} to {value}, feature is locked to {default}")]
    Locked {
        /// Name of the feature.
        name: &'static str,
        /// The rejected value.
        value: bool,
        /// The value that the feature is locked to.
        default: bool,
    },
    /// The feature does not exist yet at the version for which the settings are checked.
    #[error("cannot set feature gate {name} to {value}, feature is PreAlpha at emulated version {version}")]
    PreAlpha {
        /// Name of the feature.
        name: &'static str,
        /// The rejected value.
        value: bool,
        /// The first version that has the feature.
        since: Option<Version>,
        /// The version for which the settings are checked: the emulated one, or the binary's in
        /// [`Registry::check_start`].
        version: Version,
    },
}

/// All rejected settings, sorted by name. Never empty; a single error prints without brackets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SetErrors(pub Vec<SetError>);

/// A remark on a setting that is valid but that the operator should know about. It prints as a log
/// message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The feature is GA, so there is no need to set it. The setting becomes an error when the gate
    /// is removed.
    Ga {
        /// Name of the feature.
        name: &'static str,
        /// The value in the settings.
        value: bool,
    },
    /// The feature is deprecated. The setting becomes an error when the gate is removed.
    Deprecated {
        /// Name of the feature.
        name: &'static str,
        /// The value in the settings.
        value: bool,
    },
    /// The feature is locked at a cluster version that was reached after the settings were checked.
    /// The setting has no effect.
    Locked {
        /// Name of the feature.
        name: &'static str,
        /// The value in the settings.
        value: bool,
        /// The value that the feature is locked to.
        default: bool,
        /// The cluster version at which the feature is locked.
        version: Version,
    },
    /// The cluster version is older than the feature. The setting takes effect when the cluster
    /// reaches `since`.
    NotYet {
        /// Name of the feature.
        name: &'static str,
        /// The value in the settings.
        value: bool,
        /// The first version that has the feature.
        since: Version,
        /// The cluster version, or the binary's where that is older.
        version: Version,
    },
    /// The name is not that of a cluster-level feature. Only [`Registry::proposal`] reports this;
    /// elsewhere it is a [`SetError`].
    Ignored {
        /// The name in the settings.
        name: String,
    },
}

impl Registry {
    /// Parses the text of a flag and resolves it, for the usual case of one flag at the binary's
    /// own version.
    pub fn parse(&self, level: Level, version: Version, flag: &str) -> Result<Resolved, SetErrors> {
        let settings = flag.parse().map_err(|error| SetErrors(vec![SetError::Parse(error)]))?;
        self.resolve(level, version, &settings)
    }

    /// Returns the values of a level's features at `version` by Kubernetes' rules: the setting by
    /// name, else `AllAlpha` or `AllBeta`, else the default. Unknown names, names of the other
    /// level and settings against a lock are errors.
    pub fn resolve(&self, level: Level, version: Version, settings: &Settings) -> Result<Resolved, SetErrors> {
        let notices = self.judge(level, settings, |feature, value| match feature.spec_at(version) {
            None => Err(SetError::PreAlpha { name: feature.name, value, since: feature.since(), version }),
            Some(spec) => judge_spec(feature.name, spec, value),
        })?;
        Ok(Resolved { gates: self.gates_at(level, version, settings), notices })
    }

    /// Checks a member's cluster-level settings when it starts. A name must exist at the binary's
    /// version. Locks count as of the cluster version on disk, or of the binary's version if there
    /// is none yet. A feature of a version that the cluster has not reached is accepted, so that
    /// operators can set flags before an upgrade completes.
    pub fn check_start(
        &self,
        settings: &Settings,
        binary: Version,
        cluster: Option<Version>,
    ) -> Result<Vec<Notice>, SetErrors> {
        let version = cluster.unwrap_or(binary).min(binary);
        self.judge(Level::Cluster, settings, |feature, value| {
            let name = feature.name;
            match (feature.spec_at(version), feature.since()) {
                (Some(spec), _) => judge_spec(name, spec, value),
                (None, Some(since)) if since <= binary => Ok(Some(Notice::NotYet { name, value, since, version })),
                (None, since) => Err(SetError::PreAlpha { name, value, since, version: binary }),
            }
        })
    }

    /// Returns the values that a running member proposes at a cluster version: its settings where
    /// they are valid, else the defaults. Never fails, because the version may have risen after the
    /// settings were checked; the notices list the settings without effect.
    pub fn proposal(&self, version: Version, settings: &Settings) -> Resolved {
        let level = Level::Cluster;
        let gates = self.gates_at(level, version, settings);
        let real = settings.iter().filter(|(name, _)| !is_pseudo(name));
        let notice = |(name, value): (&str, bool)| {
            let feature = match self.get(name).filter(|feature| feature.level == level) {
                Some(feature) => feature,
                None => return Some(Notice::Ignored { name: name.to_owned() }),
            };
            let name = feature.name;
            match (feature.spec_at(version), feature.since()) {
                (Some(spec), _) if spec.locked && spec.default != value => {
                    Some(Notice::Locked { name, value, default: spec.default, version })
                }
                (Some(spec), _) => stage_notice(name, spec, value),
                (None, Some(since)) => Some(Notice::NotYet { name, value, since, version }),
                (None, None) => None,
            }
        };
        Resolved { gates, notices: real.filter_map(notice).collect() }
    }

    /// The values a cluster has decided on: `decided` is asked for each feature that is not locked to its default.
    pub fn decided(&self, version: Version, decided: impl Fn(&str) -> bool) -> Gates {
        self.collect(Level::Cluster, version, |feature, _| decided(feature.name))
    }

    fn judge(
        &self,
        level: Level,
        settings: &Settings,
        judge_feature: impl Fn(&Feature, bool) -> Result<Option<Notice>, SetError>,
    ) -> Result<Vec<Notice>, SetErrors> {
        let (mut notices, mut errors) = (Vec::new(), Vec::new());
        for (name, value) in settings.iter().filter(|(name, _)| !is_pseudo(name)) {
            let judged = match self.get(name) {
                None => Err(self.unknown(level, name)),
                Some(feature) if feature.level != level => {
                    Err(SetError::WrongLevel { name: feature.name, given: level, actual: feature.level })
                }
                Some(feature) => judge_feature(feature, value),
            };
            match judged {
                Ok(notice) => notices.extend(notice),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(notices) } else { Err(SetErrors(errors)) }
    }

    fn unknown(&self, level: Level, name: &str) -> SetError {
        let known = [ALL_ALPHA, ALL_BETA].into_iter().chain(self.level(level).map(|feature| feature.name)).collect();
        SetError::Unknown { name: name.to_owned(), known }
    }

    fn gates_at(&self, level: Level, version: Version, settings: &Settings) -> Gates {
        let all_alpha = settings.get(ALL_ALPHA);
        let all_beta = settings.get(ALL_BETA);
        let value = |feature: &Feature, spec: &Spec| {
            let of_stage = match spec.stage {
                Stage::Alpha => all_alpha,
                Stage::Beta => all_beta,
                Stage::Ga | Stage::Deprecated => None,
            };
            settings.get(feature.name).or(of_stage).unwrap_or(spec.default)
        };
        let gates = self.collect(level, version, value);
        Gates { all_alpha: all_alpha.unwrap_or(false), all_beta: all_beta.unwrap_or(false), ..gates }
    }

    /// The one place that applies locks: `value` is asked only where it may decide.
    fn collect(&self, level: Level, version: Version, value: impl Fn(&Feature, &Spec) -> bool) -> Gates {
        let gate = |feature: &Feature| {
            let spec = *feature.spec_at(version)?;
            let enabled = if spec.locked { spec.default } else { value(feature, &spec) };
            Some(Gate { name: feature.name, spec, enabled })
        };
        let gates = self.level(level).filter_map(gate).collect();
        Gates { level, version, gates, all_alpha: false, all_beta: false }
    }
}

fn is_pseudo(name: &str) -> bool {
    name == ALL_ALPHA || name == ALL_BETA
}

fn judge_spec(name: &'static str, spec: &Spec, value: bool) -> Result<Option<Notice>, SetError> {
    if spec.locked && spec.default != value {
        return Err(SetError::Locked { name, value, default: spec.default });
    }
    Ok(stage_notice(name, spec, value))
}

fn stage_notice(name: &'static str, spec: &Spec, value: bool) -> Option<Notice> {
    match spec.stage {
        Stage::Ga => Some(Notice::Ga { name, value }),
        Stage::Deprecated => Some(Notice::Deprecated { name, value }),
        Stage::Alpha | Stage::Beta => None,
    }
}

impl SetError {
    /// A sentence that helps to mend it, to print below the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            SetError::Unknown { name, known } => {
                let near = known.iter().find(|known| known.eq_ignore_ascii_case(name));
                let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
                Some(format!("{near}known feature gates: {}", known.join(", ")))
            }
            SetError::PreAlpha { since: Some(since), .. } => Some(format!("the feature comes with version {since}")),
            SetError::Locked { default, .. } => Some(format!("leave it out, or set it to {default}")),
            SetError::Parse(_) => Some("write NAME=true or NAME=false, separated by commas".to_owned()),
            SetError::WrongLevel { .. } | SetError::PreAlpha { .. } => None,
        }
    }
}

/// Several print as Kubernetes' aggregate does: `[first, second]`.
impl fmt::Display for SetErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [single] = self.0.as_slice() {
            return single.fmt(f);
        }
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", texts.join(", "))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Ga { name, value } => {
                write!(f, "Setting GA feature gate {name}={value}. It will be removed in a future release.")
            }
            Notice::Deprecated { name, value } => {
                write!(f, "Setting deprecated feature gate {name}={value}. It will be removed in a future release.")
            }
            Notice::Locked { name, value, default, version } => write!(
                f,
                "Feature gate {name}={value} has no effect: the feature is locked to {default} at cluster version \
                 {version}. Remove it from {}.",
                Level::Cluster.flag()
            ),
            Notice::NotYet { name, value, since, version } => write!(
                f,
                "Feature gate {name}={value} has no effect yet: the feature comes with cluster version {since}, the \
                 cluster is at {version}."
            ),
            Notice::Ignored { name } => write!(f, "Feature gate {name} is not a cluster-level feature; it is ignored."),
        }
    }
}
