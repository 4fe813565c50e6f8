//! Users, roles and tokens, shared by apply, which alone changes them, and by those who judge calls before they are proposed
//! or answered.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use auth::{Change, Store, token::SimpleTokens};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use proto::etcdserverpb::RequestHeader;

/// As of the last entry that was applied.
pub struct Users {
    store: RwLock<Store>,
    /// `None` where tokens prove themselves, and no member has to keep them.
    tokens: Option<Mutex<SimpleTokens>>,
    /// Both follow the store; calls ask for them without its lock.
    enabled: AtomicBool,
    revision: AtomicU64,
}

impl Users {
    pub(crate) fn new(store: Store, tokens: Option<SimpleTokens>) -> Users {
        let (enabled, revision) = (AtomicBool::new(store.enabled()), AtomicU64::new(store.revision()));
        Users { store: RwLock::new(store), tokens: tokens.map(Mutex::new), enabled, revision }
    }

    /// Whether requests need a user.
    #[inline]
    pub fn enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Counts changes of users and roles.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read()
    }

    /// Whose simple token it is.
    pub(crate) fn user_of(&self, now: Duration, token: &str) -> Option<String> {
        self.tokens.as_ref()?.lock().user_of(now, token)
    }

    /// Gives out a simple token, if that is the kind which is in use.
    pub(crate) fn assign(&self, now: Duration, user: &str, word: &str, index: u64) -> Option<String> {
        Some(self.tokens.as_ref()?.lock().assign(now, user, word, index))
    }

    pub(crate) fn take(&self, change: Change) {
        let mut store = self.store.write();
        store.take(change);
        self.follow(&store);
    }

    /// The state of another file, which has taken the place of this member's. Tokens stay: their users are asked for again.
    pub(crate) fn replace(&self, loaded: Store) {
        let mut store = self.store.write();
        *store = loaded;
        self.follow(&store);
        if !store.enabled() {
            self.forget_all();
        }
    }

    pub(crate) fn forget_user(&self, user: &str) {
        if let Some(tokens) = &self.tokens {
            tokens.lock().forget_user(user);
        }
    }

    pub(crate) fn forget_all(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.lock().clear();
        }
    }

    /// For what a member proposes of itself, and what users would need a right for.
    pub(crate) fn as_root(&self) -> Option<RequestHeader> {
        let (username, auth_revision) = (auth::ROOT_USER.to_owned(), self.revision());
        self.enabled().then(|| RequestHeader { username, auth_revision, ..Default::default() })
    }

    fn follow(&self, store: &Store) {
        self.revision.store(store.revision(), Ordering::Release);
        self.enabled.store(store.enabled(), Ordering::Release);
    }
}
