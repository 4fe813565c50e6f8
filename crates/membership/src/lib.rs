//! Members, cluster version and ids: pure state and decisions.

pub mod features;
