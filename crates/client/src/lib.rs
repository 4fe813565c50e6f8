//! A Rust client for the etcd v3 API, for Lockgate and etcd servers.
//!
//! ```no_run
//! use client::{Client, Compare, ConnectOptions, Delete, Get, Put, Txn, Watch};
//! use futures_util::StreamExt;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(["127.0.0.1:2379"], ConnectOptions::new()).await?;
//! client.put(Put::new("greeting", "hello")).await?;
//! let found = client.get("greeting").await?;
//! assert_eq!(found.kvs[0].value, "hello");
//!
//! let txn = Txn::new()
//!     .when([Compare::value("greeting").eq("hello")])
//!     .and_then([Put::new("greeting", "hallo").into()])
//!     .or_else([Get::key("greeting").into()]);
//! assert!(client.txn(txn).await?.succeeded);
//!
//! let mut watch = client.watch(Watch::prefix("gree").prev_kv());
//! client.delete(Delete::key("greeting")).await?;
//! while let Some(response) = watch.next().await {
//!     for event in response?.events {
//!         println!("{event:?}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Calls are distributed round robin over the endpoints that respond. Reads are repeated while
//! servers are unavailable. Writes are repeated only if they certainly were not sent, so that none
//! is applied twice. Watches and keep-alives continue after a reconnect.
#![warn(missing_docs)]

mod auth;
mod call;
mod client;
mod cluster;
mod endpoint;
mod error;
mod feature_gate;
mod health;
mod keepalive;
mod kv;
mod lease;
mod login;
mod maintenance;
mod op;
mod options;
mod page;
mod pool;
mod required;
mod snapshot;
mod stream;
mod txn;
mod user;
mod watch;

pub use self::{
    auth::Permission,
    call::API_VERSION,
    client::Client,
    error::{Error, Kind, Result},
    feature_gate::GateHistory,
    keepalive::KeepAlive,
    op::{Delete, Get, Increment, Op, Put, prefix_end},
    options::ConnectOptions,
    page::Pages,
    snapshot::Snapshot,
    txn::{Compare, Target, Txn},
    user::User,
    watch::{Canceled, Watch, WatchStream, Watcher},
};
pub use proto::{authpb, etcdserverpb as pb, membershippb, mvccpb};
pub use tonic::Code;
