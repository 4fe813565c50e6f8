//! etcd's peer protocol: how members of a cluster, ours and real etcd's, talk to each other over HTTP/1.1.
//!
//! Three ways lead to a peer. Two endless streams that the receiver dials ([`codec`] has their encodings): one of
//! MsgApp, one of everything else. Posts of single messages while there is no stream. And posts of a snapshot with its
//! database. [`Transport`] is the way out, [`serve`] the port that others come in by, [`control`] what members ask of
//! each other besides raft. The crate knows nothing of raft's state: it hands messages to a [`Member`] and reports what
//! did not arrive.
//!
//! Everything that decides is pure: [`codec`], [`header`], [`route`], [`url`].

mod client;
mod clock;
pub mod codec;
pub mod control;
mod dial;
pub mod header;
mod io;
mod json;
mod member;
mod observer;
mod options;
mod outbox;
mod pipeline;
mod probe;
mod reader;
mod remote;
pub mod route;
mod serve;
mod shared;
mod snapshot_send;
mod status;
mod transport;
pub mod url;

pub use control::Control;
pub use header::Identity;
pub use member::{ControlError, Database, HashKv, Member, ReceiveError, Versions};
pub use observer::{NoObserver, Observer};
pub use options::Options;
pub use serve::{serve, serve_connection};
pub use transport::Transport;
pub use url::UrlError;
