//! What a program says about itself before it starts to follow.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use featureset::{Choice, Registry, RegistryError, Set, config_map::NAMESPACE, resolve};
use kubeapi::Kube;

use crate::{
    cache::Cache,
    follow::{Change, Follower},
    gates::Gates,
    leave::{Decision, Leave, OnChange},
};

/// The version of a development build, which takes the row of the cluster's newest version instead
/// of its own.
pub const DEV_BUILD: &str = "0.0.1-snapshot";

/// Why [`Builder::start`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The version given to [`Gates::builder`] is empty or blank.
    #[error(
        "the version of this program is empty: is OPERATOR_IMAGE_VERSION set? A development build has {DEV_BUILD:?}"
    )]
    NoVersion,
    /// The registry given to [`Builder::defaults`] is invalid, or lacks the profile.
    #[error("the registry with defaults cannot be used")]
    Defaults(#[from] RegistryError),
    /// The registry given to [`Builder::defaults`] lacks this gate, which [`Builder::need`] names.
    #[error("the registry with defaults does not know {0:?}, which this program asks for")]
    UnknownGate(String),
}

#[derive(Debug)]
pub(crate) struct Acknowledge {
    pub component: String,
    pub instance: String,
    pub namespace: String,
    pub duration: Duration,
}

/// The settings of a program that follows its feature gates. [`Gates::builder`] returns one.
pub struct Builder {
    pub(crate) version: String,
    dev_build: String,
    needed: BTreeSet<String>,
    only: Option<BTreeSet<String>>,
    defaults: Option<(Registry, String)>,
    cache: Option<PathBuf>,
    pub(crate) acknowledge: Option<Acknowledge>,
    pub(crate) on_change: OnChange,
    pub(crate) leave: Leave,
}

impl Builder {
    pub(crate) fn new(version: &str) -> Builder {
        Builder {
            version: version.to_owned(),
            dev_build: DEV_BUILD.to_owned(),
            needed: BTreeSet::new(),
            only: None,
            defaults: None,
            cache: None,
            acknowledge: None,
            on_change: OnChange::Leave,
            leave: Leave::default(),
        }
    }

    /// Names gates that the program depends on. If the row of the program's version lacks one of
    /// them, [`Gates::ready`] fails.
    pub fn need<G: AsRef<str>>(mut self, gates: impl IntoIterator<Item = G>) -> Builder {
        self.needed.extend(gates.into_iter().map(|gate| gate.as_ref().to_owned()));
        self
    }

    /// Restricts which changes count to these gates. Without a call, changes of the gates of
    /// [`Builder::need`] count, or of all gates if there are none.
    pub fn only<G: AsRef<str>>(mut self, gates: impl IntoIterator<Item = G>) -> Builder {
        self.only = Some(gates.into_iter().map(|gate| gate.as_ref().to_owned()).collect());
        self
    }

    /// Replaces [`DEV_BUILD`] as the version that marks a development build.
    pub fn dev_build(mut self, version: &str) -> Builder {
        self.dev_build = version.to_owned();
        self
    }

    /// Sets a registry of the program's own, whose set `Default` for `profile` is used until the
    /// cluster has a row. For programs that are upgraded before the controller of the gates.
    pub fn defaults(mut self, registry: Registry, profile: &str) -> Builder {
        self.defaults = Some((registry, profile.to_owned()));
        self
    }

    /// Keeps the last row in this file, for a start while the API does not respond. The cached row
    /// is used, and reported as stale, until the API responds, and only by the version that wrote
    /// it. If the row then differs, that counts as a change.
    pub fn cache(mut self, path: impl AsRef<Path>) -> Builder {
        self.cache = Some(path.as_ref().to_owned());
        self
    }

    /// Reports to the cluster which row this instance of the component runs with, as a Lease that
    /// is renewed as long as the [`Gates`] exist. It is in the namespace [`NAMESPACE`] and expires
    /// 60 seconds after the last renewal.
    pub fn acknowledge(self, component: &str, instance: &str) -> Builder {
        self.acknowledge_in(component, instance, NAMESPACE, Duration::from_secs(60))
    }

    /// Like [`Builder::acknowledge`], with another namespace, and another duration after which the
    /// report of a stopped instance expires. It is renewed three times per duration.
    pub fn acknowledge_in(mut self, component: &str, instance: &str, namespace: &str, duration: Duration) -> Builder {
        let (component, instance, namespace) = (component.to_owned(), instance.to_owned(), namespace.to_owned());
        self.acknowledge = Some(Acknowledge { component, instance, namespace, duration });
        self
    }

    /// Calls `hook` when gates change. It decides whether the program continues or leaves.
    pub fn hook(mut self, hook: impl FnMut(&Change) -> Decision + Send + 'static) -> Builder {
        self.on_change = OnChange::Hook(Box::new(hook));
        self
    }

    /// Lets the program continue when gates change. [`Gates::subscribe`] reports the new state.
    pub fn notify(mut self) -> Builder {
        self.on_change = OnChange::Notify;
        self
    }

    /// Sets how the program leaves when gates change.
    pub fn leave(mut self, leave: Leave) -> Builder {
        self.leave = leave;
        self
    }

    /// Starts to follow the gates in background tasks. Must be called within a tokio runtime.
    pub fn start(self, kube: Kube) -> Result<Gates, BuildError> {
        let follower = self.follower()?;
        Ok(Gates::start(kube, self, follower))
    }

    pub(crate) fn follower(&self) -> Result<Follower, BuildError> {
        if self.version.trim().is_empty() {
            return Err(BuildError::NoVersion);
        }
        let mut follower = Follower::new((self.version != self.dev_build).then(|| self.version.clone()));
        follower.needed = self.needed.clone();
        follower.followed = self.followed();
        if let Some((registry, profile)) = &self.defaults {
            let row = resolve(registry, profile, &Choice::of_set(Set::Default))?.row;
            if let Some(gate) = self.needed.iter().find(|gate| row.get(gate).is_none()) {
                return Err(BuildError::UnknownGate(gate.clone()));
            }
            follower.defaults = Some(row);
        }
        Ok(follower)
    }

    pub(crate) fn open_cache(&self) -> Option<Cache> {
        self.cache.as_deref().map(|path| Cache::new(path, &self.version))
    }

    pub(crate) fn followed(&self) -> Option<BTreeSet<String>> {
        self.only.clone().or_else(|| (!self.needed.is_empty()).then(|| self.needed.clone()))
    }
}
