//! Watching keys.
//!
//! A stream has watchers and a bounded queue. A watcher is *synced* when it has, in the queue or delivered, all events
//! up to the newest revision: publishing a revision then puts its events into the queue. When the queue is full, or
//! the watcher starts in the past, it is *unsynced* and not known to the publisher; the stream's own pull reads
//! history for it until it has caught up. So the publisher never waits, and a slow stream costs others nothing.
//! Synced watchers of a stream that want the same are an *audience*, for which events are queued once.

mod audience;
mod catch_up;
mod event;
mod hub;
mod interest;
mod item;
mod queue;
mod reload;
mod round;
mod spec;
mod stream;

pub(crate) use hub::Hub;
pub use item::WatchItem;
pub use spec::{Created, Filters, WatchError, WatchSpec};
pub use stream::{Notify, WatchStream};
