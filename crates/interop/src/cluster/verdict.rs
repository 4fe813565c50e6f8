//! What is checked when the load has ended: every order that clients saw, every acknowledged write, members against each
//! other, and their logs.

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use client::{Get, mvccpb::KeyValue};
use linear::{Effect, Operation};

use super::{
    group::Group,
    traffic::{Event, Finished, History, SHARED, Traffic, connect, shared_key, value_of},
};

/// How many acknowledged writes a verdict needs.
const ACKNOWLEDGED_MIN: usize = 51;

/// Counts of a run that went well.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub operations: usize,
    pub acknowledged: usize,
    pub unknown: usize,
    pub longest_gap: Duration,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { operations, acknowledged, unknown, longest_gap } = self;
        let gap = longest_gap.as_secs_f32();
        write!(
            f,
            "{operations} operations, {acknowledged} writes acknowledged, {unknown} unknown, longest gap {gap:.1} s"
        )
    }
}

/// Ends the load and compares the cluster with all answers that clients got.
pub(crate) fn finish(traffic: Traffic, group: &mut Group) -> Result<Figures> {
    group.wait_ready().context("under the load")?;
    traffic.wait_acknowledged(ACKNOWLEDGED_MIN).context("a load that nobody answers proves nothing")?;
    let mut finished = traffic.stop()?;
    group.wait_ready().context("after the load")?;
    group.check_hashes()?;
    for n in 0..group.members.len() {
        if group.members[n].running() {
            read_back(&mut finished, &group.members[n].endpoint())
                .with_context(|| format!("reading from {} at the end", group.members[n].name))?;
        }
    }
    let history = &finished.history;
    check_shared(history)?;
    check_order(&history.events)?;
    check_logs(group)?;
    let figures = Figures {
        operations: history.events.len() + history.single.len(),
        acknowledged: history.acknowledged(),
        unknown: history.unknown(),
        longest_gap: longest_gap(history),
    };
    Ok(figures)
}

/// Everything through one member: what is written once is looked at here, the rest joins the history.
fn read_back(finished: &mut Finished, endpoint: &str) -> Result<()> {
    let (single, shared) = finished.runtime.block_on(async {
        let client = connect(endpoint, harness::wait_max()).await?;
        let single = client.get(Get::prefix("once/")).await?.kvs;
        let mut shared = Vec::new();
        for key in 0..SHARED {
            shared.push(value_of(&client.get(shared_key(key)).await?.kvs));
        }
        Ok::<_, client::Error>((single, shared))
    })?;
    check_single(&finished.history.single, &single)?;
    let (client, call, answer) = (usize::MAX, finished.now + 1, Some(finished.now + 2));
    for (key, value) in (0..).zip(shared) {
        let operation = Operation { client, effect: Effect::Read, seen: Some(value), call, answer };
        finished.history.events.push(Event { key, operation, wrote: false, revision: None });
    }
    finished.now += 3;
    Ok(())
}

/// Every acknowledged write is there as it was acknowledged, and everything that is there was written.
fn check_single(written: &BTreeMap<String, Option<u64>>, found: &[KeyValue]) -> Result<()> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found: BTreeMap<String, &KeyValue> = found.iter().map(|kv| (text(&kv.key), kv)).collect();
    for (key, revision) in written {
        match (found.get(key), revision) {
            (None, Some(revision)) => bail!("{key}, acknowledged at revision {revision}, is lost"),
            (Some(kv), Some(revision)) => {
                let right = kv.mod_revision as u64 == *revision && kv.version == 1 && text(&kv.value) == *key;
                ensure!(right, "{key}, acknowledged at revision {revision}, is there as {kv:?}");
            }
            (Some(kv), None) => ensure!(kv.version == 1, "{key}, written once, has version {}", kv.version),
            (None, None) => {}
        }
    }
    match found.keys().find(|key| !written.contains_key(*key)) {
        Some(key) => bail!("{key} is there and was never written"),
        None => Ok(()),
    }
}

fn check_shared(history: &History) -> Result<()> {
    let mut shared = linear::History::default();
    for event in &history.events {
        let refused_for_nothing = matches!(event.operation, Operation { effect: Effect::Swap { expected, .. }, seen: Some(seen), .. }
            if seen == expected && !event.wrote);
        ensure!(!refused_for_nothing, "a swap found what it expected, and did nothing: {event:?}");
        shared.push(event.key, event.operation);
    }
    Ok(shared.check()?)
}

