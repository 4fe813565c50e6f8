//! What happens to objects, as it happens.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use client::{
    mvccpb::{Event, event::EventType},
    pb::WatchResponse,
};
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    Api, Call,
    backlog::{self, Ended, Feed},
    changes::Changes,
    list::wanted,
    options::{self, WatchStart},
    present,
    printed::Change,
    shown::{self, Shown, Wanted},
};
use crate::{
    resource::Resource,
    route::Target,
    selector::Selector,
    serve::{accept::Form, answer, labels, metrics::Inflight},
    status::{Result, Status},
    store::{self, Entry},
    table::{self, Include, Look},
};

/// Without a limit of the client's own a watch ends by itself, so that clients spread over servers again.
const SECONDS_MIN: u64 = 1800;
/// How many revisions a watch may be behind to share one with others.
const BEHIND_MAX: i64 = 1000;
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// One watch: what it is about and how its events look.
struct Watch {
    api: Api,
    target: Target,
    resource: Arc<Resource>,
    selector: Selector,
    form: Form,
    /// How tables look, where they are wanted.
    look: Option<Look>,
    bookmarks: bool,
    /// What happened up to this revision is known to the client.
    seen: i64,
    /// A bookmark is due: others who share the store's watch ask for their own, and all are told.
    due: bool,
    /// Tells when the store no longer has what the client has seen.
    losses: watch::Receiver<u64>,
    events: Feed,
}

impl Api {
    pub(crate) async fn watch(&self, target: &Target, call: &Call) -> Result<impl Stream<Item = Bytes> + Send + use<>> {
        let resource = self.resource(target)?;
        let selector = self.selector(&resource, call)?;
        let start = options::watch(&call.query)?;
        let seconds = match call.query.number("timeoutSeconds")? {
            Some(seconds) if seconds > 0 => seconds as u64,
            _ => SECONDS_MIN + u64::from(crate::name::uid().as_bytes()[0]) * 10,
        };
        let (events, stream) = backlog::new(self.watch_limits);
        let watch = Watch {
            api: self.clone(),
            target: target.clone(),
            resource,
            selector,
            form: call.form,
            look: present::look(call)?,
            bookmarks: call.query.flag("allowWatchBookmarks"),
            seen: 0,
            due: false,
            losses: self.store.losses(),
            events,
        };
        let Target { group, version, plural, .. } = target;
        let labels = ["WATCH", group, version, plural, "", labels::scope(target, "watch"), labels::COMPONENT];
        let under_way = Inflight::new(self.metrics.watches.with_label_values(&labels));
        tokio::spawn(async move {
            let _ = tokio::time::timeout(Duration::from_secs(seconds), watch.run(start)).await;
            drop(under_way);
        });
        Ok(stream)
    }
}

impl Watch {
    async fn run(mut self, start: WatchStart) {
        let _ = self.follow(start).await;
    }

    async fn follow(&mut self, start: WatchStart) -> std::result::Result<(), Ended> {
        let revision = match start {
            WatchStart::After(0) => match self.api.store.revision().await {
                Ok(revision) => revision,
                Err(status) => return self.fail(&status),
            },
            WatchStart::After(revision) => revision,
            WatchStart::State { mark, at_least } => self.state(mark, at_least).await?,
        };
        self.seen = revision;
        let now = match self.api.store.revision().await {
            Ok(now) => now,
            Err(status) => return self.fail(&status),
        };
        if revision > now && *self.losses.borrow() > 0 {
            return self.fail(&lost());
        }
        // From a revision that is there: a store tells no progress to watches that begin in the future, nor to others beside
        // them. What is known already is left out below, and need not be there any more if something came after it.
        let from = revision.saturating_add(1).min(now);
        let prefix = self.resource.prefix_in(self.target.namespace.as_deref());
        let store = self.api.store.clone();
        let first =
            if now - from <= BEHIND_MAX { store.follow(&prefix, from) } else { store.follow_alone(&prefix, from) };
        let mut changes = Changes::new(first, Box::new(move |from| store.follow_alone(&prefix, from)));
        loop {
            self.changes(&mut changes).await?;
            // What the client has not taken yet fills its backlog. The store keeps the rest until there is room.
            self.room().await?;
            changes.begin_again(self.seen);
        }
    }

