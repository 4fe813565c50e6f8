//! What a required feature costs the server: `cargo run --release -p lockgate --example required target/release/lockgate`.
//!
//! Sends the same calls with and without `require-feature` over one connection, in turns, and reads from the kernel how
//! long the server's threads ran. Wall time says little here: it is mostly the network's and the disk's.

use std::{
    error::Error,
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use proto::etcdserverpb::{
    FeatureGateStatusRequest, PutRequest, RangeRequest, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use tonic::{Request, metadata::MetadataValue, transport::Channel};

const ROUNDS: usize = 21;
const CALLS: usize = 10_000;
const AT_ONCE: usize = 32;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Clone, Copy, Debug)]
enum Call {
    Put,
    Range,
    SerializableRange,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let binary = std::env::args().nth(1).ok_or("name the server's binary")?;
    let dir = tempfile::tempdir()?;
    let server = Server::start(&binary, dir.path())?;
    let channel = connect(&server.url).await?;
    for call in [Call::SerializableRange, Call::Range, Call::Put] {
        measure(&server, &channel, call).await?;
    }
    Ok(())
}

async fn measure(server: &Server, channel: &Channel, call: Call) -> Outcome<()> {
    let (mut without, mut with, mut difference) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Which comes first changes from round to round.
        let order = [round % 2 == 0, round % 2 == 1];
        let mut cost = [0.0; 2];
        for required in order {
            let begin = server.ran()?;
            send(channel, call, required).await?;
            cost[usize::from(required)] = (server.ran()? - begin) as f64 / CALLS as f64;
        }
        without.push(cost[0]);
        with.push(cost[1]);
        difference.push(cost[1] - cost[0]);
    }
    difference.sort_by(f64::total_cmp);
    let (low, high) = interval(difference.len());
    println!(
        "{call:?}: {:.0} ns of CPU without, {:.0} with; the difference is {:.0} ns (95 % interval of the median {:.0} to {:.0}, {ROUNDS} rounds of {CALLS})",
        median(without),
        median(with),
        difference[difference.len() / 2],
        difference[low],
        difference[high],
    );
    Ok(())
}

/// Ranks between which the median lies, by the sign test.
fn interval(count: usize) -> (usize, usize) {
    let half = 0.98 * (count as f64).sqrt();
    let low = (count as f64 / 2.0 - half).floor().max(0.0) as usize;
    (low, count - 1 - low)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn send(channel: &Channel, call: Call, required: bool) -> Outcome<()> {
    let calls = stream::iter(0..CALLS).map(|i| {
        let mut kv = KvClient::new(channel.clone());
        async move {
            let key = format!("key-{}", i % 100);
            match call {
                Call::Put => {
                    let put = PutRequest { key: key.into(), value: vec![b'v'; 256].into(), ..Default::default() };
                    kv.put(request(put, required)).await.map(drop)
                }
                Call::Range | Call::SerializableRange => {
                    let serializable = matches!(call, Call::SerializableRange);
                    let range = RangeRequest { key: key.into(), serializable, ..Default::default() };
                    kv.range(request(range, required)).await.map(drop)
                }
            }
        }
    });
    let mut calls = calls.buffer_unordered(AT_ONCE);
    while let Some(done) = calls.next().await {
        done?;
    }
    Ok(())
}

fn request<T>(message: T, required: bool) -> Request<T> {
    let mut request = Request::new(message);
    if required {
        request.metadata_mut().insert("require-feature", MetadataValue::from_static("AtomicIncrement"));
    }
    request
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(binary: &str, dir: &std::path::Path) -> Outcome<Server> {
        let port = || std::net::TcpListener::bind("127.0.0.1:0")?.local_addr().map(|address| address.port());
        let (url, peer) = (format!("http://127.0.0.1:{}", port()?), format!("http://127.0.0.1:{}", port()?));
        let child = Command::new(binary)
            .args(["--name", "m1", "--unsafe-no-fsync", "--cluster-feature-gates=AtomicIncrement=true", "--data-dir"])
            .arg(dir)
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Server { child, url })
    }

    /// Nanoseconds that all threads have run.
    fn ran(&self) -> Outcome<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok()).ok_or("no schedstat")?;
        }
        Ok(sum)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the feature is on.
async fn connect(url: &str) -> Outcome<Channel> {
    let channel = Channel::from_shared(url.to_owned())?.connect_lazy();
    let mut maintenance = MaintenanceClient::new(channel.clone());
    for _ in 0..200 {
        let status = maintenance.feature_gate_status(FeatureGateStatusRequest::default()).await;
        if status.is_ok_and(|status| status.get_ref().features.iter().any(|f| f.name == "AtomicIncrement" && f.enabled))
        {
            return Ok(channel);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("the feature never went on".into())
}
