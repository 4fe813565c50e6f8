//! The wire: certificates, who is calling, connections, bodies, negotiation.

pub(crate) mod accept;
pub(crate) mod activity;
pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod compress;
pub(crate) mod deadline;
pub(crate) mod health;
pub(crate) mod kubeconfig;
pub(crate) mod labels;
pub(crate) mod listen;
pub(crate) mod metrics;
pub(crate) mod pki;
pub(crate) mod query;
pub(crate) mod style;
pub(crate) mod verifier;
