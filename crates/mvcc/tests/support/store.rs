//! A store as the server uses it: requests are checked, then run, and errors have etcd's texts.

use std::collections::BTreeSet;

use bytes::Bytes;
use mvcc::{Error, Leases, Options, Store, check, check::RequestError};
use prost::Message;
use proto::etcdserverpb::{CompactionResponse, HashKvResponse, ResponseHeader};
use storage::Backend;

use super::random::{LEASES, Op};

pub(crate) struct TestStore {
    pub backend: Backend,
    pub store: Store,
    pub leases: TestLeases,
}

#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct TestLeases {
    pub attached: BTreeSet<(i64, Bytes)>,
}

impl Leases for TestLeases {
    fn exists(&self, id: i64) -> bool {
        LEASES.contains(&id)
    }

    fn attach(&mut self, id: i64, key: &Bytes) {
        assert!(self.attached.insert((id, key.clone())), "lease {id} has {key:?} already");
    }

    fn detach(&mut self, id: i64, key: &[u8]) {
        assert!(self.attached.remove(&(id, Bytes::copy_from_slice(key))), "lease {id} has no {key:?}");
    }
}

pub(crate) fn backend() -> Backend {
    let dir = harness::tempdir();
    Backend::open(&dir.path().join("db"), storage::Options::default()).expect("a backend")
}

impl TestStore {
    pub(crate) fn new() -> Self {
        Self::with_options(Options::default())
    }

    pub(crate) fn with_options(options: Options) -> Self {
        Self::open(backend(), options)
    }

    pub(crate) fn open(backend: Backend, options: Options) -> Self {
        let mut leases = TestLeases::default();
        let store = Store::open(backend.clone(), options, |id, key| leases.attach(id, key)).expect("opens");
        TestStore { backend, store, leases }
    }

    /// Another store on the same file, as after a restart.
    pub(crate) fn reopened(&self) -> Self {
        Self::open(self.backend.clone(), Options::default())
    }

    /// Runs a request to its end and gives the encoded response, or etcd's error text.
    pub(crate) fn run(&mut self, op: &Op) -> Result<Vec<u8>, String> {
        let mut batch = self.backend.write();
        match op {
            Op::Range(req) => {
                drop(batch);
                check::range(req).map_err(request_error)?;
                let result = self.store.range(req).map_err(error)?;
                let mut out = Vec::new();
                result.encode(Some(&result.header()), &mut out);
                assert_eq!(out.len(), result.encoded_len(Some(&result.header())));
                assert_eq!(out, result.into_response().encode_to_vec());
                Ok(out)
            }
            Op::Put(req) => {
                check::put(req).map_err(request_error)?;
                let mut txn = self.store.begin(&mut batch, &mut self.leases);
                Ok(txn.put(req).map_err(error)?.encode_to_vec())
            }
            Op::Delete(req) => {
                check::delete_range(req).map_err(request_error)?;
                let mut txn = self.store.begin(&mut batch, &mut self.leases);
                Ok(txn.delete_range(req).map_err(error)?.encode_to_vec())
            }
            Op::Txn(req) => {
                check::txn(req, 128).map_err(request_error)?;
                if mvcc::is_read_only(req) {
                    drop(batch);
                    return Ok(self.store.read_txn(req).map_err(error)?.encode_to_vec());
                }
                let mut txn = self.store.begin(&mut batch, &mut self.leases);
                Ok(txn.txn(req).map_err(error)?.encode_to_vec())
            }
            Op::Compact(req) => {
                let mut job = self.store.compact(&mut batch, req.revision).map_err(error)?;
                drop(batch);
                while !job.step(&self.store, 7).done {}
                let header = Some(ResponseHeader { revision: self.store.revision(), ..Default::default() });
                Ok(CompactionResponse { header }.encode_to_vec())
            }
            Op::Hash(req) => {
                drop(batch);
                let hash = self.store.hash_kv(req.revision).map_err(error)?;
                let response = HashKvResponse {
                    header: Some(ResponseHeader { revision: hash.revision, ..Default::default() }),
                    hash: hash.hash,
                    compact_revision: hash.compact_revision,
                    hash_revision: hash.hash_revision,
                };
                Ok(response.encode_to_vec())
            }
        }
    }
}

pub(crate) fn error(e: Error) -> String {
    match e {
        Error::Compacted { .. } => "etcdserver: mvcc: required revision has been compacted".into(),
        Error::FutureRevision { .. } => "etcdserver: mvcc: required revision is a future revision".into(),
        Error::KeyNotFound => "etcdserver: key not found".into(),
        Error::LeaseNotFound { .. } => "etcdserver: requested lease not found".into(),
        Error::NotReadOnly | Error::Missing { .. } => panic!("{e}"),
    }
}

pub(crate) fn request_error(e: RequestError) -> String {
    match e {
        RequestError::EmptyKey => "etcdserver: key is not provided".into(),
        RequestError::EmptyOperation => "etcdserver: key not found".into(),
        RequestError::ValueProvided => "etcdserver: value is provided".into(),
        RequestError::LeaseProvided => "etcdserver: lease is provided".into(),
        RequestError::TooManyOperations => "etcdserver: too many operations in txn request".into(),
        RequestError::DuplicateKey => "etcdserver: duplicate key given in txn request".into(),
        RequestError::InvalidSortOption => "etcdserver: invalid sort option".into(),
        RequestError::StreamOrder | RequestError::StreamFilter => e.to_string(),
    }
}
