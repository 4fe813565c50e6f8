//! Answers about leases. Their JSON has the header's fields beside its own, and their protobuf form is the header
//! alone, as etcdctl's users have it.

use client::pb::{
    LeaseGrantResponse, LeaseKeepAliveResponse, LeaseLeasesResponse, LeaseRevokeResponse, LeaseTimeToLiveResponse,
    ResponseHeader,
};

use super::{Object, Out, Show, Style, encode, fields, json, writeln};
use crate::text;

fn header_alone(header: &Option<ResponseHeader>) -> Option<Vec<u8>> {
    encode(&header.unwrap_or_default())
}

pub(crate) struct Granted(pub LeaseGrantResponse);

impl Show for Granted {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("lease {:016x} granted with TTL({}s)", self.0.id, self.0.ttl));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.0.header);
        fields::lease(out, style, "ID", self.0.id);
        fields::line(out, "TTL", self.0.ttl);
        Some(())
    }

    fn json(&self, _: Style) -> String {
        Object::new()
            .header_inline(&self.0.header)
            .always("ID", self.0.id.to_string())
            .always("TTL", self.0.ttl.to_string())
            .always("Error", text::json(&self.0.error))
            .end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        header_alone(&self.0.header)
    }
}

pub(crate) struct Revoked {
    pub id: i64,
    pub response: LeaseRevokeResponse,
}

impl Show for Revoked {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("lease {:016x} revoked", self.id));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.response.header);
        Some(())
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.response.header).end()
    }
}

impl Show for LeaseKeepAliveResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("lease {:016x} keepalived with TTL({})", self.id, self.ttl));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        fields::lease(out, style, "ID", self.id);
        fields::line(out, "TTL", self.ttl);
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let object = Object::new().header_inline(&self.header);
        object.always("ID", self.id.to_string()).always("TTL", self.ttl.to_string()).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        header_alone(&self.header)
    }
}

pub(crate) struct TimeToLive {
    pub response: LeaseTimeToLiveResponse,
    pub keys: bool,
}

impl Show for TimeToLive {
    fn simple(&self, _: Style, out: &mut Out) {
        let LeaseTimeToLiveResponse { id, ttl, granted_ttl, keys, .. } = &self.response;
        if *granted_ttl == 0 && *ttl == -1 {
            return writeln(out, &format!("lease {id:016x} already expired"));
        }
        out.extend_from_slice(
            format!("lease {id:016x} granted with TTL({granted_ttl}s), remaining({ttl}s)").as_bytes(),
        );
        if self.keys {
            out.extend_from_slice(b", attached keys([");
            out.extend_from_slice(&keys.join(&b' '));
            out.extend_from_slice(b"])");
        }
        out.push(b'\n');
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.response.header);
        fields::lease(out, style, "ID", self.response.id);
        fields::line(out, "TTL", self.response.ttl);
        fields::line(out, "GrantedTTL", self.response.granted_ttl);
        self.response.keys.iter().for_each(|key| fields::quoted(out, "Key", key));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        Object::new()
            .header_inline(&self.response.header)
            .always("id", self.response.id.to_string())
            .always("ttl", self.response.ttl.to_string())
            .always("granted-ttl", self.response.granted_ttl.to_string())
            .always("keys", json::list_or_null(self.response.keys.iter().map(|key| json::bytes(key))))
            .end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        header_alone(&self.response.header)
    }
}

impl Show for LeaseLeasesResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("found {} leases", self.leases.len()));
        self.leases.iter().for_each(|lease| writeln(out, &format!("{:016x}", lease.id)));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        self.leases.iter().for_each(|lease| fields::lease(out, style, "ID", lease.id));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let lease = |id: i64| Object::new().always("id", id.to_string()).end();
        let leases = json::list(self.leases.iter().map(|status| lease(status.id)));
        Object::new().header_inline(&self.header).always("leases", leases).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        header_alone(&self.header)
    }
}
