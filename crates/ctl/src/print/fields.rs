//! Lines of `"Name" : value`.

use std::fmt::Display;

use client::{mvccpb::KeyValue, pb::ResponseHeader};

use super::{Out, Style, writeln};
use cli::quote;

pub(super) fn line(out: &mut Out, name: &str, value: impl Display) {
    writeln(out, &format!("\"{name}\" : {value}"));
}

pub(super) fn quoted(out: &mut Out, name: &str, value: &[u8]) {
    line(out, name, quote(value));
}

/// A member or cluster id.
pub(super) fn id(out: &mut Out, style: Style, name: &str, id: u64) {
    if style.hex { line(out, name, format_args!("{id:x}")) } else { line(out, name, id) }
}

pub(super) fn lease(out: &mut Out, style: Style, name: &str, id: i64) {
    if style.hex { line(out, name, format_args!("{id:016x}")) } else { line(out, name, id) }
}

pub(super) fn header(out: &mut Out, style: Style, header: &Option<ResponseHeader>) {
    let header = header.unwrap_or_default();
    id(out, style, "ClusterID", header.cluster_id);
    id(out, style, "MemberID", header.member_id);
    // Answers that are not about keys carry no revision.
    if header.revision > 0 {
        line(out, "Revision", header.revision);
    }
    line(out, "RaftTerm", header.raft_term);
}

pub(super) fn kv(out: &mut Out, style: Style, prefix: &str, kv: &KeyValue) {
    quoted(out, &format!("{prefix}Key"), &kv.key);
    line(out, &format!("{prefix}CreateRevision"), kv.create_revision);
    line(out, &format!("{prefix}ModRevision"), kv.mod_revision);
    line(out, &format!("{prefix}Version"), kv.version);
    quoted(out, &format!("{prefix}Value"), &kv.value);
    lease(out, style, &format!("{prefix}Lease"), kv.lease);
}
