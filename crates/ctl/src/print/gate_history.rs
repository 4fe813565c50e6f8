//! Changes of the cluster's feature gate, and why they came, in words.

use std::collections::BTreeMap;

use cli::Table;
use client::{
    membershippb::{FeatureGateCause, FeatureGateChange},
    pb::FeatureGateHistoryResponse,
};

use super::{Object, Out, Show, Style, encode, fields, writeln};
use crate::text;

#[derive(Default)]
pub(crate) struct GateChanges {
    pub changes: Vec<FeatureGateChange>,
    /// Of the members that are there now.
    pub names: BTreeMap<u64, String>,
    /// Where to go on if the stream breaks off.
    pub from: u64,
}

impl GateChanges {
    fn member(&self, id: u64) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| format!("{id:x}"))
    }

    fn cause(&self, change: &FeatureGateChange) -> String {
        let member = || self.member(change.member_id);
        let version = change.version.strip_suffix(".0").unwrap_or(&change.version);
        match FeatureGateCause::try_from(change.cause) {
            Ok(FeatureGateCause::Agreed) => "every voting member proposes on".to_owned(),
            Ok(FeatureGateCause::Proposal) => format!("member {} no longer proposes on", member()),
            Ok(FeatureGateCause::VoterAdded) => format!("member {} was added and had not proposed", member()),
            Ok(FeatureGateCause::VoterPromoted) => format!("member {} was promoted to a voter", member()),
            Ok(FeatureGateCause::Version) => format!("the cluster version became {version}"),
            Ok(FeatureGateCause::Unknown) | Err(_) => format!("cause {}, unknown to this program", change.cause),
        }
    }
}

fn missing(from: &[String], other: &[String]) -> Vec<String> {
    from.iter().filter(|name| !other.contains(name)).cloned().collect()
}

fn came_on(change: &FeatureGateChange) -> Vec<String> {
    missing(&change.after, &change.before)
}

fn went_off(change: &FeatureGateChange) -> Vec<String> {
    missing(&change.before, &change.after)
}

/// `A, B on; C off`.
fn switched(change: &FeatureGateChange) -> String {
    let parts = [(came_on(change), "on"), (went_off(change), "off")];
    let parts = parts.into_iter().filter(|(names, _)| !names.is_empty());
    parts.map(|(names, word)| format!("{} {word}", names.join(", "))).collect::<Vec<_>>().join("; ")
}

fn cause_name(change: &FeatureGateChange) -> String {
    let known = FeatureGateCause::try_from(change.cause);
    known.map_or_else(|_| change.cause.to_string(), |cause| cause.as_str_name().to_owned())
}

impl Show for GateChanges {
    fn simple(&self, _: Style, out: &mut Out) {
        for change in &self.changes {
            writeln(out, &format!("{}: {}: {}", change.index, switched(change), self.cause(change)));
        }
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        for change in &self.changes {
            fields::line(out, "Index", change.index);
            fields::quoted(out, "Cause", cause_name(change).as_bytes());
            fields::id(out, style, "MemberID", change.member_id);
            fields::quoted(out, "MemberName", self.names.get(&change.member_id).map_or("", String::as_str).as_bytes());
            fields::quoted(out, "ClusterVersion", change.version.as_bytes());
            came_on(change).iter().for_each(|name| fields::quoted(out, "On", name.as_bytes()));
            went_off(change).iter().for_each(|name| fields::quoted(out, "Off", name.as_bytes()));
            writeln(out, "");
        }
        Some(())
    }

    /// One object a line and change, so that a stream can be read as it comes.
    fn json(&self, _: Style) -> String {
        let line = |change: &FeatureGateChange| {
            Object::new()
                .uint("index", change.index)
                .always("cause", text::json(&cause_name(change)))
                .uint("member_ID", change.member_id)
                .string("member_name", self.names.get(&change.member_id).map_or("", String::as_str))
                .string("version", &change.version)
                .strings("before", &change.before)
                .strings("after", &change.after)
                .end()
        };
        self.changes.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// As one answer. Those of a stream that is followed can be joined: that is how messages merge.
    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(&FeatureGateHistoryResponse { header: None, changes: self.changes.clone() })
    }

    fn table(&self) -> Option<Table> {
        let row = |change: &FeatureGateChange| {
            let (on, off) = (came_on(change).join(", "), went_off(change).join(", "));
            vec![change.index.to_string(), on, off, self.cause(change)]
        };
        Some(Table { header: vec!["index", "on", "off", "cause"], rows: self.changes.iter().map(row).collect() })
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn change(cause: FeatureGateCause, member_id: u64, before: &[&str], after: &[&str]) -> FeatureGateChange {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let (before, after) = (names(before), names(after));
        FeatureGateChange { index: 7, cause: cause.into(), member_id, version: "3.8.0".to_owned(), before, after }
    }

    #[test_case(&change(FeatureGateCause::Agreed, 0, &[], &["A", "B"]) => "7: A, B on: every voting member proposes on\n")]
    #[test_case(&change(FeatureGateCause::Proposal, 1, &["A", "B"], &["B"]) => "7: A off: member a no longer proposes on\n")]
    #[test_case(&change(FeatureGateCause::VoterAdded, 0xc4, &["A"], &[]) => "7: A off: member c4 was added and had not proposed\n")]
    #[test_case(&change(FeatureGateCause::VoterPromoted, 1, &["A"], &["B"]) => "7: B on; A off: member a was promoted to a voter\n")]
    #[test_case(&change(FeatureGateCause::Version, 0, &["A"], &[]) => "7: A off: the cluster version became 3.8\n")]
    fn lines(change: &FeatureGateChange) -> String {
        let changes = vec![change.clone()];
        let shown = GateChanges { changes, names: [(1, "a".to_owned())].into(), from: 0 };
        let mut out = Vec::new();
        shown.simple(Style { format: super::super::Format::Simple, hex: false, value_only: false }, &mut out);
        String::from_utf8(out).unwrap()
    }
}
