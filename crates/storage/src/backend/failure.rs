//! Why the backend writes no more, told once to everyone.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;

/// The state after which nothing is written any more.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error("failed to commit to {}; free the disk or repair it, then start again", path.display())]
    Commit { path: PathBuf, source: Arc<bolt::Error> },
    #[error("failed to read from {}; restore the file from a snapshot or another member", path.display())]
    Read { path: PathBuf, source: Arc<bolt::Error> },
    #[error("another file was put in place of {}, which could not be made durable", path.display())]
    Replace { path: PathBuf, source: Arc<std::io::Error> },
    #[error("failed to keep keys in a scratch file beside {}; free the disk or repair it, then start again", path.display())]
    Scratch { path: PathBuf, source: Arc<std::io::Error> },
    #[error("the commit thread panicked")]
    Panicked,
    #[error("the backend was closed")]
    Closed,
}

impl Failure {
    pub(super) fn commit(path: &Path, source: bolt::Error) -> Self {
        Failure::Commit { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(super) fn read(path: &Path, source: bolt::Error) -> Self {
        Failure::Read { path: path.to_owned(), source: Arc::new(source) }
    }
}

/// Holds the first failure. Everyone who may meet one has it in hand.
#[derive(Default)]
pub(crate) struct Fuse {
    failure: OnceLock<Failure>,
    hook: Mutex<Option<Hook>>,
}

pub(crate) type Hook = Box<dyn FnOnce(&Failure) + Send>;

impl Fuse {
    pub(crate) fn blown(&self) -> Option<&Failure> {
        self.failure.get()
    }

    pub(crate) fn blow(&self, failure: Failure) {
        // Under the lock, so that a hook set meanwhile sees the failure or is seen here.
        let hook = {
            let mut hook = self.hook.lock();
            if self.failure.set(failure).is_ok() { hook.take() } else { None }
        };
        if let (Some(hook), Some(failure)) = (hook, self.blown()) {
            hook(failure);
        }
    }

    pub(crate) fn on_blow(&self, hook: Hook) {
        let mut slot = self.hook.lock();
        match self.blown() {
            Some(failure) => {
                drop(slot);
                hook(failure);
            }
            None => *slot = Some(hook),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_first_failure_once() {
        let fuse = Fuse::default();
        let told = Arc::new(Mutex::new(Vec::new()));
        let hook = |told: &Arc<Mutex<Vec<String>>>| -> Hook {
            let told = told.clone();
            Box::new(move |f| told.lock().push(f.to_string()))
        };
        fuse.on_blow(hook(&told));
        fuse.blow(Failure::Panicked);
        fuse.blow(Failure::Closed);
        assert_eq!(*told.lock(), ["the commit thread panicked"]);
        fuse.on_blow(hook(&told));
        assert_eq!(told.lock().len(), 2);
    }
}
