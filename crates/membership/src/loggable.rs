//! What may be written to the log: nothing that a member of the cluster could not apply.
//!
//! Proposer, leader (for forwarded proposals too) and apply ask [`may_log`] or its two halves. The answer comes from
//! the annotations in the .proto files and the cluster version. Two things besides: fields this binary does not
//! know count as newer than any version, and requests that stop a member (see [`crate::harm_of_request`]) never pass.
//!
//! Apply asks with the cluster version as of the entry. An entry that is refused there with [`Reason::Newer`] is skipped
//! alike on every member. One with [`Reason::Unknown`] was written by a leader with a newer binary or a real etcd
//! that keeps fields it does not know: below 3.8 it is applied as etcd applies it, without the unknown part; from 3.8
//! on the member must stop.

use bytes::{Buf, Bytes};
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, skip_field},
};
use proto::{
    MinVersion, Version,
    etcdserverpb::{
        Compare, InternalRaftRequest, RangeRequest, RequestOp, TxnRequest, compare, range_request, request_op::Request,
    },
    min_version_of_request, newest_version_named,
    raftpb::{ConfChange, Entry, EntryType},
};
use std::sync::OnceLock;

use crate::{BadChange, Change, Harm, harm::harm_of_request, harms_etcd};

/// What may be logged before any cluster version is decided, or under the fallback 3.0: 3.5 is the oldest release whose
/// files and peers this binary knows, and it understands the entries that bring up a cluster (attributes, version).
pub const LOG_VERSION_MIN: Version = Version::new(3, 5);

/// From this version on every member is ours.
const OURS_ALONE: Version = Version::new(3, 8);