    /// Tells what has happened from a revision on, until the client cannot keep up.
    async fn changes(&mut self, changes: &mut Changes) -> std::result::Result<(), Ended> {
        let every = self.api.bookmark_every;
        let mut bookmark = tokio::time::interval_at(Instant::now() + every, every);
        let mut catalog = self.api.catalog.clone();
        while !self.events.is_full() {
            tokio::select! {
                next = changes.next(self.seen) => match next {
                    Ok(Some(response)) => self.changed(&response).await?,
                    Ok(None) => return Err(Ended),
                    Err(status) => return self.fail(&status),
                },
                _ = bookmark.tick(), if self.bookmarks => {
                    self.due = true;
                    self.api.store.request_progress();
                }
                () = self.events.gone() => return Err(Ended),
                _ = self.losses.changed() => return self.fail(&lost()),
                _ = catalog.changed() => self.refresh()?,
            }
        }
        Ok(())
    }

    async fn room(&self) -> std::result::Result<(), Ended> {
        let found = self.events.room().await;
        if found.is_err() {
            self.api.metrics.terminated.with_label_values(&[&self.resource.group, &self.resource.plural]).inc();
            tracing::debug!(resource = self.resource.plural, "a watch ends whose client takes no events");
        }
        found
    }

    /// The definition may have changed: go on with what it is now, or end if there is nothing to watch any more.
    fn refresh(&mut self) -> std::result::Result<(), Ended> {
        self.resource = self.api.resource(&self.target).map_err(|_| Ended)?;
        Ok(())
    }

    /// Sends what is there now and returns its revision.
    async fn state(&mut self, mark: bool, at_least: i64) -> std::result::Result<i64, Ended> {
        let namespace = self.target.namespace.clone();
        let (resource, wanted) = (self.resource.clone(), self.wanted());
        let listed = self.api.state(&resource, namespace.as_deref(), &self.selector, at_least, wanted).await;
        let listed = match listed {
            Ok(listed) => listed,
            Err(status) => {
                self.fail(&status)?;
                return Err(Ended);
            }
        };
        let revision = listed.revision;
        for object in listed.shown() {
            if self.events.is_full() {
                self.room().await?;
            }
            self.send("ADDED", object)?;
        }
        if mark {
            self.bookmark(revision, true)?;
        }
        Ok(revision)
    }

    fn wanted(&self) -> Wanted {
        wanted(self.form, &self.selector)
    }

    async fn changed(&mut self, response: &WatchResponse) -> std::result::Result<(), Ended> {
        if response.events.is_empty() && std::mem::take(&mut self.due) {
            let revision = response.header.as_ref().map_or(0, |header| header.revision);
            return self.bookmark(revision.max(self.seen), false);
        }
        // A response holds whole revisions, so that the next one begins after the last of this.
        let last = response.events.last().and_then(|event| event.kv.as_ref()).map_or(0, |kv| kv.mod_revision);
        for event in &response.events {
            self.tell(event).await?;
        }
        self.seen = self.seen.max(last);
        Ok(())
    }

    /// Sends one change. Watches of whole objects that select nothing share what is sent.
    async fn tell(&mut self, event: &Event) -> std::result::Result<(), Ended> {
        let losses = *self.losses.borrow();
        let change = event.kv.as_ref().map(|kv| Change { losses, revision: kv.mod_revision, key: kv.key.clone() });
        let shared = change
            .filter(|change| change.revision > self.seen && self.form == Form::Object && self.selector.is_empty());
        if let Some(text) = shared.as_ref().and_then(|change| self.api.printed.get(&self.resource, change)) {
            return self.events.put(text);
        }
        let (kind, object) = match self.translate(event).await {
            Ok(Some(told)) => told,
            Ok(None) => return Ok(()),
            Err(status) => return self.fail(&status),
        };
        let Some(change) = shared else { return self.send(kind, object) };
        let text = shown::event(&self.resource, kind, &object);
        self.api.printed.keep(&self.resource, change, &text);
        self.events.put(text)
    }

