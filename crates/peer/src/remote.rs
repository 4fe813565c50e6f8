//! One other member: its queues, streams and connections.

use std::{
    sync::{Arc, Weak},
    time::Instant,
};

use membership::MemberId;
use parking_lot::Mutex;
use proto::raftpb::{Message, MessageType};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use crate::{
    codec::StreamKind,
    member::Database,
    outbox::{Events, Outbox, Refused, StreamBody},
    pipeline::Pipeline,
    probe,
    reader::{Reader, hand_over_proposals},
    route::{Way, pick, take_out_newer},
    shared::Shared,
    snapshot_send::SnapshotSender,
    status::Status,
    url::{PeerUrl, UrlPicker},
};

/// Proposals of one peer that wait for room here.
const PROPOSALS_MAX: usize = 4096;

/// A member of the cluster: sent to and read from.
pub(crate) struct Peer {
    shared: Arc<Shared>,
    id: MemberId,
    picker: Arc<UrlPicker>,
    status: Arc<Status>,
    msgapp: Arc<Outbox>,
    message: Arc<Outbox>,
    pipeline: Pipeline,
    tasks: Vec<AbortHandle>,
    snapshots: Mutex<JoinSet<()>>,
}

impl Peer {
    pub(crate) fn start(shared: &Arc<Shared>, runtime: &Handle, id: MemberId, urls: Vec<PeerUrl>) -> Peer {
        tracing::info!(remote_peer_id = %id, "starting remote peer");
        let picker = Arc::new(UrlPicker::new(urls));
        let status = Arc::new(Status::new(shared.local(), id, shared.observer.clone()));
        let (proposals, waiting) = mpsc::channel(PROPOSALS_MAX);
        let reader = |kind| Reader {
            shared: shared.clone(),
            kind,
            remote: id,
            picker: picker.clone(),
            status: status.clone(),
            proposals: proposals.clone(),
        };
        let tasks = vec![
            runtime.spawn(hand_over_proposals(shared.clone(), waiting)).abort_handle(),
            runtime.spawn(reader(StreamKind::MsgApp).run()).abort_handle(),
            runtime.spawn(reader(StreamKind::Message).run()).abort_handle(),
            runtime.spawn(probe::run(shared.clone(), id, picker.clone())).abort_handle(),
        ];
        let pipeline = Pipeline::start(shared, runtime, id, &picker, &status);
        tracing::info!(remote_peer_id = %id, "started remote peer");
        Peer {
            shared: shared.clone(),
            id,
            picker,
            status,
            msgapp: Arc::default(),
            message: Arc::default(),
            pipeline,
            tasks,
            snapshots: Mutex::default(),
        }
    }

    pub(crate) fn send(&self, message: Message) {
        let kind = message.r#type();
        let way = pick(kind, self.msgapp.is_attached(), self.message.is_attached());
        if let Err(way) = self.send_by(way, message) {
            tracing::warn!(
                message_type = ?kind,
                local_member_id = %self.shared.local(),
                remote_peer_id = %self.id,
                remote_peer_name = way.name(),
                remote_peer_active = self.status.is_active(),
                "dropped internal Raft message since sending buffer is full"
            );
            self.shared.send_failed(self.id);
            if kind == MessageType::MsgSnap {
                self.shared.report_snapshot(self.id, false);
            }
        }
    }

    /// A stream that is lost just now hands its message to the pipeline.
    fn send_by(&self, way: Way, mut message: Message) -> Result<(), Way> {
        let outbox = match way {
            Way::MsgAppStream => &self.msgapp,
            Way::MessageStream => &self.message,
            Way::Pipeline => {
                // A post reaches a reader that has not said on the connection whether it is one of ours.
                let left_out = take_out_newer(&mut message);
                self.note_left_out(left_out);
                let is_empty = left_out > 0 && message.entries.is_empty();
                return if is_empty { Ok(()) } else { self.pipeline.push(message).ok_or(way) };
            }
        };
        match outbox.push(message) {
            Ok(left_out) => {
                self.note_left_out(left_out);
                Ok(())
            }
            Err(Refused::Full) => Err(way),
            Err(Refused::Detached(message)) => self.send_by(Way::Pipeline, *message),
        }
    }

    /// The callers of proposals that are left out learn it by their own time-outs.
    fn note_left_out(&self, proposals: usize) {
        if proposals > 0 {
            tracing::warn!(
                local_member_id = %self.shared.local(),
                remote_peer_id = %self.id,
                proposals,
                "dropped proposals of version 3.8: the leader has not said that it is a lockgate member"
            );
        }
    }

