//! Messages one by one, each in a post of its own: the way to a peer when there is no stream.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use membership::MemberId;
use prost::Message as _;
use proto::raftpb::{Message, MessageType};
use tokio::{
    runtime::Handle,
    sync::{Mutex, mpsc},
    task::JoinHandle,
};

use crate::{
    shared::{PostError, Shared, post_timeout},
    status::Status,
    url::UrlPicker,
};

const CONNECTIONS: usize = 4;
const MESSAGES_MAX: usize = 64;
/// Answers are empty or a line of text.
const ANSWER_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Pipeline {
    queue: mpsc::Sender<Message>,
    workers: Vec<JoinHandle<()>>,
}

impl Pipeline {
    pub(crate) fn start(
        shared: &Arc<Shared>,
        runtime: &Handle,
        id: MemberId,
        picker: &Arc<UrlPicker>,
        status: &Arc<Status>,
    ) -> Pipeline {
        let (queue, receiver) = mpsc::channel(MESSAGES_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let worker = || {
            let worker = Worker { shared: shared.clone(), id, picker: picker.clone(), status: status.clone() };
            runtime.spawn(worker.run(receiver.clone()))
        };
        let workers = (0..CONNECTIONS).map(|_| worker()).collect();
        tracing::info!(
            local_member_id = %shared.local(),
            remote_peer_id = %id,
            "started HTTP pipelining with remote peer"
        );
        Pipeline { queue, workers }
    }

    /// `None` if too many wait: the message is dropped.
    pub(crate) fn push(&self, message: Message) -> Option<()> {
        self.queue.try_send(message).ok()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.workers.iter().for_each(JoinHandle::abort);
    }
}

struct Worker {
    shared: Arc<Shared>,
    id: MemberId,
    picker: Arc<UrlPicker>,
    status: Arc<Status>,
}

impl Worker {
    async fn run(self, queue: Arc<Mutex<mpsc::Receiver<Message>>>) {
        loop {
            let next = queue.lock().await.recv().await;
            let Some(message) = next else { return };
            self.send(message).await;
        }
    }

    async fn send(&self, message: Message) {
        let is_snapshot = message.r#type() == MessageType::MsgSnap;
        let body = Bytes::from(message.encode_to_vec());
        drop(message);
        let len = body.len() as u64;
        let result = self.post(body).await;
        match &result {
            Ok(()) => {
                self.status.activate();
                self.shared.observer.sent_bytes(self.id, len);
            }
            Err(error) => {
                self.status.deactivate("write", "pipeline", error);
                self.shared.send_failed(self.id);
            }
        }
        if is_snapshot {
            self.shared.report_snapshot(self.id, result.is_ok());
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), PostError> {
        let url = self.picker.pick();
        let timeout = post_timeout(&body, self.shared.options.read_timeout);
        let request = self.shared.post(&url, "/raft", "application/protobuf", Full::new(body));
        let answer = self.shared.client.request(&url, request, ANSWER_BYTES_MAX, timeout).await;
        let result = answer.map_err(PostError::from).and_then(|a| self.shared.check_posted(self.id, &url, &a));
        if let Err(error) = &result {
            self.picker.unreachable(&url);
            if matches!(error, PostError::Removed) {
                self.shared.removed_from_cluster();
            }
        }
        result
    }
}
