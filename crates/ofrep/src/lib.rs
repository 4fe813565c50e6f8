//! Gates for programs in any language: OpenFeature's remote evaluation protocol (OFREP) over the same rows that everyone
//! follows, and over the cluster features of a store.
//!
//! What is answered is decided in `evaluate` (`sets` and `store` for the two kinds of gates), from a [`View`]; `serve` is
//! HTTP around it, `tls` and `token` say to whom (`reload` looks whether their files were renewed), and `follow` and `follow_store` keep the view.

mod evaluate;
mod follow;
mod follow_store;
mod refusal;
mod reload;
mod serve;
mod sets;
mod store;
mod tls;
mod token;
mod view;

pub use client::{Client as StoreClient, User as StoreUser};
pub use evaluate::{Answer, bulk, single};
pub use follow::{FollowError, follow};
pub use follow_store::{connect_store, follow_store};
pub use reload::{RELOAD_EVERY, reload};
pub use serve::{EVENTS, router, serve, serve_tls};
pub use tls::{Tls, TlsError};
pub use token::{TokenError, Tokens};
pub use view::{Sets, Source, Store, StoreFeature, View};
