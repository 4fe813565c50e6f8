//! Every key and value of a file in readable form, for tools.

use std::ops::ControlFlow;

use prost::Message;
use proto::{
    authpb,
    etcdserverpb::AlarmType,
    membershippb::{FeatureGateChange, FeatureGateProposalRecord, FeatureGateRecord},
    mvccpb,
};

use super::{
    Bucket, DecodeError, MemberRecord, RevisionKey, alarm, auth, cluster, error::printable, error::u64_of, gate, lease,
    meta, table,
};
use crate::Read;

/// One key of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub bucket: Bucket,
    pub key: String,
    pub value: String,
    /// Whether [`table::ROWS`] has a row for it.
    pub known: bool,
}

/// Visits every key of a bucket; one that does not decode is handed over as the error.
pub fn bucket(read: &impl Read, bucket: Bucket, f: &mut dyn FnMut(Result<Line, DecodeError>) -> ControlFlow<()>) {
    read.scan(bucket, b"", b"", &mut |k, v| f(line(bucket, k, v)));
}

/// One key and value in readable form.
pub fn line(bucket: Bucket, key: &[u8], value: &[u8]) -> Result<Line, DecodeError> {
    let known = table::row_of(bucket, key).is_some();
    let readable = if known { decode(bucket, key, value)? } else { (printable(key), printable(value)) };
    Ok(Line { bucket, key: readable.0, value: readable.1, known })
}

/// The name of a kind of alarms, or its number if no release has given it a name.
fn alarm_kind(number: i32) -> String {
    AlarmType::try_from(number).map_or_else(|_| number.to_string(), |kind| format!("{kind:?}"))
}

fn decode(bucket: Bucket, key: &[u8], value: &[u8]) -> Result<(String, String), DecodeError> {
    let name = || String::from_utf8_lossy(key).into_owned();
    let text = |v: &[u8]| String::from_utf8_lossy(v).into_owned();
    Ok(match bucket {
        Bucket::Alarm => {
            let a = alarm::decode(key)?;
            (format!("member {:x}", a.member_id), alarm_kind(a.alarm))
        }
        Bucket::Key => return change(key, value),
        Bucket::Lease => {
            let l = lease::decode(key, value)?;
            (format!("{:016x}", l.id), format!("ttl {} s, remaining {} s", l.ttl, l.remaining_ttl))
        }
        Bucket::Members => {
            MemberRecord::from_json(value).map_err(|e| DecodeError::new(bucket, key, "a member as JSON", e))?;
            (name(), text(value))
        }
        Bucket::AuthUsers => {
            let u: authpb::User = auth::decode(bucket, key, value)?;
            (name(), format!("roles {:?}", u.roles))
        }
        Bucket::AuthRoles => {
            let r: authpb::Role = auth::decode(bucket, key, value)?;
            (name(), format!("{} permissions", r.key_permission.len()))
        }
        Bucket::MembersRemoved | Bucket::Cluster | Bucket::Auth | Bucket::Meta => (name(), field(bucket, key, value)?),
    })
}

/// A key with a name of its own.
fn field(bucket: Bucket, key: &[u8], value: &[u8]) -> Result<String, DecodeError> {
    match key {
        meta::CONSISTENT_INDEX | meta::TERM | auth::REVISION => Ok(u64_of(bucket, key, value)?.to_string()),
        meta::SCHEDULED_COMPACT_REV | meta::FINISHED_COMPACT_REV => RevisionKey::decode(value)
            .map(|r| r.main.to_string())
            .ok_or_else(|| DecodeError::value(bucket, key, "a revision of 17 bytes", value)),
        meta::STORAGE_VERSION | cluster::CLUSTER_VERSION => {
            super::version::decode(bucket, key, value).map(super::Version::stored)
        }
        auth::ENABLED => Ok((value == [1]).to_string()),
        _ if bucket == Bucket::Cluster && key.starts_with(gate::GATE) => gate_record(key, value),
        _ => Ok(String::from_utf8_lossy(value).into_owned()),
    }
}

fn gate_record(key: &[u8], value: &[u8]) -> Result<String, DecodeError> {
    let list = |names: &[String]| if names.is_empty() { "nothing".into() } else { names.join(", ") };
    if key.starts_with(gate::PROPOSAL) {
        let record: FeatureGateProposalRecord = gate::decode(key, value)?;
        let values: Vec<_> = record.features.iter().map(|f| format!("{}={}", f.name, f.enabled)).collect();
        return Ok(format!("{} (for {}, index {})", list(&values), record.version, record.index));
    }
    if key.starts_with(gate::HISTORY) {
        let record: FeatureGateChange = gate::decode(key, value)?;
        let (before, after) = (list(&record.before), list(&record.after));
        return Ok(format!("from {before} to {after} ({:?}, at {})", record.cause(), record.version));
    }
    let record: FeatureGateRecord = gate::decode(key, value)?;
    let (index, relevant) = (record.index, record.relevant_index);
    Ok(format!("{} on (index {index}, relevant index {relevant})", list(&record.enabled)))
}

fn change(key: &[u8], value: &[u8]) -> Result<(String, String), DecodeError> {
    let bad = |e: String| DecodeError::new(Bucket::Key, key, "a change as mvccpb.KeyValue", e);
    let kv = mvccpb::KeyValue::decode(value).map_err(|e| bad(e.to_string()))?;
    let r = RevisionKey::decode(key).ok_or_else(|| bad("a key that is no revision".into()))?;
    let kind = if r.tombstone { "delete" } else { "put" };
    let shown = format!(
        "{kind} {} (create {}, mod {}, version {}, lease {:x}, {} bytes)",
        printable(&kv.key),
        kv.create_revision,
        kv.mod_revision,
        kv.version,
        kv.lease,
        kv.value.len()
    );
    Ok((format!("{}.{}", r.main, r.sub), shown))
}

#[cfg(test)]
mod tests {
    #[test]
    fn alarms_of_unknown_kinds_are_shown_by_number() {
        let alarm = proto::etcdserverpb::AlarmMember { member_id: 7, alarm: 9 };
        let shown = super::decode(super::Bucket::Alarm, &prost::Message::encode_to_vec(&alarm), b"").unwrap();
        assert_eq!(shown, ("member 7".to_owned(), "9".to_owned()));
    }
}
