//! A Kubernetes-style API for custom resources on any etcd v3 API.

mod decode;
mod field;
mod jsonpath;
mod name;
mod object;
mod patch;
mod resource;
mod route;
mod schema;
mod selector;
mod serve;
mod status;
mod store;
mod table;
