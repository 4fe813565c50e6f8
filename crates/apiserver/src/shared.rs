//! Many watches of one prefix, one watch of the store: what happens is sent and decoded once, however many look on.
//!
//! Invariant: whoever joins from a revision is given every response from that revision on, in order, each once. Those before it joined
//! come from what is kept of the recent past; where that does not reach back far enough, nothing is shared.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use client::{Canceled, mvccpb::Event, pb::WatchResponse};
use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::AbortHandle};

/// What is kept of the past, for those who come later.
const BYTES_MAX: usize = 1 << 20;
const RESPONSES_MAX: usize = 1024;

pub(crate) type Told = Result<Arc<WatchResponse>, Box<Canceled>>;

/// The watches of the store that are shared, by their prefix.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    groups: Arc<Mutex<HashMap<String, Arc<Group>>>>,
}

/// All who watch one prefix.
struct Group {
    state: Mutex<State>,
}

struct State {
    /// Everything from this revision on has been told, or will be.
    floor: i64,
    recent: VecDeque<Arc<WatchResponse>>,
    bytes: usize,
    members: BTreeMap<u64, mpsc::UnboundedSender<Told>>,
    next_member: u64,
    /// Nothing more will be told.
    ended: bool,
    task: Option<AbortHandle>,
}

/// A place in a group, until it is dropped.
pub(crate) struct Member {
    told: mpsc::UnboundedReceiver<Told>,
    id: u64,
    prefix: String,
    group: Arc<Group>,
    groups: Weak<Mutex<HashMap<String, Arc<Group>>>>,
}

impl Shared {
    /// Lets nobody join those who are there: what they have seen is not what others will.
    pub(crate) fn part(&self) {
        self.groups.lock().clear();
    }

    /// Joins those who watch a prefix, or is the first, for whom `open` begins a watch of the store at `from`. None if the others
    /// have begun later.
    pub(crate) fn join<S>(&self, prefix: &str, from: i64, open: impl FnOnce() -> S) -> Option<Member>
    where
        S: Stream<Item = Result<WatchResponse, Canceled>> + Send + Unpin + 'static,
    {
        let mut groups = self.groups.lock();
        let member = |(id, told), group: &Arc<Group>| Member {
            told,
            id,
            prefix: prefix.to_owned(),
            group: group.clone(),
            groups: Arc::downgrade(&self.groups),
        };
        if let Some(group) = groups.get(prefix).filter(|group| !group.state.lock().ended) {
            return Some(member(group.admit(from)?, group));
        }
        let group = Arc::new(Group { state: Mutex::new(State::new(from)) });
        let first = member(group.admit(from)?, &group);
        let task = tokio::spawn(run(group.clone(), open()));
        group.state.lock().task = Some(task.abort_handle());
        groups.insert(prefix.to_owned(), group);
        Some(first)
    }
}

async fn run(group: Arc<Group>, mut changes: impl Stream<Item = Result<WatchResponse, Canceled>> + Unpin) {
    while let Some(next) = changes.next().await {
        let ends = next.is_err();
        group.state.lock().tell(next.map(Arc::new).map_err(Box::new));
        if ends {
            return;
        }
    }
    group.state.lock().end();
}

impl Group {
    fn admit(&self, from: i64) -> Option<(u64, mpsc::UnboundedReceiver<Told>)> {
        let mut state = self.state.lock();
        if from < state.floor {
            return None;
        }
        let (sender, told) = mpsc::unbounded_channel();
        for response in state.recent.iter().filter(|response| last(response) >= from) {
            let _ = sender.send(Ok(response.clone()));
        }
        state.next_member += 1;
        let id = state.next_member;
        state.members.insert(id, sender);
        Some((id, told))
    }
}

impl State {
    fn new(floor: i64) -> State {
        State {
            floor,
            recent: VecDeque::new(),
            bytes: 0,
            members: BTreeMap::new(),
            next_member: 0,
            ended: false,
            task: None,
        }
    }

    fn tell(&mut self, told: Told) {
        // A member that is gone takes itself out.
        for member in self.members.values() {
            let _ = member.send(told.clone());
        }
        match told {
            Ok(response) if !response.events.is_empty() => self.keep(response),
            Ok(_) => {}
            Err(_) => self.end(),
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.members.clear();
        self.recent.clear();
    }

    fn keep(&mut self, response: Arc<WatchResponse>) {
        self.bytes += size(&response);
        self.recent.push_back(response);
        while self.bytes > BYTES_MAX || self.recent.len() > RESPONSES_MAX {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.bytes -= size(&oldest);
            // A response holds whole revisions.
            self.floor = self.floor.max(last(&oldest) + 1);
        }
    }
}

impl Stream for Member {
    type Item = Told;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Told>> {
        self.told.poll_recv(context)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let Some(groups) = self.groups.upgrade() else { return };
        // In this order everywhere, so that nobody joins a group that is being left by its last.
        let mut groups = groups.lock();
        let mut state = self.group.state.lock();
        state.members.remove(&self.id);
        if !state.members.is_empty() {
            return;
        }
        state.ended = true;
        if let Some(task) = state.task.take() {
            task.abort();
        }
        if groups.get(&self.prefix).is_some_and(|group| Arc::ptr_eq(group, &self.group)) {
            groups.remove(&self.prefix);
        }
    }
}

fn revision(event: &Event) -> i64 {
    event.kv.as_ref().map_or(0, |kv| kv.mod_revision)
}

fn last(response: &WatchResponse) -> i64 {
    response.events.last().map_or(0, revision)
}

fn size(response: &WatchResponse) -> usize {
    let length = |event: &Event| {
        let kvs = event.kv.iter().chain(&event.prev_kv);
        kvs.map(|kv| kv.key.len() + kv.value.len()).sum::<usize>()
    };
    response.events.iter().map(length).sum()
}

#[cfg(test)]
mod tests {
    use client::mvccpb::KeyValue;
    use futures_util::stream;
    use proptest::prelude::*;

