//! A running member of a cluster.

use std::{
    fs::{self, File},
    future::Future,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use client::{Client, ConnectOptions, Get, Put};
use server::config::{Config, Parsed};
use tokio::runtime::Runtime;

use super::free_port;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

pub fn block<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// Peer addresses of a cluster: what its members listen on and are known by.
pub struct Peers {
    pub name: String,
    pub listen: String,
    pub advertise: String,
    pub cluster: String,
}

impl Peers {
    /// One member, known by an address that nobody uses, so that all such clusters have the same ids.
    pub fn alone() -> Peers {
        let advertise = "http://127.0.0.1:2380".to_owned();
        let listen = format!("http://127.0.0.1:{}", free_port());
        Peers { name: "m1".into(), listen, cluster: format!("m1={advertise}"), advertise }
    }
}

/// Somebody else may take a port between the look for a free one and the start.
const PORT_TRIES: usize = 5;

/// A member that serves; stopped when dropped.
pub struct Member {
    running: Option<Running>,
    endpoint: String,
    log: PathBuf,
}

enum Running {
    Lockgate(server::Server),
    Etcd(Child),
}

impl Member {
    pub fn lockgate(data: &Path, extra: &[&str]) -> Member {
        for _ in 0..PORT_TRIES {
            let (endpoint, args) = arguments(data, &Peers::alone(), extra);
            let Ok(Parsed::Run(config)) = Config::from_args(&args, &[]) else { panic!("{args:?} cannot be run") };
            match block(server::Server::start(*config)) {
                Ok(server) => {
                    let running = Some(Running::Lockgate(server));
                    return Member { running, endpoint, log: PathBuf::new() }.ready();
                }
                Err(server::RunError::Listen(error)) => eprintln!("taken meanwhile: {error}"),
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("found no free port in {PORT_TRIES} tries")
    }

    pub fn etcd(program: &Path, data: &Path, extra: &[&str]) -> Member {
        Member::etcd_begin(program, data, &Peers::alone(), extra).ready()
    }

    /// Without waiting until it serves, which the first of several members cannot do alone.
    pub fn etcd_begin(program: &Path, data: &Path, peers: &Peers, extra: &[&str]) -> Member {
        let (endpoint, args) = arguments(data, peers, extra);
        let log = data.with_extension("log");
        let file = File::create(&log).unwrap();
        let child = Command::new(program)
            .args(args)
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Member { running: Some(Running::Etcd(child)), endpoint, log }
    }

    pub fn ready(mut self) -> Member {
        let deadline = Instant::now() + Duration::from_secs(40);
        while block(async { self.connect().await?.get(Get::key("ready?")).await }).is_err() {
            let ended = match &mut self.running {
                Some(Running::Etcd(child)) => child.try_wait().unwrap(),
                _ => None,
            };
            if ended.is_some() || Instant::now() > deadline {
                panic!("did not get ready ({ended:?}):\n{}", fs::read_to_string(&self.log).unwrap_or_default());
            }
            thread::sleep(Duration::from_millis(100));
        }
        self
    }

    async fn connect(&self) -> client::Result<Client> {
        Client::connect([&self.endpoint], ConnectOptions::new().request_timeout(Duration::from_secs(5))).await
    }

    fn client(&self) -> Client {
        block(self.connect()).unwrap()
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn put(&self, key: &str, value: &str) {
        block(self.client().put(Put::new(key.to_owned(), value.to_owned()))).unwrap();
    }

    /// A history with keys that are changed, deleted and made again, compacted in the middle.
    pub fn fill(&self) {
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

    /// Keys and values, and the revision they are as of.
    pub fn contents(&self) -> (Vec<(String, String, i64)>, i64) {
        let all = block(self.client().get(Get::from_key("\0"))).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kvs = all.kvs.iter().map(|kv| (text(&kv.key), text(&kv.value), kv.mod_revision)).collect();
        (kvs, all.header.unwrap().revision)
    }

    pub fn get_at(&self, revision: i64) -> Result<usize, String> {
        let got = block(self.client().get(Get::from_key("\0").revision(revision)));
        got.map(|got| got.kvs.len()).map_err(|error| error.to_string())
    }

    /// Hash, its revision, and what is compacted, in the order of `hashkv`.
    pub fn hash_kv(&self, revision: i64) -> String {
        let hash = block(self.client().hash_kv(revision)).unwrap();
        format!("{}, {}, {}\n", hash.hash, hash.hash_revision, hash.compact_revision)
    }

    pub fn snapshot(&self, to: &Path) {
        let mut bytes = Vec::new();
        block(async {
            let mut snapshot = self.client_async().await.snapshot().await.unwrap();
            while let Some(piece) = snapshot.next().await.unwrap() {
                bytes.extend_from_slice(&piece);
            }
        });
        fs::write(to, bytes).unwrap();
    }

    async fn client_async(&self) -> Client {
        self.connect().await.unwrap()
    }

    /// Waits until the storage version is written, which follows the cluster version.
    pub fn wait_versioned(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while block(self.client().status()).unwrap().storage_version.is_empty() {
            assert!(Instant::now() < deadline, "no storage version yet");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// An orderly end.
    pub fn stop(mut self) {
        match self.running.take() {
            Some(Running::Lockgate(server)) => block(server.stop()),
            Some(Running::Etcd(mut child)) => {
                let id = child.id().to_string();
                Command::new("kill").args(["-TERM", &id]).status().unwrap();
                child.wait().unwrap();
            }
            None => {}
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        match self.running.take() {
            Some(Running::Lockgate(server)) => block(server.stop()),
            Some(Running::Etcd(mut child)) => {
                // It may have ended by itself already.
                let _ = child.kill();
                let _ = child.wait();
            }
            None => {}
        }
    }
}

fn arguments(data: &Path, peers: &Peers, extra: &[&str]) -> (String, Vec<String>) {
    let endpoint = format!("http://127.0.0.1:{}", free_port());
    let data = data.display().to_string();
    let args = [
        ["--name", &peers.name],
        ["--data-dir", &data],
        ["--listen-client-urls", &endpoint],
        ["--advertise-client-urls", &endpoint],
        ["--listen-peer-urls", &peers.listen],
        ["--initial-advertise-peer-urls", &peers.advertise],
        ["--initial-cluster", &peers.cluster],
        ["--log-level", "warn"],
    ];
    let args = args.concat().into_iter().chain(extra.iter().copied()).map(ToOwned::to_owned).collect();
    (endpoint, args)
}
