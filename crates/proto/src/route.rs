//! HTTP paths of the methods, from their `google.api.http` options.

use std::sync::OnceLock;

use prost_reflect::{DynamicMessage, MethodDescriptor, ReflectMessage, Value};

use crate::schema::pool;

/// One path of the JSON gateway. All are called by POST with the request as body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRoute {
    /// Such as `/v3/kv/put`.
    pub path: String,
    /// Full name of the service, such as `etcdserverpb.KV`.
    pub service: String,
    pub method: String,
    /// Full names of the messages.
    pub input: String,
    pub output: String,
    pub client_streaming: bool,
    pub server_streaming: bool,
}

impl HttpRoute {
    /// The path of the gRPC method, such as `/etcdserverpb.KV/Put`.
    pub fn grpc_path(&self) -> String {
        format!("/{}/{}", self.service, self.method)
    }
}

/// Every path of every method that has one, additional bindings included.
pub fn http_routes() -> &'static [HttpRoute] {
    static ROUTES: OnceLock<Vec<HttpRoute>> = OnceLock::new();
    ROUTES.get_or_init(|| pool().services().flat_map(|s| s.methods().collect::<Vec<_>>()).flat_map(routes_of).collect())
}

fn routes_of(method: MethodDescriptor) -> Vec<HttpRoute> {
    let Some(extension) = pool().get_extension_by_name("google.api.http") else { return Vec::new() };
    let options = method.options();
    let rule = options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned());
    let Some(Value::Message(rule)) = rule else { return Vec::new() };
    paths(&rule).into_iter().map(|path| route(&method, path)).collect()
}

fn route(method: &MethodDescriptor, path: String) -> HttpRoute {
    HttpRoute {
        path,
        service: method.parent_service().full_name().to_owned(),
        method: method.name().to_owned(),
        input: method.input().full_name().to_owned(),
        output: method.output().full_name().to_owned(),
        client_streaming: method.is_client_streaming(),
        server_streaming: method.is_server_streaming(),
    }
}

/// The path of a rule, then those of its additional bindings.
fn paths(rule: &DynamicMessage) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(Value::String(path)) = rule.get_field_by_name("post").as_deref() {
        out.push(path.clone());
    }
    if let Some(Value::List(more)) = rule.get_field_by_name("additional_bindings").as_deref() {
        out.extend(more.iter().filter_map(Value::as_message).flat_map(paths));
    }
    debug_assert!(!out.is_empty(), "{} has a rule without a POST path", rule.descriptor().full_name());
    out
}
