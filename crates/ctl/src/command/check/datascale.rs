//! `check datascale`: how much a server's memory grows with a known amount of data.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use tokio::sync::mpsc;

use super::{
    CheckOptions, Load,
    load::{Keys, write},
};
use crate::{context::Context, failure::Failure, print::println};

const METRIC: &str = "process_resident_memory_bytes";
const KV_BYTES: usize = 1024;

pub(super) async fn run(context: &Context, options: CheckOptions, prefix: String) -> Result<(), Failure> {
    let (pairs, clients) = match options.load()? {
        Load::Small => (10_000, 50),
        Load::Medium => (100_000, 200),
        Load::Large => (1_000_000, 500),
        Load::XLarge => (3_000_000, 1_000),
    };
    let clients = super::clients(context, clients).await?;
    super::refuse_if_used(&clients[0], &prefix, &context.program).await?;
    let endpoint = context.endpoints().into_iter().next().unwrap_or_default();
    let before = memory(&endpoint, "before").await?;
    let (count, size) = (clients.len(), KV_BYTES);
    println(&format!(
        "Start data scale check for work load [{pairs} key-value pairs, {size} bytes per key-value, {count} concurrent clients]."
    ))?;
    let (sender, receiver) = mpsc::channel(count);
    let mut keys = Keys::new(&prefix, KV_BYTES / 2);
    tokio::spawn(async move {
        for _ in 0..pairs {
            if sender.send(keys.next()).await.is_err() {
                return;
            }
        }
    });
    let bar = super::bar(pairs);
    let progress = bar.clone();
    let outcome = write(&clients, receiver, KV_BYTES / 2, move || progress.inc(1)).await;
    bar.finish_and_clear();
    let after = memory(&endpoint, "after").await?;
    let revision = super::delete(&clients[0], &prefix).await?;
    options.clean_up(&clients[0], revision).await?;
    if !outcome.errors.is_empty() {
        println("FAIL: too many errors")?;
        for (error, count) in &outcome.errors {
            println(&format!("FAIL: ERROR({error}) -> {count}"))?;
        }
        return Err(Failure::told(1));
    }
    let megabytes = (after - before) / f64::from(1 << 20);
    println(&format!("PASS: Approximate system memory used : {megabytes:.2} MB."))
}

async fn memory(endpoint: &str, when: &str) -> Result<f64, Failure> {
    let address = endpoint.strip_prefix("http://").unwrap_or(endpoint).trim_end_matches('/').to_owned();
    let read = tokio::task::spawn_blocking(move || fetch(&address)).await;
    let problem = match read.map_err(std::io::Error::other).flatten() {
        Ok(text) => match metric(&text) {
            Some(bytes) => return Ok(bytes),
            None => format!("could not find: {METRIC}"),
        },
        Err(error) => format!("fetch error: {error}"),
    };
    println(&problem)?;
    println(&format!("FAIL: Could not read {METRIC} {when} the put operations."))?;
    Err(Failure::told(1))
}

fn metric(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(METRIC))?.trim().parse().ok()
}

/// HTTP/1.0, so that the answer ends with the connection.
fn fetch(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_metric_is_found_among_others() {
        let text = "# TYPE process_resident_memory_bytes gauge\nother 1\nprocess_resident_memory_bytes 3.1e+07\n";
        assert_eq!(super::metric(text), Some(3.1e7));
        assert_eq!(super::metric("x 1"), None);
    }
}
