//! The store's changes as one watch of a client needs them: an end that was meant for others only is no end.

use std::sync::Arc;

use client::{Canceled, pb::WatchResponse};
use futures_util::{StreamExt, stream::BoxStream};

use crate::{
    shared::Told,
    status::{Result, Status},
};

/// Begins a watch of the store at a revision, shared with nobody.
type Alone = Box<dyn Fn(i64) -> BoxStream<'static, Told> + Send + Sync>;

pub(super) struct Changes {
    now: BoxStream<'static, Told>,
    alone: Alone,
    /// The store has nothing before this revision.
    oldest: i64,
}

/// What the end of a watch of the store means to one of those who share it.
#[derive(Debug)]
enum End {
    /// It began before what the store still has, which starts here, and this one has seen that far.
    ForOthers {
        oldest: i64,
    },
    ForAll(Box<Status>),
}

impl Changes {
    pub(super) fn new(now: BoxStream<'static, Told>, alone: Alone) -> Changes {
        Changes { now, alone, oldest: 0 }
    }

    /// The next changes for one that has seen all up to a revision; `None` if there will be no more. May be dropped at any time.
    pub(super) async fn next(&mut self, seen: i64) -> Result<Option<Arc<WatchResponse>>> {
        loop {
            match self.now.next().await {
                None => return Ok(None),
                Some(Ok(response)) => return Ok(Some(response)),
                Some(Err(canceled)) => match end(&canceled, seen) {
                    End::ForAll(status) => return Err(status),
                    End::ForOthers { oldest } => {
                        self.oldest = oldest;
                        self.begin_again(seen);
                    }
                },
            }
        }
    }

    /// Goes on alone: from what was seen, or from what is left of it.
    pub(super) fn begin_again(&mut self, seen: i64) {
        self.now = (self.alone)(seen.max(self.oldest));
    }
}

fn end(canceled: &Canceled, seen: i64) -> End {
    match canceled.response.compact_revision {
        oldest if (1..=seen.saturating_add(1)).contains(&oldest) => End::ForOthers { oldest },
        0 => End::ForAll(Status::internal(&canceled.error)),
        oldest => {
            End::ForAll(Status::expired(format!("too old resource version: the store keeps nothing before {oldest}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use client::mvccpb::{Event, KeyValue};
    use futures_util::stream;
    use tokio::sync::oneshot;

    use super::*;
    use crate::shared::{Member, Shared};

    const COMPACTED: i64 = 10;

    fn change(revision: i64) -> WatchResponse {
        let kv = KeyValue { mod_revision: revision, ..Default::default() };
        WatchResponse { events: vec![Event { kv: Some(kv), ..Default::default() }], ..Default::default() }
    }

    fn canceled(compact_revision: i64) -> Canceled {
        let response = WatchResponse { compact_revision, canceled: true, ..Default::default() };
        Canceled { response, error: client::Error::Closed }
    }

    /// A watch of a store that keeps nothing before `COMPACTED`; it is canceled when the test says so.
    fn begun_too_early(shared: &Shared, from: i64) -> (Member, oneshot::Sender<()>) {
        let (go, gone) = oneshot::channel();
        let stream = stream::once(async move {
            let _ = gone.await;
            Err(canceled(COMPACTED))
        });
        (shared.join("/registry/a/", from, || Box::pin(stream)).expect("the first"), go)
    }

    /// Joins the watch that is there.
    fn join(shared: &Shared, from: i64) -> Member {
        let none = || -> stream::Empty<std::result::Result<WatchResponse, Canceled>> { panic!("a watch is there") };
        shared.join("/registry/a/", from, none).expect("the others began before")
    }

    /// Changes of a member; where it goes on alone is noted, and one change comes then.
    fn changes(member: Member, begun: &Arc<Mutex<Vec<i64>>>) -> Changes {
        let begun = begun.clone();
        let alone = move |from| {
            begun.lock().unwrap().push(from);
            stream::iter([Ok(Arc::new(change(from + 1)))]).boxed()
        };
        Changes::new(member.boxed(), Box::new(alone))
    }

    /// Found by reading: the end of a watch of the store that began too early was told to all who shared it. Here all have joined
    /// when the store says so.
    #[tokio::test]
    async fn a_watch_from_a_past_that_is_gone_does_not_end_others() {
        let (shared, begun) = (Shared::default(), Arc::new(Mutex::new(Vec::new())));
        let (old, go) = begun_too_early(&shared, 3);
        let mut old = changes(old, &begun);
        // One has seen all that is gone, one is where the store begins, and one has not seen the last that is gone.
        let mut others = [12, COMPACTED - 1].map(|seen| (seen, changes(join(&shared, seen + 1), &begun)));
        let mut behind = changes(join(&shared, COMPACTED - 1), &begun);
        go.send(()).unwrap();

        assert_eq!(old.next(2).await.unwrap_err().reason, "Expired");
        assert_eq!(behind.next(COMPACTED - 2).await.unwrap_err().reason, "Expired");
        for (seen, other) in &mut others {
            let next = other.next(*seen).await.expect("no error").expect("no end");
            assert!(next.events[0].kv.as_ref().unwrap().mod_revision > *seen);
        }
        assert_eq!(*begun.lock().unwrap(), [12, COMPACTED], "from what was seen, or from what is left");
    }

    #[tokio::test]
    async fn another_end_is_for_all() {
        let never: Alone = Box::new(|_| panic!("nothing begins again"));
        let mut changes = Changes::new(stream::iter([Err(Box::new(canceled(0)))]).boxed(), never);
        assert_eq!(changes.next(5).await.unwrap_err().reason, "InternalError");
        assert!(changes.next(5).await.unwrap().is_none());
    }
}