    pub(crate) fn send_snapshot(&self, runtime: &Handle, message: Message, database: Database) {
        let (shared, picker, status) = (self.shared.clone(), self.picker.clone(), self.status.clone());
        let sender = SnapshotSender::new(shared, self.id, picker, status);
        let mut snapshots = self.snapshots.lock();
        while snapshots.try_join_next().is_some() {}
        snapshots.spawn_on(sender.send(message, database), runtime);
    }

    pub(crate) fn update(&self, urls: Vec<PeerUrl>) {
        self.picker.update(urls);
    }

    /// The body of a stream that the peer has dialled, and has said there whether it is one of ours. An earlier stream of
    /// this kind ends.
    pub(crate) fn attach(self: &Arc<Peer>, kind: StreamKind, is_ours: bool) -> StreamBody {
        let outbox = match kind {
            StreamKind::MsgApp => &self.msgapp,
            StreamKind::Message => &self.message,
        };
        let events = Arc::new(StreamEvents { peer: Arc::downgrade(self), kind });
        let (body, replaced) = outbox.attach(kind, is_ours, self.shared.options.link_heartbeat_interval(), events);
        let (kind, local) = (kind.name(), self.shared.local());
        if replaced {
            tracing::warn!(
                stream_writer_type = kind,
                local_member_id = %local,
                remote_peer_id = %self.id,
                "closed TCP streaming connection with remote peer"
            );
        }
        tracing::info!(
            stream_writer_type = kind,
            local_member_id = %local,
            remote_peer_id = %self.id,
            "established TCP streaming connection with remote peer"
        );
        self.status.activate();
        body
    }

    /// Ends streams that the peer has dialled without saying that it is one of ours. It is refused when it dials again.
    pub(crate) fn detach_foreign(&self) {
        if self.msgapp.detach_foreign() | self.message.detach_foreign() {
            tracing::warn!(
                local_member_id = %self.shared.local(),
                remote_peer_id = %self.id,
                "closed the streams of a member that cannot follow this cluster version"
            );
        }
    }

    pub(crate) fn active_since(&self) -> Option<Instant> {
        self.status.active_since()
    }

    pub(crate) fn streams_up(&self) -> (bool, bool) {
        (self.msgapp.is_attached(), self.message.is_attached())
    }

    /// Ends everything. What still holds this peer can do nothing with it.
    pub(crate) fn stop(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.snapshots.lock().abort_all();
        self.msgapp.detach();
        self.message.detach();
        tracing::info!(remote_peer_id = %self.id, "stopped remote peer");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

struct StreamEvents {
    peer: Weak<Peer>,
    kind: StreamKind,
}

impl Events for StreamEvents {
    fn sent(&self, bytes: u64) {
        if let Some(peer) = self.peer.upgrade() {
            peer.shared.observer.sent_bytes(peer.id, bytes);
        }
    }

    fn lost(&self) {
        let Some(peer) = self.peer.upgrade() else { return };
        let kind = self.kind.name();
        tracing::warn!(
            stream_writer_type = kind,
            local_member_id = %peer.shared.local(),
            remote_peer_id = %peer.id,
            "lost TCP streaming connection with remote peer"
        );
        peer.status.deactivate("write", kind, &"connection closed");
        peer.shared.send_failed(peer.id);
    }
}

/// A member that is not known to be one: only sent to, by posts.
pub(crate) struct Remote {
    shared: Arc<Shared>,
    id: MemberId,
    status: Arc<Status>,
    pipeline: Pipeline,
}

impl Remote {
    pub(crate) fn start(shared: &Arc<Shared>, runtime: &Handle, id: MemberId, urls: Vec<PeerUrl>) -> Remote {
        let picker = Arc::new(UrlPicker::new(urls));
        let status = Arc::new(Status::new(shared.local(), id, shared.observer.clone()));
        let pipeline = Pipeline::start(shared, runtime, id, &picker, &status);
        Remote { shared: shared.clone(), id, status, pipeline }
    }

    pub(crate) fn send(&self, message: Message) {
        let kind = message.r#type();
        if self.pipeline.push(message).is_none() {
            tracing::warn!(
                message_type = ?kind,
                local_member_id = %self.shared.local(),
                remote_peer_id = %self.id,
                remote_peer_active = self.status.is_active(),
                "dropped Raft message since sending buffer is full (overloaded network)"
            );
            self.shared.observer.send_failed(self.id);
        }
    }
}
