//! The way into the raft thread.

use std::sync::{Arc, mpsc::Sender};

use bytes::Bytes;
use prost::Message;
use proto::etcdserverpb::{InternalRaftRequest, RequestHeader};

use crate::{raft_loop::Input, request_id::RequestIds};

/// Sends inputs to the raft thread. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Proposer {
    pub inputs: Sender<Input>,
    pub ids: Arc<RequestIds>,
}

impl Proposer {
    /// If the raft thread has ended, whoever waits learns it from the closed wait.
    pub fn send(&self, input: Input) {
        let _ = self.inputs.send(input);
    }

    /// Gives a request its id and its bytes in the log.
    pub fn encode(&self, mut request: InternalRaftRequest) -> (u64, Bytes) {
        let id = self.ids.next();
        request.header = Some(RequestHeader { id, ..Default::default() });
        (id, request.encode_to_vec().into())
    }

    /// Proposes a request whose result nobody waits for.
    pub fn send_request(&self, request: InternalRaftRequest) {
        let (id, data) = self.encode(request);
        self.send(Input::Propose { id, data });
    }
}
