//! The gates of feature sets for programs in any language: OpenFeature's remote evaluation protocol (OFREP) over the same
//! rows that everyone follows.
//!
//! What is answered is decided in `evaluate`, from a [`View`] of the cluster; `serve` is HTTP around it, and `follow` keeps
//! the view.

mod evaluate;
mod follow;
mod serve;
mod view;

pub use evaluate::{Answer, bulk, single};
pub use follow::{FollowError, follow};
pub use serve::{EVENTS, router, serve};
pub use view::View;
