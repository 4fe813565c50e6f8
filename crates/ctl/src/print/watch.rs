//! Events of a watch.

use client::{
    mvccpb::{Event, event::EventType},
    pb::WatchResponse,
};

use super::{Object, Out, Show, Style, encode, fields, json, kv::simple_kv, writeln};

pub(super) fn event_type(event: &Event) -> &'static str {
    event.r#type().as_str_name()
}

impl Show for WatchResponse {
    fn simple(&self, style: Style, out: &mut Out) {
        for event in &self.events {
            writeln(out, event_type(event));
            event.prev_kv.iter().chain(&event.kv).for_each(|kv| simple_kv(out, style, kv));
        }
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        for event in &self.events {
            fields::line(out, "Type", event_type(event));
            event.prev_kv.iter().for_each(|kv| fields::kv(out, style, "Prev", kv));
            event.kv.iter().for_each(|kv| fields::kv(out, style, "", kv));
        }
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let header = self.header.as_ref().map_or("null".to_owned(), json::header_object);
        Object::new()
            .always("Header", header)
            .always("Events", json::list_or_null(self.events.iter().map(event_json)))
            .always("CompactRevision", self.compact_revision.to_string())
            .always("Canceled", self.canceled.to_string())
            .always("Created", self.created.to_string())
            .always("CancelReason", crate::text::json(&self.cancel_reason))
            .end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        // Without the stream's own bookkeeping.
        encode(&WatchResponse {
            header: self.header,
            events: self.events.clone(),
            compact_revision: self.compact_revision,
            canceled: self.canceled,
            created: self.created,
            ..Default::default()
        })
    }
}

fn event_json(event: &Event) -> String {
    let kind = if event.r#type() == EventType::Delete { 1 } else { 0 };
    Object::new()
        .int("type", kind)
        .optional("kv", event.kv.as_ref().map(json::kv))
        .optional("prev_kv", event.prev_kv.as_ref().map(json::kv))
        .end()
}
