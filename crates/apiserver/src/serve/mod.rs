//! The wire: certificates, who is calling, connections, bodies, negotiation.

pub mod accept;
pub mod activity;
pub mod answer;
pub mod auth;
pub mod body;
pub mod compress;
pub mod deadline;
pub mod health;
pub mod kubeconfig;
pub mod labels;
pub mod listen;
pub mod metrics;
pub mod pki;
pub mod query;
pub mod style;
pub mod verifier;
