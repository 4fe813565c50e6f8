//! Data files of real etcd releases: read by this engine, written on, and served by etcd again.

use crate::common;

use std::{
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use common::{assert_sound, contents, go_check, open, peer};

struct Etcd {
    process: Child,
    etcdctl: PathBuf,
    endpoint: String,
}

impl Etcd {
    fn start(release: &str, dir: &Path) -> Option<Etcd> {
        let (etcd, etcdctl) = (peer(release, "etcd")?, peer(release, "etcdctl")?);
        let url = || {
            let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
            format!("http://{}", socket.local_addr().expect("its address"))
        };
        let (client, peer) = (url(), url());
        let mut command = Command::new(etcd);
        command.args(["--name", "m", "--log-level", "error", "--data-dir"]).arg(dir);
        for (flag, url) in [
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
        ] {
            command.args([flag, url]);
        }
        command.args(["--initial-cluster", &format!("m={peer}")]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start etcd");
        let etcd = Etcd { process, etcdctl, endpoint: client };
        let start = Instant::now();
        while etcd.try_ctl(&["endpoint", "health"], "").is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "etcd did not get ready");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(etcd)
    }

    fn ctl(&self, args: &[&str], input: &str) -> String {
        self.try_ctl(args, input).unwrap_or_else(|| panic!("etcdctl {args:?} failed"))
    }

    fn try_ctl(&self, args: &[&str], input: &str) -> Option<String> {
        let mut command = Command::new(&self.etcdctl);
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoint]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("start etcdctl");
        process.stdin.take().expect("piped").write_all(input.as_bytes()).expect("write to etcdctl");
        let out = process.wait_with_output().expect("etcdctl");
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    /// Hash of all keys and revisions, as etcd itself computes it.
    fn hash(&self) -> String {
        let json = self.ctl(&["endpoint", "hashkv", "-w", "json"], "");
        let hash = json.split("\"hash\":").nth(1).expect("a hash");
        hash.split([',', '}']).next().expect("a number").to_string()
    }

    fn load(&self) {
        for part in 0..12 {
            let puts: String =
                (0..120).map(|i| format!("put /load/{part:02}/{i:03} {}\n", "v".repeat(1 + i * 9))).collect();
            self.ctl(&["txn"], &format!("\n{puts}\n\n"));
        }
        self.ctl(&["del", "--prefix", "/load/03"], "");
        self.ctl(&["lease", "grant", "3000"], "");
        self.ctl(&["compaction", "6"], "");
        self.ctl(&["put", "/load/last", "one"], "");
    }

    fn stop(mut self) {
        Command::new("kill").arg(self.process.id().to_string()).status().expect("kill");
        self.process.wait().expect("etcd ends");
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // Only what `stop` did not end, after a failed assertion.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn back_and_forth(release: &str) {
    let dir = tempfile::tempdir().expect("dir");
    let data = dir.path().join("data");
    let Some(etcd) = Etcd::start(release, &data) else { return };
    etcd.load();
    let hash = etcd.hash();
    etcd.stop();

    let path = data.join("member/snap/db");
    let db = open(&path);
    assert_sound(&db.begin_read());
    let before = contents(&db.begin_read());
    assert!(before[&b"key"[..]].len() > 1200, "{} revisions", before[&b"key"[..]].len());
    assert_eq!(before[&b"lease"[..]].len(), 1);
    // Rewrite every value, and leave traces in a bucket of our own that is dropped again.
    for (name, pairs) in &before {
        let mut tx = db.begin_write().expect("begin");
        pairs.iter().for_each(|(key, value)| tx.put(name, key, value).expect("put"));
        let mut scratch = tx.create_bucket_if_missing(b"scratch").expect("create");
        (0..2000u64).for_each(|i| scratch.put(&i.to_be_bytes(), &[1; 60]).expect("put"));
        tx.commit().expect("commit");
        let mut tx = db.begin_write().expect("begin");
        assert!(tx.delete_bucket(b"scratch").expect("delete"));
        tx.commit().expect("commit");
    }
    assert!(contents(&db.begin_read()) == before);
    drop(db);
    go_check(&path);

    let etcd = Etcd::start(release, &data).expect("it was there before");
    assert_eq!(etcd.hash(), hash, "etcd sees the same keys and revisions");
    etcd.ctl(&["put", "after", "bolt"], "");
    etcd.ctl(&["defrag"], "");
    assert_eq!(etcd.ctl(&["get", "--print-value-only", "after"], ""), "bolt\n");
    etcd.stop();

    let db = open(&path);
    assert_sound(&db.begin_read());
    assert!(contents(&db.begin_read())[&b"key"[..]].values().any(|kv| kv.ends_with(b"bolt")));
    // A compacted copy of ours is as good to etcd as its own file.
    let compact = dir.path().join("compact");
    bolt::compact(&db.begin_read(), &compact, bolt::Options::default(), 10 << 20, &mut |_| {}).expect("compact");
    drop(db);
    std::fs::rename(&compact, &path).expect("rename");
    let etcd = Etcd::start(release, &data).expect("it was there before");
    assert_eq!(etcd.ctl(&["get", "--print-value-only", "after"], ""), "bolt\n");
    etcd.stop();
}

#[test]
fn etcd_3_7() {
    back_and_forth("etcd-3.7.3");
}

#[test]
fn etcd_3_6() {
    back_and_forth("etcd-3.6.16");
}

#[test]
fn etcd_3_5() {
    back_and_forth("etcd-3.5.33");
}