/// An entry that may not be logged at the cluster version `have`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log may not hold this entry at cluster version {have}: {reason}")]
pub struct NotYet {
    /// The cluster version, or [`LOG_VERSION_MIN`] where that is higher.
    pub have: Version,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{what} needs {needs}")]
    Newer { needs: Version, what: &'static str },
    #[error("this binary does not know {path}")]
    Unknown { path: String },
    #[error("it cannot be read: {0}")]
    Malformed(String),
    #[error("{0}")]
    Harm(#[from] Harm),
    #[error("{0}")]
    BadChange(#[from] BadChange),
}

/// Whether the log may hold this entry. An empty one always may: each leader begins its term with it.
pub fn may_log(entry: &Entry, cluster_version: Option<Version>) -> Result<(), NotYet> {
    let have = effective(cluster_version);
    let refuse = |reason| Err(NotYet { have, reason });
    let number = entry.r#type.unwrap_or_default();
    match EntryType::try_from(number) {
        Ok(EntryType::EntryNormal) => entry.data.as_ref().map_or(Ok(()), |data| may_log_data(data, cluster_version)),
        Ok(EntryType::EntryConfChange) => match ConfChange::decode(entry.data.clone().unwrap_or_default()) {
            Err(error) => refuse(Reason::Malformed(error.to_string())),
            Ok(change) => Change::decode_proposed(&change).map(drop).or_else(|bad| refuse(bad.into())),
        },
        // etcd panics on these at every version, and nothing of ours makes them.
        Ok(EntryType::EntryConfChangeV2) => {
            refuse(Reason::Unknown { path: "the use of joint configuration changes".into() })
        }
        Err(_) => refuse(Reason::Unknown { path: format!("raftpb.Entry.Type={number}") }),
    }
}

/// [`may_log`] for the data of a normal entry, an encoded `InternalRaftRequest`.
pub fn may_log_data(data: &Bytes, cluster_version: Option<Version>) -> Result<(), NotYet> {
    if data.is_empty() {
        return Ok(());
    }
    let have = effective(cluster_version);
    let refuse = |reason| Err(NotYet { have, reason });
    match min_version_of_request(data) {
        Err(error) => refuse(Reason::Malformed(with_sources(&error))),
        Ok(MinVersion::Newer { path }) if !is_enum_value(&path) => refuse(Reason::Unknown { path }),
        Ok(MinVersion::Known(needs)) if needs > have => refuse(Reason::Newer { needs, what: kind_of_data(data) }),
        Ok(MinVersion::Known(_)) if is_plain(data) => Ok(()),
        Ok(MinVersion::Known(_) | MinVersion::Newer { .. }) => match InternalRaftRequest::decode(data.clone()) {
            Err(error) => refuse(Reason::Malformed(error.to_string())),
            Ok(request) => check_harm(harm_of_request(&request), have),
        },
    }
}

/// [`may_log`] for a request that is still decoded, as the proposer has it. A plain put or transaction is judged
/// without encoding it.
pub fn may_log_request(request: &InternalRaftRequest, cluster_version: Option<Version>) -> Result<(), NotYet> {
    let have = effective(cluster_version);
    let bounds = bounds();
    // What a header requires is newer than the rest of it, and rare.
    let requires = request.header.as_ref().is_some_and(|header| !header.required_features.is_empty());
    match Shape::of(request) {
        _ if requires && have < bounds.requirement => {
            may_log_data(&Bytes::from(request.encode_to_vec()), cluster_version)
        }
        Shape::Write if have >= bounds.write => Ok(()),
        // Also where all are ours: an empty operation stops any member.
        Shape::Txn(txn) if have >= bounds.txn && knows_values(txn) => check_harm(harms_etcd(txn), have),
        _ => may_log_data(&Bytes::from(request.encode_to_vec()), cluster_version),
    }
}

/// Numbers that no enum has are taken from clients by every etcd, and mean the same to all of them: what falls through.
/// They are written `field=number`.
fn is_enum_value(path: &str) -> bool {
    path.contains('=')
}

fn effective(cluster_version: Option<Version>) -> Version {
    cluster_version.map_or(LOG_VERSION_MIN, |version| version.max(LOG_VERSION_MIN))
}

fn check_harm(harm: Option<Harm>, have: Version) -> Result<(), NotYet> {
    match harm {
        Some(harm) if !harm.is_foreign() || have < OURS_ALONE => Err(NotYet { have, reason: harm.into() }),
        _ => Ok(()),
    }
}

/// What a request can need at most, by the shapes that are told apart. A header that requires no feature is as old as
/// the oldest of them.
struct Bounds {
    write: Version,
    txn: Version,
    requirement: Version,
}

fn bounds() -> &'static Bounds {
    static BOUNDS: OnceLock<Bounds> = OnceLock::new();
    BOUNDS.get_or_init(|| {
        // A message that is not found would be a mistake in the names here; then no version is enough.
        let newest = |names: &[&str]| {
            let all = names.iter().map(|name| newest_version_named(name).unwrap_or(Version::new(u16::MAX, 0)));
            all.max().unwrap_or(LOG_VERSION_MIN)
        };
        Bounds {
            write: newest(&[
                "etcdserverpb.PutRequest",
                "etcdserverpb.DeleteRangeRequest",
                "etcdserverpb.LeaseRevokeRequest",
                "etcdserverpb.LeaseGrantRequest",
            ]),
            txn: newest(&["etcdserverpb.TxnRequest"]),
            requirement: newest(&["etcdserverpb.RequestHeader"]),
        }
    })
}

enum Shape<'a> {
    /// One of the frequent writes, which hold no enums and can do no harm, and nothing else.
    Write,
    /// A transaction and nothing else.
    Txn(&'a TxnRequest),
    Other,
}

impl Shape<'_> {
    // Every field is named, so that a new one is thought of here.
    fn of(request: &InternalRaftRequest) -> Shape<'_> {
        let InternalRaftRequest {
            header,
            id,
            put,
            delete_range,
            lease_grant,
            lease_revoke,
            txn,
            range: None,
            compaction: None,
            alarm: None,
            lease_checkpoint: None,
            auth_enable: None,
            auth_disable: None,
            auth_status: None,
            authenticate: None,
            auth_user_add: None,
            auth_user_delete: None,
            auth_user_get: None,
            auth_user_change_password: None,
            auth_user_grant_role: None,
            auth_user_revoke_role: None,
            auth_user_list: None,
            auth_role_list: None,
            auth_role_add: None,
            auth_role_delete: None,
            auth_role_get: None,
            auth_role_grant_permission: None,
            auth_role_revoke_permission: None,
            cluster_version_set: None,
            cluster_member_attr_set: None,
            downgrade_info_set: None,
            downgrade_version_test: None,
            increment: None,
        } = request
        else {
            return Shape::Other;
        };
        let has_id = *id != 0 || header.is_some();
        let writes = put.is_some() || delete_range.is_some() || lease_grant.is_some() || lease_revoke.is_some();
        match (has_id, writes, txn) {
            (true, true, None) => Shape::Write,
            (true, false, Some(txn)) => Shape::Txn(txn),
            _ => Shape::Other,
        }
    }
}

