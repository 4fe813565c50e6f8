//! The way into the raft thread.

use std::sync::{Arc, mpsc::Sender};

use prost::Message;
use proto::etcdserverpb::InternalRaftRequest;

use crate::{
    raft_loop::{Input, Judged},
    request_id::RequestIds,
    standing::DecidingTerm,
};

/// Sends inputs to the raft thread. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Proposer {
    pub inputs: Sender<Input>,
    pub ids: Arc<RequestIds>,
}

impl Proposer {
    /// If the raft thread has ended, whoever waits learns it from the closed wait.
    pub(crate) fn send(&self, input: Input) {
        let _ = self.inputs.send(input);
    }

    /// Gives a request its id.
    pub(crate) fn name(&self, request: &mut InternalRaftRequest) -> u64 {
        let id = self.ids.next();
        request.header.get_or_insert_default().id = id;
        id
    }

    /// Proposes what only the leader of this term may decide; nothing comes of it if it no longer leads. A follower would
    /// send it to the new leader, who knows better: the lease that ended here may have been renewed there.
    pub(crate) fn send_as_leader(&self, term: DecidingTerm, mut request: InternalRaftRequest) {
        self.name(&mut request);
        self.send(Input::ProposeAsLeader { term, data: request.encode_to_vec().into() });
    }

    /// Proposes a request whose result nobody waits for.
    pub(crate) fn send_request(&self, mut request: InternalRaftRequest) {
        let id = self.name(&mut request);
        self.send(Input::Propose { id, data: request.encode_to_vec().into(), judged: Judged::Not });
    }
}
