//! JSON as Go's encoder writes etcd's structs: fields in order, zero values left out where the struct says so.

use base64::{Engine, prelude::BASE64_STANDARD};
use client::{mvccpb::KeyValue, pb::ResponseHeader};

use crate::text;

/// A JSON object under construction. Methods named after a type leave out its zero value; `always` does not.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Object {
        Object("{".to_owned())
    }

    /// A value that is JSON already.
    pub(crate) fn always(mut self, name: &str, json: impl AsRef<str>) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&text::json(name));
        self.0.push(':');
        self.0.push_str(json.as_ref());
        self
    }

    pub(crate) fn optional(self, name: &str, json: Option<String>) -> Self {
        match json {
            Some(json) => self.always(name, json),
            None => self,
        }
    }

    pub(crate) fn int(self, name: &str, value: i64) -> Self {
        self.optional(name, (value != 0).then(|| value.to_string()))
    }

    pub(crate) fn uint(self, name: &str, value: u64) -> Self {
        self.optional(name, (value != 0).then(|| value.to_string()))
    }

    pub(crate) fn boolean(self, name: &str, value: bool) -> Self {
        self.optional(name, value.then(|| "true".to_owned()))
    }

    pub(crate) fn string(self, name: &str, value: &str) -> Self {
        self.optional(name, (!value.is_empty()).then(|| text::json(value)))
    }

    pub(crate) fn bytes(self, name: &str, value: &[u8]) -> Self {
        self.optional(name, (!value.is_empty()).then(|| bytes(value)))
    }

    pub(crate) fn list(self, name: &str, items: impl IntoIterator<Item = String>) -> Self {
        let items: Vec<String> = items.into_iter().collect();
        self.optional(name, (!items.is_empty()).then(|| list(items)))
    }

    pub(crate) fn strings(self, name: &str, items: &[String]) -> Self {
        self.list(name, items.iter().map(|item| text::json(item)))
    }

    pub(crate) fn header(self, header: &Option<ResponseHeader>) -> Self {
        self.optional("header", header.as_ref().map(header_object))
    }

    /// The header's fields in the object itself.
    pub(crate) fn header_inline(self, header: &Option<ResponseHeader>) -> Self {
        match header {
            Some(header) => self.header_fields(header),
            None => self,
        }
    }

    fn header_fields(self, header: &ResponseHeader) -> Self {
        self.uint("cluster_id", header.cluster_id)
            .uint("member_id", header.member_id)
            .int("revision", header.revision)
            .uint("raft_term", header.raft_term)
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// Go writes a list that was never made as `null`.
pub(super) fn list_or_null(items: impl IntoIterator<Item = String>) -> String {
    match list(items) {
        empty if empty == "[]" => "null".to_owned(),
        list => list,
    }
}

pub(super) fn bytes(bytes: &[u8]) -> String {
    format!("\"{}\"", BASE64_STANDARD.encode(bytes))
}

pub(super) fn header_object(header: &ResponseHeader) -> String {
    Object::new().header_fields(header).end()
}

pub(super) fn kv(kv: &KeyValue) -> String {
    Object::new()
        .bytes("key", &kv.key)
        .int("create_revision", kv.create_revision)
        .int("mod_revision", kv.mod_revision)
        .int("version", kv.version)
        .bytes("value", &kv.value)
        .int("lease", kv.lease)
        .end()
}
