//! Answers about keys.

use client::{
    mvccpb::KeyValue,
    pb::{
        DeleteRangeResponse, IncrementResponse, PutResponse, RangeResponse, ResponseOp, TxnResponse,
        response_op::Response,
    },
};

use super::{Object, Out, Show, Style, encode, fields, json, writeln};
use crate::text;

/// A key and its value on a line each, byte for byte.
pub(super) fn simple_kv(out: &mut Out, style: Style, kv: &KeyValue) {
    let mut line = |bytes: &[u8]| {
        if style.hex {
            return writeln(out, &text::hex(bytes));
        }
        out.extend_from_slice(bytes);
        out.push(b'\n');
    };
    if !style.value_only {
        line(&kv.key);
    }
    line(&kv.value);
}

impl Show for RangeResponse {
    fn simple(&self, style: Style, out: &mut Out) {
        self.kvs.iter().for_each(|kv| simple_kv(out, style, kv));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        self.kvs.iter().for_each(|kv| fields::kv(out, style, "", kv));
        fields::line(out, "More", self.more);
        fields::line(out, "Count", self.count);
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let object = Object::new().header(&self.header).list("kvs", self.kvs.iter().map(json::kv));
        object.boolean("more", self.more).int("count", self.count).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

impl Show for PutResponse {
    fn simple(&self, style: Style, out: &mut Out) {
        writeln(out, "OK");
        self.prev_kv.iter().for_each(|kv| simple_kv(out, style, kv));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        self.prev_kv.iter().for_each(|kv| fields::kv(out, style, "Prev", kv));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.header).optional("prev_kv", self.prev_kv.as_ref().map(json::kv)).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

impl Show for DeleteRangeResponse {
    fn simple(&self, style: Style, out: &mut Out) {
        writeln(out, &self.deleted.to_string());
        self.prev_kvs.iter().for_each(|kv| simple_kv(out, style, kv));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        fields::line(out, "Deleted", self.deleted);
        self.prev_kvs.iter().for_each(|kv| fields::kv(out, style, "Prev", kv));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let object = Object::new().header(&self.header).int("deleted", self.deleted);
        object.list("prev_kvs", self.prev_kvs.iter().map(json::kv)).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

impl Show for IncrementResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &self.value.to_string());
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        fields::line(out, "Value", self.value);
        fields::line(out, "Created", self.created);
        Some(())
    }

    /// The value is there also if it is zero: it is the answer.
    fn json(&self, _: Style) -> String {
        let object = Object::new().header(&self.header).always("value", self.value.to_string());
        object.boolean("created", self.created).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

impl Show for TxnResponse {
    fn simple(&self, style: Style, out: &mut Out) {
        writeln(out, if self.succeeded { "SUCCESS" } else { "FAILURE" });
        for op in &self.responses {
            writeln(out, "");
            match &op.response {
                Some(Response::ResponseRange(range)) => range.simple(style, out),
                Some(Response::ResponsePut(put)) => put.simple(style, out),
                Some(Response::ResponseDeleteRange(delete)) => delete.simple(style, out),
                other => writeln(out, &format!("unexpected response {other:?}")),
            }
        }
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        fields::line(out, "Succeeded", self.succeeded);
        for op in &self.responses {
            match &op.response {
                Some(Response::ResponseRange(range)) => range.fields(style, out)?,
                Some(Response::ResponsePut(put)) => put.fields(style, out)?,
                Some(Response::ResponseDeleteRange(delete)) => delete.fields(style, out)?,
                other => fields::quoted(out, "Unknown", format!("{other:?}").as_bytes()),
            }
        }
        Some(())
    }

    fn json(&self, style: Style) -> String {
        let object = Object::new().header(&self.header).boolean("succeeded", self.succeeded);
        object.list("responses", self.responses.iter().map(|op| op_json(op, style))).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

fn op_json(op: &ResponseOp, style: Style) -> String {
    let (name, answer) = match &op.response {
        Some(Response::ResponseRange(range)) => ("response_range", range.json(style)),
        Some(Response::ResponsePut(put)) => ("response_put", put.json(style)),
        Some(Response::ResponseDeleteRange(delete)) => ("response_delete_range", delete.json(style)),
        Some(Response::ResponseTxn(txn)) => ("response_txn", txn.json(style)),
        None => return r#"{"Response":{}}"#.to_owned(),
    };
    Object::new().always("Response", Object::new().always(name, answer).end()).end()
}
