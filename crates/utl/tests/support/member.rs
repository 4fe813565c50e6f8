//! A running member: Lockgate in this process, or a real etcd as a process.

use std::{fs, future::Future, path::Path, sync::LazyLock};

use client::{Client, ConnectOptions, Get, Put};
use harness::{Place, until, wait_max};
use server::config::{Config, Parsed};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// A member that serves; stopped when dropped.
pub(crate) struct Member {
    running: Option<Running>,
    /// `host:port` for clients.
    address: String,
}

enum Running {
    Lockgate(Box<server::Server>),
    /// The member comes before its place, which holds the ports, so that it is dropped first.
    Etcd(Box<(harness::Member, Place)>),
}

impl Member {
    /// A Lockgate that is alone in its cluster, on ports of its own choice.
    pub(crate) fn lockgate(data: &Path, extra: &[&str]) -> Member {
        let server = block(server::Server::start(config(data, extra))).unwrap_or_else(|error| panic!("{error:?}"));
        let url = &server.config().listen_client_urls[0];
        let address = url.to_string().trim_start_matches("http://").to_owned();
        let member = Member { running: Some(Running::Lockgate(Box::new(server))), address };
        until("the member answers", || block(member.client().get(Get::key("ready?"))).is_ok());
        member
    }

    /// An etcd that is alone in its cluster.
    pub(crate) fn etcd(program: &Path, data: &Path) -> Member {
        let place = Place::at(program, data);
        let member = place.start(&[]);
        Member::of_place(member, place)
    }

    pub(crate) fn of_place(member: harness::Member, place: Place) -> Member {
        let address = member.address().to_owned();
        Member { running: Some(Running::Etcd(Box::new((member, place)))), address }
    }

    fn client(&self) -> Client {
        let options = ConnectOptions::new().request_timeout(wait_max());
        block(Client::connect([&self.address], options)).unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn put(&self, key: &str, value: &str) {
        block(self.client().put(Put::new(key.to_owned(), value.to_owned()))).unwrap();
    }

    /// Writes a history with keys that are changed, deleted and created again, compacted in the middle.
    pub(crate) fn fill(&self) {
        for round in 0..3 {
            for i in 0..40 {
                self.put(&format!("key-{i}"), &format!("{round}-{}", "v".repeat(i * 17 % 300)));
            }
            for i in (round..40).step_by(7) {
                block(self.client().delete(client::Delete::key(format!("key-{i}")))).unwrap();
            }
        }
        block(self.client().compact(60, true)).unwrap();
        self.put("last", "one");
    }

    /// Keys with their values and revisions, and the revision of the store.
    pub(crate) fn contents(&self) -> (Vec<(String, String, i64)>, i64) {
        let all = block(self.client().get(Get::from_key("\0"))).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kvs = all.kvs.iter().map(|kv| (text(&kv.key), text(&kv.value), kv.mod_revision)).collect();
        (kvs, all.header.unwrap().revision)
    }

    pub(crate) fn get_at(&self, revision: i64) -> Result<usize, String> {
        let got = block(self.client().get(Get::from_key("\0").revision(revision)));
        got.map(|got| got.kvs.len()).map_err(|error| error.to_string())
    }

    /// The line that `hashkv` prints: hash, revision of the hash, compacted revision.
    pub(crate) fn hash_kv(&self, revision: i64) -> String {
        let hash = block(self.client().hash_kv(revision)).unwrap();
        format!("{}, {}, {}\n", hash.hash, hash.hash_revision, hash.compact_revision)
    }

    pub(crate) fn snapshot(&self, to: &Path) {
        let (client, mut bytes) = (self.client(), Vec::new());
        block(async {
            let mut snapshot = client.snapshot().await.unwrap();
            while let Some(piece) = snapshot.next().await.unwrap() {
                bytes.extend_from_slice(&piece);
            }
        });
        fs::write(to, bytes).unwrap();
    }

    /// Waits until the storage version is written, which follows the cluster version.
    pub(crate) fn wait_versioned(&self) {
        until("the storage version is written", || !block(self.client().status()).unwrap().storage_version.is_empty());
    }

    pub(crate) fn wait_feature(&self, name: &str) {
        until(&format!("{name} is on"), || {
            let status = block(self.client().feature_gate_status([name])).unwrap();
            status.features.iter().all(|feature| feature.enabled)
        });
    }

    /// Asks the member to stop and waits until it has ended.
    pub(crate) fn stop(mut self) {
        match self.running.take() {
            Some(Running::Lockgate(server)) => block(server.stop()),
            Some(Running::Etcd(etcd)) => {
                let (member, _place) = *etcd;
                member.stop();
            }
            None => {}
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(Running::Lockgate(server)) = self.running.take() {
            block(server.stop());
        }
    }
}

/// The configuration of a Lockgate on ports of its own choice.
///
/// All clusters of one advertise a peer URL that nobody uses, so that they have the same ids.
pub(crate) fn config(data: &Path, extra: &[&str]) -> Config {
    let (data, any) = (data.display().to_string(), "http://127.0.0.1:0");
    let args = [
        ["--name", "m1"],
        ["--data-dir", &data],
        ["--listen-client-urls", any],
        ["--advertise-client-urls", any],
        ["--listen-peer-urls", any],
        ["--initial-advertise-peer-urls", "http://127.0.0.1:2380"],
        ["--initial-cluster", "m1=http://127.0.0.1:2380"],
        ["--log-level", "warn"],
    ];
    let args: Vec<_> = args.concat().into_iter().chain(extra.iter().copied()).map(ToOwned::to_owned).collect();
    let Ok(Parsed::Run(config)) = Config::from_args(&args, &[]) else { panic!("{args:?} cannot be run") };
    *config
}
