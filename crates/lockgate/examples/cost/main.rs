//! The cost of calls and gates for the server: `cargo run --release -p lockgate --example cost [--callgrind] target/release/lockgate`.
//!
//! By default it sends the same calls with and without `require-feature` over one connection, in turns, and reads from the
//! kernel how long the server's threads ran. Wall time would mostly show the network and the disk.
//! With `--callgrind` the server runs under valgrind, which counts instructions, so that other work on the machine does not
//! matter. This also compares a cluster that uses gates with one that does not, unless `--required` is given; with `--each`
//! it counts a call of each kind instead, to compare two builds of the server.
//! `KEEP_DUMPS=DIR` keeps callgrind's files. Without callgrind, `--rounds N`, `--calls N` and `--only put` set how much is
//! sent, and by which calls. Many short rounds are better than few long ones, because other work on the machine is then
//! equal for both halves of a round.

mod load;
mod server;

use std::error::Error;

use load::{Call, Watchers, send};
use server::{Gates, Server};
use tonic::transport::Channel;

const ROUNDS: usize = 21;
const CALLS: usize = 10_000;
/// Instructions are counted in fewer rounds: they hardly differ.
const COUNTED_ROUNDS: usize = 5;
/// Watch streams that receive every put of a round.
const WATCHERS: usize = 8;
const CALL_KINDS: [Call; 3] = [Call::SerializableRange, Call::Range, Call::Put];

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut args: Vec<_> = std::env::args().skip(1).collect();
    let mut has = |flag: &str| {
        let before = args.len();
        args.retain(|arg| arg != flag);
        args.len() < before
    };
    let (counting, required_only, each) = (has("--callgrind"), has("--required"), has("--each"));
    let mut value = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        args.remove(at);
        (at < args.len()).then(|| args.remove(at))
    };
    let rounds = value("--rounds").map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let calls = value("--calls").map_or(Ok(CALLS), |calls| calls.parse())?;
    let only = value("--only").unwrap_or_default();
    let binary = args.first().ok_or("name the server's binary")?;
    if counting && each {
        return count_each(binary).await;
    }
    match (counting, required_only) {
        (false, _) => time(binary, [rounds, calls].map(|n: usize| n.max(1)), &only.to_lowercase()).await,
        (true, false) => {
            count_gates(binary).await?;
            count_required(binary).await
        }
        (true, true) => count_required(binary).await,
    }
}

/// Nanoseconds of a required feature.
async fn time(binary: &str, [rounds, calls]: [usize; 2], only: &str) -> Outcome<()> {
    let server = Server::start(binary, Gates::On, false);
    let channel = server.connect().await?;
    for call in CALL_KINDS.into_iter().filter(|call| format!("{call:?}").to_lowercase().contains(only)) {
        let mut rows = Vec::new();
        for round in 0..rounds {
            rows.push(both(&server, &channel, call, calls, round).await?);
        }
        report(&format!("{call:?}, required"), "ns of CPU", calls, &rows);
    }
    Ok(())
}

/// Instructions of a call of each kind, and of a put that watchers receive.
async fn count_each(binary: &str) -> Outcome<()> {
    let server = Server::start(binary, Gates::Off, true);
    let channel = server.connect().await?;
    for call in [Call::Put, Call::Range, Call::SerializableRange, Call::Txn] {
        send(&channel, call, false, CALLS / 4).await?;
        count_rounds(&server, &channel, call, &format!("{call:?}")).await?;
    }
    let watchers = Watchers::start(&channel, WATCHERS, COUNTED_ROUNDS * CALLS).await?;
    count_rounds(&server, &channel, Call::Put, &format!("Put with {WATCHERS} watchers")).await?;
    watchers.finish().await
}

async fn count_rounds(server: &Server, channel: &Channel, call: Call, what: &str) -> Outcome<()> {
    let mut rows = Vec::new();
    for _ in 0..COUNTED_ROUNDS {
        rows.push(counted(server, channel, call, false).await?);
    }
    rows.sort_by(f64::total_cmp);
    let (low, middle, high) = (rows[0], rows[rows.len() / 2], rows[rows.len() - 1]);
    println!("{what}: {middle:.0} instructions a call ({low:.0} to {high:.0}, {COUNTED_ROUNDS} rounds of {CALLS})");
    Ok(())
}

/// Instructions of gates in use.
async fn count_gates(binary: &str) -> Outcome<()> {
    let mut used = Vec::new();
    for _ in 0..COUNTED_ROUNDS {
        let mut cost = [0.0; 2];
        for (gates, cost) in [Gates::Off, Gates::On].into_iter().zip(&mut cost) {
            let server = Server::start(binary, gates, true);
            let channel = server.connect().await?;
            send(&channel, Call::Put, false, CALLS / 4).await?;
            *cost = counted(&server, &channel, Call::Put, false).await?;
        }
        used.push(cost);
    }
    report("Put, gates in use", "instructions", CALLS, &used);
    Ok(())
}

/// Instructions of a required feature.
async fn count_required(binary: &str) -> Outcome<()> {
    let server = Server::start(binary, Gates::On, true);
    let channel = server.connect().await?;
    for call in CALL_KINDS {
        send(&channel, call, true, CALLS / 4).await?;
        let mut rows = Vec::new();
        for _ in 0..COUNTED_ROUNDS {
            let without = counted(&server, &channel, call, false).await?;
            rows.push([without, counted(&server, &channel, call, true).await?]);
        }
        report(&format!("{call:?}, required"), "instructions", CALLS, &rows);
    }
    Ok(())
}

async fn counted(server: &Server, channel: &Channel, call: Call, required: bool) -> Outcome<f64> {
    server.count_from_zero()?;
    send(channel, call, required, CALLS).await?;
    Ok(server.counted()? as f64 / CALLS as f64)
}

/// Without and with a required feature; which comes first changes from round to round.
async fn both(server: &Server, channel: &Channel, call: Call, calls: usize, round: usize) -> Outcome<[f64; 2]> {
    let mut cost = [0.0; 2];
    let first = round.is_multiple_of(2);
    for required in [first, !first] {
        let begin = server.ran()?;
        send(channel, call, required, calls).await?;
        cost[usize::from(required)] = (server.ran()? - begin) as f64 / calls as f64;
    }
    Ok(cost)
}

fn report(what: &str, unit: &str, calls: usize, rows: &[[f64; 2]]) {
    let sorted = |value: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<_> = rows.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let middle = rows.len() / 2;
    let (without, with) = (sorted(|row| row[0])[middle], sorted(|row| row[1])[middle]);
    let difference = sorted(|row| row[1] - row[0]);
    let (low, high) = interval(rows.len());
    println!(
        "{what}: {with:.0} {unit} a call, {without:.0} without; the difference is {:.0} ({:+.2} %), its median's 95 % interval \
         {:.0} to {:.0} ({} rounds of {calls})",
        difference[middle],
        difference[middle] * 100.0 / without,
        difference[low],
        difference[high],
        rows.len(),
    );
}

/// Ranks between which the median lies, by the sign test.
fn interval(count: usize) -> (usize, usize) {
    let half = 0.98 * (count as f64).sqrt();
    let low = (count as f64 / 2.0 - half).floor().max(0.0) as usize;
    (low, count - 1 - low)
}