/// Over all keys: who asks after another was answered gets no older revision, and a write a newer one.
fn check_order(events: &[Event]) -> Result<()> {
    let known = |event: &&Event| event.revision.is_some();
    let mut asked: Vec<&Event> = events.iter().filter(known).collect();
    let mut answered = asked.clone();
    asked.sort_by_key(|event| event.operation.call);
    answered.sort_by_key(|event| event.operation.answer);
    let mut answered = answered.into_iter().peekable();
    let mut newest: Option<&Event> = None;
    for event in asked {
        while let Some(before) = answered.next_if(|before| before.operation.answer < Some(event.operation.call)) {
            if newest.is_none_or(|newest| newest.revision < before.revision) {
                newest = Some(before);
            }
        }
        let Some(newest) = newest else { continue };
        let newer = event.revision > newest.revision;
        ensure!(
            newer || !event.wrote && event.revision == newest.revision,
            "{newest:?} was answered before {event:?} began"
        );
    }
    Ok(())
}

pub(crate) fn check_logs(group: &Group) -> Result<()> {
    for member in &group.members {
        let log = member.log_text();
        let bad = |line: &&str| {
            ["panicked at", "panic:", "\"level\":\"panic\"", "\"level\":\"fatal\""]
                .iter()
                .any(|word| line.contains(word))
        };
        if let Some(line) = log.lines().find(bad) {
            bail!("{} logged {line}", member.name);
        }
    }
    Ok(())
}

/// The longest time in which no write was acknowledged.
fn longest_gap(history: &History) -> Duration {
    let wrote = history.events.iter().filter(|event| event.wrote);
    let mut times: Vec<u64> = wrote.filter_map(|event| event.operation.answer).collect();
    times.sort_unstable();
    Duration::from_nanos(times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &str, revision: i64) -> KeyValue {
        let bytes = key.to_owned().into_bytes();
        KeyValue {
            key: bytes.clone().into(),
            value: bytes.into(),
            mod_revision: revision,
            version: 1,
            ..KeyValue::default()
        }
    }

    #[test]
    fn reports_lost_and_unknown_keys() {
        let written: BTreeMap<String, Option<u64>> =
            [("a".to_owned(), Some(2)), ("b".to_owned(), None)].into_iter().collect();
        check_single(&written, &[kv("a", 2)]).expect("b may be missing");
        check_single(&written, &[kv("a", 2), kv("b", 9)]).expect("b may be there");
        assert!(check_single(&written, &[kv("b", 9)]).is_err(), "a is lost");
        assert!(check_single(&written, &[kv("a", 3)]).is_err(), "a has another revision");
        assert!(check_single(&written, &[kv("a", 2), kv("c", 3)]).is_err(), "c was never written");
    }

    #[test]
    fn rejects_revisions_that_go_back() {
        let event = |wrote, revision, call, answer| {
            let operation = Operation { client: 0, effect: Effect::Read, seen: None, call, answer: Some(answer) };
            Event { key: 0, operation, wrote, revision: Some(revision) }
        };
        let (write, read) = (true, false);
        check_order(&[event(write, 5, 0, 1), event(read, 5, 2, 3), event(write, 6, 2, 3)]).expect("in order");
        assert!(check_order(&[event(write, 5, 0, 1), event(read, 4, 2, 3)]).is_err());
        assert!(check_order(&[event(read, 5, 0, 1), event(write, 5, 2, 3)]).is_err());
        check_order(&[event(write, 5, 0, 4), event(read, 4, 2, 3)]).expect("they overlap");
    }

    #[test]
    fn reports_stale_reads_and_wrong_swaps() {
        let told = |events: &[Event]| check_shared(&History { events: events.to_vec(), ..History::default() }).is_err();
        let event = |effect, seen, wrote, call| {
            let operation = Operation { client: 0, effect, seen, call, answer: Some(call + 1) };
            Event { key: 0, operation, wrote, revision: None }
        };
        let write = |value, call| event(Effect::Write(Some(value)), None, true, call);
        let read = |value, call| event(Effect::Read, Some(Some(value)), false, call);
        assert!(!told(&[write(1, 0), write(2, 2), read(2, 4)]));
        assert!(told(&[write(1, 0), write(2, 2), read(1, 4)]));
        let swap = Effect::Swap { expected: Some(1), new: 2 };
        assert!(!told(&[write(1, 0), event(swap, Some(Some(1)), true, 2), read(2, 4)]));
        assert!(told(&[write(1, 0), event(swap, Some(Some(1)), false, 2)]), "refused for nothing");
    }
}
