//! Who manages which fields: `metadata.managedFields`, and what becomes of an object when somebody applies a configuration.
//!
//! Pure functions over JSON values, in the manner of Kubernetes (structured-merge-diff and its field manager, by whose results
//! the tests go). A [`Node`] says how fields of a version are merged, a [`Set`] names fields, [`Managers`] says whose they are,
//! and a [`Writer`] makes new ones of them for one write.

mod apply;
mod cap;
mod check;
mod compare;
mod conflict;
mod element;
mod fields;
mod held;
mod last_applied;
mod list;
mod managers;
mod merge;
mod name;
mod node;
mod own;
#[cfg(test)]
mod property_tests;
mod reconcile;
mod remove;
#[cfg(test)]
mod replay_tests;
mod set;
#[cfg(test)]
mod set_tests;
mod value;
mod views;
mod writer;

#[cfg(test)]
use self::views::Alike;
pub(crate) use self::{
    apply::{Applied, ApplyError},
    check::check,
    held::Held,
    managers::Managers,
    name::{check as check_name, from_user_agent},
    node::{Node, Types},
    views::Views,
    writer::{Reset, Writer},
};
