//! A Rust client for the etcd v3 API.
