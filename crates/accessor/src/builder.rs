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

/// The version of a build that nobody released: it takes the row of the cluster's newest version.
pub const DEV_BUILD: &str = "0.0.1-snapshot";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error(
        "the version of this program is empty: is OPERATOR_IMAGE_VERSION set? A development build has {DEV_BUILD:?}"
    )]
    NoVersion,
    #[error("the registry with defaults cannot be used")]
    Defaults(#[from] RegistryError),
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

    /// Gates that this program asks for. One that its version does not know is an error of [`Gates::ready`].
    pub fn need<G: AsRef<str>>(mut self, gates: impl IntoIterator<Item = G>) -> Builder {
        self.needed.extend(gates.into_iter().map(|gate| gate.as_ref().to_owned()));
        self
    }

    /// Only changes of these gates matter; of those that are needed unless said otherwise, and of all if none is needed.
    pub fn only<G: AsRef<str>>(mut self, gates: impl IntoIterator<Item = G>) -> Builder {
        self.only = Some(gates.into_iter().map(|gate| gate.as_ref().to_owned()).collect());
        self
    }

    /// Another text for the version of a development build.
    pub fn dev_build(mut self, version: &str) -> Builder {
        self.dev_build = version.to_owned();
        self
    }

    /// For a program that is upgraded before the controller: until there is a row, what its own registry has as Default.
    pub fn defaults(mut self, registry: Registry, profile: &str) -> Builder {
        self.defaults = Some((registry, profile.to_owned()));
        self
    }

    /// For starts while the API is away: the last row is kept in this file, and holds, marked stale, until the API answers.
    /// It is used for the same version only. A change that was missed meanwhile is a change when the API is back.
    pub fn cache(mut self, path: impl AsRef<Path>) -> Builder {
        self.cache = Some(path.as_ref().to_owned());
        self
    }

    /// Tells the cluster who runs with which row, for as long as this runs.
    pub fn acknowledge(self, component: &str, instance: &str) -> Builder {
        self.acknowledge_in(component, instance, NAMESPACE, Duration::from_secs(60))
    }

    pub fn acknowledge_in(mut self, component: &str, instance: &str, namespace: &str, duration: Duration) -> Builder {
        let (component, instance, namespace) = (component.to_owned(), instance.to_owned(), namespace.to_owned());
        self.acknowledge = Some(Acknowledge { component, instance, namespace, duration });
        self
    }

    /// Asks before leaving.
    pub fn hook(mut self, hook: impl FnMut(&Change) -> Decision + Send + 'static) -> Builder {
        self.on_change = OnChange::Hook(Box::new(hook));
        self
    }

    /// Never leaves; [`Gates::subscribe`] tells.
    pub fn notify(mut self) -> Builder {
        self.on_change = OnChange::Notify;
        self
    }

    /// How to leave.
    pub fn leave(mut self, leave: Leave) -> Builder {
        self.leave = leave;
        self
    }

    /// Starts to follow, in the background of the runtime.
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
