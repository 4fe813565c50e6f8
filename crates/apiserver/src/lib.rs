//! A Kubernetes-style API for custom resources on any etcd v3 API.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = apiserver::Options::new(vec!["127.0.0.1:2379".into()], "data/apiserver");
//! let server = apiserver::Server::start(options).await?;
//! println!("export KUBECONFIG={}", server.kubeconfig().display());
//! # Ok(())
//! # }
//! ```
//!
//! A request is a line: `serve` (TLS, who, bytes) → `route` (what) → `rest` (read, or decode → prune → default → gate →
//! validate → one transaction) → `serve::answer`. Decisions (`schema`, `crd`, `rules`, `selector`, `patch`, `managed`, `table`) are
//! pure functions over JSON values; `cel` evaluates expressions within a cost; `admission` has the policies that every write is asked by. What is served is a `catalog` as of one
//! revision, kept in step with the store by the `keeper`.

mod admission;
mod app;
mod builtin;
mod catalog;
mod cel;
mod census;
mod convert;
mod crd;
mod decode;
mod discovery;
mod events;
mod features;
mod field;
mod form;
mod gotext;
mod janitor;
mod jsonpath;
mod keeper;
mod managed;
mod method;
mod name;
mod object;
mod openapi;
mod past;
mod patch;
mod protobuf;
mod resource;
mod rest;
mod reviews;
mod route;
mod rules;
mod scale;
mod schema;
mod selector;
mod serve;
mod server;
mod shared;
mod status;
mod store;
mod table;
mod token;

pub use client::User as EtcdUser;
pub use server::{Options, Server, StartError};