    /// What a change of the store means to someone who sees only what the selector matches.
    async fn translate(&self, event: &Event) -> Result<Option<(&'static str, Shown)>> {
        let deleted = event.r#type == EventType::Delete as i32;
        let Some(kv) = event.kv.clone() else { return Ok(None) };
        let revision = kv.mod_revision;
        if revision <= self.seen {
            return Ok(None);
        }
        let before = self.selected(event.prev_kv.clone().map(store::entry)).await?;
        let after = self.selected((!deleted).then(|| store::entry(kv))).await?;
        let gone = |mut object: Shown| {
            // What is gone went at this revision, whatever the last it had.
            object.set_revision(revision);
            ("DELETED", object)
        };
        Ok(match (before, after) {
            (None, Some(object)) => Some(("ADDED", object)),
            (Some(_), Some(object)) => Some(("MODIFIED", object)),
            (Some(object), None) => Some(gone(object)),
            (None, None) => None,
        })
    }

    /// An object as the client sees it, if its selector matches. What cannot be read at all is left out; what cannot be
    /// converted ends the watch, or the client would miss it for ever.
    async fn selected(&self, entry: Option<Entry>) -> Result<Option<Shown>> {
        let Some(entry) = entry else { return Ok(None) };
        let object = match self.api.show(&self.resource, &entry, self.wanted()).await {
            Ok(object) => object,
            Err(status) if self.resource.converter.is_some() => return Err(status),
            Err(_) => return Ok(None),
        };
        Ok(object.is_selected(&self.selector).then_some(object))
    }

    fn send(&mut self, kind: &str, object: Shown) -> std::result::Result<(), Ended> {
        let object = match object {
            Shown::Tree(object) => object,
            text @ Shown::Text(_) => return self.events.put(shown::event(&self.resource, kind, &text)),
        };
        let mut event = json!({"type": kind});
        event["object"] = self.formed(object);
        self.write(event)
    }

    fn bookmark(&mut self, revision: i64, initial_end: bool) -> std::result::Result<(), Ended> {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_END: "true"});
        }
        let (kind, version) = (self.resource.kind.clone(), self.resource.api_version());
        let object = self.formed(json!({"kind": kind, "apiVersion": version, "metadata": metadata}));
        self.write(json!({"type": "BOOKMARK", "object": object}))
    }

    /// An object in the form that was asked for.
    fn formed(&mut self, object: Value) -> Value {
        match (self.form, &mut self.look) {
            (_, Some(look)) => {
                let mut now = *look;
                look.headers = false;
                // The end of the initial events is told in any case.
                let ends = object["metadata"]["annotations"][INITIAL_END] == "true";
                if ends && now.include == Include::None {
                    now.include = Include::Metadata;
                }
                let metadata = table::version_of(&object);
                table::table(&self.resource.columns, vec![object], metadata, now)
            }
            (Form::Metadata(meta), _) => table::partial(object, meta),
            _ => object,
        }
    }

    /// The last word of a watch: clients that started it get a 200 and this, as they expect.
    fn fail(&mut self, status: &Status) -> std::result::Result<(), Ended> {
        self.write(json!({"type": "ERROR", "object": status.to_json()}))?;
        Err(Ended)
    }

    fn write(&self, event: Value) -> std::result::Result<(), Ended> {
        self.events.put(answer::print(&event))
    }
}

/// What the client has seen is no longer the past of the store: it has to read all anew.
fn lost() -> Box<Status> {
    Status::expired("too old resource version: the store has gone back to an earlier state")
}
