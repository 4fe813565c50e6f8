//! The version that an entry needs, asked of any bytes: it reads the log of others.

use fuzz::damage;
use prost::Message;
use proto::{
    etcdserverpb::{InternalRaftRequest, PutRequest, RequestHeader, RequestOp, TxnRequest, request_op::Request},
    min_version_named, min_version_of_entry, min_version_of_request, pool, raftpb,
};

fn exercise(bytes: &[u8]) {
    let _ = min_version_of_request(bytes);
    for kind in 0..4 {
        let data = Some(bytes.to_vec().into());
        let _ = min_version_of_entry(&raftpb::Entry { r#type: Some(kind), data, ..Default::default() });
    }
}

#[test]
fn request_of_any_bytes() {
    bolero::check!().with_iterations(8000).for_each(|input: &[u8]| exercise(input));
}

#[test]
fn every_message_of_any_bytes() {
    bolero::check!().with_iterations(500).with_max_len(256).for_each(|input: &[u8]| {
        for message in pool().all_messages() {
            let _ = min_version_named(message.full_name(), input);
        }
    });
}

/// Whatever this version can decode it can also judge.
#[test]
fn damaged_request() {
    let put = PutRequest { key: b"key".to_vec().into(), value: vec![7; 40].into(), lease: 5, ..Default::default() };
    let op = RequestOp { request: Some(Request::RequestPut(put.clone())) };
    let mut txn = TxnRequest { success: vec![op.clone(), op], ..Default::default() };
    for _ in 0..6 {
        let inner = RequestOp { request: Some(Request::RequestTxn(txn.clone())) };
        txn = TxnRequest { success: vec![inner], ..Default::default() };
    }
    let header = Some(RequestHeader { id: 1 << 60, username: "root".into(), auth_revision: 3, ..Default::default() });
    let request = InternalRaftRequest { header, txn: Some(txn), put: Some(put), ..Default::default() };
    let seed = request.encode_to_vec();
    bolero::check!().with_iterations(8000).with_max_len(48).for_each(|input: &[u8]| {
        let bytes = damage(&seed, input);
        exercise(&bytes);
        if InternalRaftRequest::decode(bytes.as_slice()).is_ok() {
            let judged = min_version_of_request(&bytes);
            assert!(judged.is_ok(), "{judged:?}");
        }
    });
}
