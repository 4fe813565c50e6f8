//! `check perf`: a fixed rate of writes for a minute; does the cluster keep up, and evenly?

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};

use super::{
    CheckOptions, Load,
    load::{Keys, Outcome, write},
};
use crate::{context::Context, failure::Failure, print::println};

const LENGTH: Duration = Duration::from_secs(60);

pub(super) async fn run(context: &Context, options: CheckOptions, prefix: String) -> Result<(), Failure> {
    let (rate, clients) = match options.load()? {
        Load::Small => (150, 50),
        Load::Medium => (1_000, 200),
        Load::Large => (8_000, 500),
        Load::XLarge => (15_000, 1_000),
    };
    let clients = super::clients(context, clients).await?;
    super::refuse_if_used(&clients[0], &prefix, &context.program).await?;
    let (sender, receiver) = mpsc::channel(clients.len());
    let bar = super::bar(LENGTH.as_secs());
    let feeder = tokio::spawn(feed(sender, Keys::new(&prefix, 256), rate, bar.clone()));
    let outcome = tokio::select! {
        outcome = write(&clients, receiver, 1024, || ()) => Some(outcome),
        _ = tokio::signal::ctrl_c() => None,
    };
    feeder.abort();
    bar.finish_and_clear();
    match super::delete(&clients[0], &prefix).await {
        Ok(revision) => options.clean_up(&clients[0], revision).await?,
        Err(error) => println(&format!("FAIL: Cleanup failed during key deletion: ERROR({error})"))?,
    }
    match outcome {
        Some(outcome) => judge(&outcome, rate),
        None => Err(Failure::told(1)),
    }
}

/// Hands out keys at a steady rate; the bar counts seconds.
async fn feed(sender: mpsc::Sender<Vec<u8>>, mut keys: Keys, rate: u32, bar: indicatif::ProgressBar) {
    let start = Instant::now();
    for n in 0..rate * LENGTH.as_secs() as u32 {
        let due = start + Duration::from_secs(1).mul_f64(f64::from(n) / f64::from(rate));
        tokio::time::sleep_until(due).await;
        bar.set_position(start.elapsed().as_secs());
        let send = tokio::time::timeout_at(start + LENGTH, sender.send(keys.next()));
        if !matches!(send.await, Ok(Ok(()))) {
            return;
        }
    }
}

fn judge(outcome: &Outcome, rate: u32) -> Result<(), Failure> {
    let mut passed = true;
    let mut say = |good: bool, pass: String, fail: String| {
        passed &= good;
        println(if good { &pass } else { &fail })
    };
    if !outcome.errors.is_empty() {
        say(false, String::new(), "FAIL: too many errors".to_owned())?;
        for (error, count) in &outcome.errors {
            println(&format!("FAIL: ERROR({error}) -> {count}"))?;
        }
    }
    let writes = outcome.rate() as u64 + 1;
    say(
        outcome.rate() / f64::from(rate) > 0.9,
        format!("PASS: Throughput is {writes} writes/s"),
        format!("FAIL: Throughput too low: {writes} writes/s"),
    )?;
    let slowest = outcome.slowest();
    say(
        slowest <= 0.5,
        format!("PASS: Slowest request took {slowest:.6}s"),
        format!("Slowest request took too long: {slowest:.6}s"),
    )?;
    let deviation = outcome.deviation();
    say(deviation <= 0.1, format!("PASS: Stddev is {deviation:.6}s"), format!("Stddev too high: {deviation:.6}s"))?;
    println(if passed { "PASS" } else { "FAIL" })?;
    if passed { Ok(()) } else { Err(Failure::told(1)) }
}
