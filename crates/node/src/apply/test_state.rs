//! The state of a cluster with one member, for tests of apply.

use std::{collections::BTreeMap, path::Path};

use membership::{ClusterId, Member, MemberId};
use proto::Version;

use super::*;
use crate::world::{NoObserver, SystemClock};

pub(crate) fn state(dir: &Path) -> State {
    let backend = Backend::open(&dir.join("db"), storage::Options::default()).expect("backend");
    let member =
        Member { id: MemberId(1), peer_urls: vec!["http://a:1".into()], name: "a".into(), ..Default::default() };
    let members = BTreeMap::from([(member.id, member)]);
    let cluster = Cluster::new(ClusterId(7), MemberId(1), members, Default::default(), None);
    let lessor = ::lease::Lessor::load(&backend.view(), Default::default()).expect("lessor");
    let store = mvcc::Store::open(backend.clone(), Default::default(), |_, _| {}).expect("store");
    State {
        gates: Arc::new(Gates::new(&cluster)),
        cluster: Arc::new(RwLock::new(cluster)),
        store: Arc::new(store),
        lessor: Arc::new(Mutex::new(lessor)),
        alarms: Arc::new(Alarms::new([])),
        auth: no_users(&backend),
        quota: Quota::new(None),
        binary_version: Version::new(3, 8),
        begins_anew: None,
        time: Time::begin(Arc::new(SystemClock)),
        observer: Arc::new(NoObserver),
        backend,
    }
}

fn no_users(backend: &Backend) -> Auth {
    let store = ::auth::Store::load(&backend.view(), ::auth::Order::BeginAndEnd).expect("users");
    Auth { users: Arc::new(crate::users::Users::new(store, None)), salt: || Err("no salt".into()) }
}