    use super::*;

    const PREFIX: &str = "/registry/a/";

    type Sender = mpsc::UnboundedSender<Result<WatchResponse, Canceled>>;

    fn response(revisions: &[i64], bytes: usize) -> WatchResponse {
        let event = |revision: &i64| {
            let kv = KeyValue { mod_revision: *revision, value: vec![0; bytes].into(), ..Default::default() };
            Event { kv: Some(kv), ..Default::default() }
        };
        WatchResponse { events: revisions.iter().map(event).collect(), ..Default::default() }
    }

    /// Joins; the sender is there if a watch of the store was begun.
    fn join(shared: &Shared, from: i64) -> (Option<Member>, Option<Sender>) {
        let mut begun = None;
        let member = shared.join(PREFIX, from, || {
            let (sender, receiver) = mpsc::unbounded_channel();
            begun = Some(sender);
            Box::pin(stream::unfold(receiver, |mut receiver| async {
                receiver.recv().await.map(|response| (response, receiver))
            }))
        });
        (member, begun)
    }

    /// What has come so far, from a revision on.
    async fn revisions(member: &mut Member, from: i64) -> Vec<i64> {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let mut seen = Vec::new();
        while let Ok(told) = member.told.try_recv() {
            seen.extend(told.unwrap().events.iter().map(revision).filter(|revision| *revision >= from));
        }
        seen
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
    }

    #[test]
    fn one_watch_of_the_store_tells_all() {
        run(async {
            let shared = Shared::default();
            let (first, store) = join(&shared, 5);
            let (mut first, store) = (first.unwrap(), store.unwrap());
            store.send(Ok(response(&[6, 7], 1))).unwrap();
            assert_eq!(revisions(&mut first, 0).await, [6, 7]);
            let (second, begun) = join(&shared, 7);
            assert!(begun.is_none());
            store.send(Ok(response(&[9], 1))).unwrap();
            assert_eq!(revisions(&mut second.unwrap(), 7).await, [7, 9]);
            assert_eq!(revisions(&mut first, 0).await, [9]);
            assert!(join(&shared, 4).0.is_none(), "the past was not seen");
        });
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_gone_is_not_shared() {
        run(async {
            let shared = Shared::default();
            let (first, store) = join(&shared, 1);
            let (mut first, store) = (first.unwrap(), store.unwrap());
            (2..6).for_each(|revision| store.send(Ok(response(&[revision], BYTES_MAX / 2))).unwrap());
            assert_eq!(revisions(&mut first, 0).await, [2, 3, 4, 5]);
            assert!(join(&shared, 3).0.is_none());
            assert_eq!(revisions(&mut join(&shared, 4).0.unwrap(), 4).await, [4, 5]);
        });
    }

    #[test]
    fn the_watch_of_the_store_ends_with_the_last_member() {
        run(async {
            let shared = Shared::default();
            let (first, store) = join(&shared, 1);
            let (second, _) = join(&shared, 1);
            drop(first);
            revisions(&mut join(&shared, 1).0.unwrap(), 0).await;
            assert!(!store.as_ref().unwrap().is_closed());
            drop(second);
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            assert!(store.unwrap().is_closed());
            assert!(join(&shared, 3).1.is_some(), "the next begins anew");
        });
    }

    #[test]
    fn an_end_is_told_to_all_and_the_next_begins_anew() {
        run(async {
            let shared = Shared::default();
            let (first, store) = join(&shared, 1);
            let (second, _) = join(&shared, 1);
            let canceled = Canceled { response: WatchResponse::default(), error: client::Error::Closed };
            store.unwrap().send(Err(canceled)).unwrap();
            for mut member in [first.unwrap(), second.unwrap()] {
                assert!(member.next().await.unwrap().is_err());
                assert!(member.next().await.is_none());
            }
            assert!(join(&shared, 1).1.is_some());
        });
    }

    proptest! {
        /// Whoever comes and goes: each is told every revision from its first on, once and in order.
        #[test]
        fn every_revision_once(joins in proptest::collection::vec((0usize..30, 0i64..30), 1..20)) {
            run(async {
                let shared = Shared::default();
                let (first, store) = join(&shared, 0);
                let (_first, store) = (first.unwrap(), store.unwrap());
                let mut members = Vec::new();
                for now in 0..30 {
                    store.send(Ok(response(&[now], BYTES_MAX / 8))).unwrap();
                    tokio::task::yield_now().await;
                    for (_, from) in joins.iter().filter(|(at, from)| *at as i64 == now && *from <= now) {
                        members.extend(join(&shared, *from).0.map(|member| (member, *from)));
                    }
                }
                for (mut member, from) in members {
                    let seen = revisions(&mut member, from).await;
                    assert_eq!(seen, (from..30).collect::<Vec<_>>());
                }
            });
        }
    }
}