/// Whether all enum values in the transaction are known; fields that are not were dropped when it was decoded.
fn knows_values(txn: &TxnRequest) -> bool {
    let compares = |c: &Compare| {
        compare::CompareResult::try_from(c.result).is_ok() && compare::CompareTarget::try_from(c.target).is_ok()
    };
    let ranges = |r: &RangeRequest| {
        range_request::SortOrder::try_from(r.sort_order).is_ok()
            && range_request::SortTarget::try_from(r.sort_target).is_ok()
    };
    let op = |op: &RequestOp| match &op.request {
        Some(Request::RequestRange(range)) => ranges(range),
        Some(Request::RequestTxn(txn)) => knows_values(txn),
        _ => true,
    };
    txn.compare.iter().all(compares) && txn.success.iter().all(op) && txn.failure.iter().all(op)
}

const ID: u32 = 1;
const HEADER: u32 = 100;

/// Whether the encoded request is one of those that can do no harm, without decoding it. The bytes are known to be
/// well-formed.
fn is_plain(data: &Bytes) -> bool {
    let (mut named, mut asks) = (false, false);
    for (number, value) in fields(data) {
        match number {
            // An id of zero counts as none.
            ID => named |= value != Some(0),
            HEADER => named = true,
            // put, delete_range, compaction, lease_grant, lease_revoke
            4 | 5 | 7 | 8 | 9 => asks = true,
            _ => return false,
        }
    }
    named && asks
}

/// The number of each field of an encoded message, with its value if that is a varint.
fn fields(mut data: &[u8]) -> impl Iterator<Item = (u32, Option<u64>)> {
    std::iter::from_fn(move || {
        let (number, wire) = data.has_remaining().then(|| decode_key(&mut data).ok()).flatten()?;
        if wire == WireType::Varint {
            let value = prost::encoding::decode_varint(&mut data).ok()?;
            return Some((number, Some(value)));
        }
        skip_field(wire, number, &mut data, DecodeContext::default()).ok()?;
        Some((number, None))
    })
}

/// Which request an encoded `InternalRaftRequest` carries, for messages.
fn kind_of_data(data: &Bytes) -> &'static str {
    let number = fields(data).map(|(number, _)| number).find(|number| *number != ID && *number != HEADER);
    match number {
        Some(3) => "range",
        Some(4) => "put",
        Some(5) => "delete_range",
        Some(6) => "txn",
        Some(7) => "compaction",
        Some(8) => "lease_grant",
        Some(9) => "lease_revoke",
        Some(10) => "alarm",
        Some(11) => "lease_checkpoint",
        Some(1000..=1204) => "an authentication request",
        Some(1300) => "cluster_version_set",
        Some(1301) => "cluster_member_attr_set",
        Some(1302) => "downgrade_info_set",
        Some(9900) => "downgrade_version_test",
        Some(20001) => "increment",
        _ => "the request",
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
