//! The way out: peers, and what is sent to them.

use std::{collections::HashMap, sync::Arc, time::Instant};

use membership::MemberId;
use parking_lot::RwLock;
use proto::raftpb::Message;
use tokio::{runtime::Handle, sync::watch};

use crate::{
    member::{Database, Member},
    observer::Observer,
    options::Options,
    remote::{Peer, Remote},
    route,
    shared::Shared,
    url::{UrlError, parse_urls},
};

/// Strangers may introduce themselves, but not without end.
const REMOTES_MAX: usize = 64;

/// Sends messages to peers and reads their streams. A cheap handle; all clones are the same transport.
#[derive(Clone)]
pub struct Transport {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    runtime: Handle,
    peers: RwLock<Peers>,
    stopped: watch::Sender<bool>,
}

#[derive(Default)]
struct Peers {
    peers: HashMap<MemberId, Arc<Peer>>,
    /// Members that this one does not know of (yet), but that know of it. Only sent to.
    remotes: HashMap<MemberId, Arc<Remote>>,
    stopped: bool,
}

impl Transport {
    pub fn new(options: Options, observer: Arc<dyn Observer>, runtime: Handle) -> Transport {
        let shared = Arc::new(Shared::new(options, observer));
        let stopped = watch::Sender::new(false);
        Transport { inner: Arc::new(Inner { shared, runtime, peers: RwLock::default(), stopped }) }
    }

    /// Says whose transport this is: before peers are added and before anything is served.
    pub fn attach(&self, member: Arc<dyn Member>) {
        self.inner.shared.attach(member);
    }

    /// Sends messages to the members in their `to`. Never waits: what finds no room is dropped, and its receiver
    /// reported unreachable. Messages to nobody, or to members that nothing is known of, are ignored.
    pub fn send(&self, mut messages: Vec<Message>) {
        route::drop_redundant(&mut messages);
        let peers = self.inner.peers.read();
        for message in messages {
            let to = MemberId(message.to());
            if let Some(peer) = peers.peers.get(&to) {
                peer.send(message);
            } else if let Some(remote) = peers.remotes.get(&to) {
                remote.send(message);
            } else if to.0 != 0 {
                tracing::debug!(
                    kind = ?message.r#type(),
                    unknown_target_peer_id = %to,
                    "ignored message send request; unknown remote peer target"
                );
            }
        }
    }

    /// Sends a MsgSnap with its database. The outcome is told to [`Member::report_snapshot`].
    pub fn send_snapshot(&self, message: Message, database: Database) {
        let to = MemberId(message.to());
        let peer = self.inner.peers.read().peers.get(&to).cloned();
        match peer {
            Some(peer) => peer.send_snapshot(&self.inner.runtime, message, database),
            None => self.inner.shared.report_snapshot(to, false),
        }
    }

    /// Adds a peer, unless it is there.
    pub fn add_peer<S: AsRef<str>>(&self, id: MemberId, urls: &[S]) -> Result<(), UrlError> {
        let parsed = parse_urls(urls)?;
        let mut peers = self.inner.peers.write();
        if peers.stopped || id == self.local() || peers.peers.contains_key(&id) {
            return Ok(());
        }
        peers.remotes.remove(&id);
        peers.peers.insert(id, Arc::new(Peer::start(&self.inner.shared, &self.inner.runtime, id, parsed)));
        let urls: Vec<_> = urls.iter().map(AsRef::as_ref).collect();
        tracing::info!(
            local_member_id = %self.local(),
            remote_peer_id = %id,
            remote_peer_urls = ?urls,
            "added remote peer"
        );
        Ok(())
    }

    /// Changes the URLs of a peer, if it is there.
    pub fn update_peer<S: AsRef<str>>(&self, id: MemberId, urls: &[S]) -> Result<(), UrlError> {
        let parsed = parse_urls(urls)?;
        if let Some(peer) = self.inner.peers.read().peers.get(&id) {
            peer.update(parsed);
            let urls: Vec<_> = urls.iter().map(AsRef::as_ref).collect();
            tracing::info!(
                local_member_id = %self.local(),
                updated_remote_peer_id = %id,
                updated_remote_peer_urls = ?urls,
                "updated remote peer"
            );
        }
        Ok(())
    }

    pub fn remove_peer(&self, id: MemberId) {
        let (peer, _remote) = {
            let mut peers = self.inner.peers.write();
            (peers.peers.remove(&id), peers.remotes.remove(&id))
        };
        match peer {
            Some(peer) => {
                peer.stop();
                tracing::info!(local_member_id = %self.local(), removed_remote_peer_id = %id, "removed remote peer");
            }
            None => {
                tracing::debug!(
                    local_member_id = %self.local(),
                    removed_remote_peer_id = %id,
                    "skipped removing already removed peer"
                )
            }
        }
    }

    pub fn remove_all_peers(&self) {
        let ids: Vec<_> = self.inner.peers.read().peers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.remove_peer(id));
    }

    /// From here on only members of ours can follow: streams of others end. See [`Member::is_ours_alone`].
    pub fn detach_foreign(&self) {
        self.inner.peers.read().peers.values().for_each(|peer| peer.detach_foreign());
    }

    /// Adds a member to which one only sends, while catching up with a cluster whose members are not known yet.
    pub fn add_remote<S: AsRef<str>>(&self, id: MemberId, urls: &[S]) -> Result<(), UrlError> {
        if id == self.local() || self.knows(id) {
            return Ok(());
        }
        let parsed = parse_urls(urls)?;
        let mut peers = self.inner.peers.write();
        if peers.stopped || peers.peers.contains_key(&id) || peers.remotes.contains_key(&id) {
            return Ok(());
        }
        if peers.remotes.len() >= REMOTES_MAX {
            tracing::warn!(
                remote_peer_id = %id,
                "ignored a new remote peer: {REMOTES_MAX} unknown members have introduced themselves"
            );
            return Ok(());
        }
        peers.remotes.insert(id, Arc::new(Remote::start(&self.inner.shared, &self.inner.runtime, id, parsed)));
        let urls: Vec<_> = urls.iter().map(AsRef::as_ref).collect();
        tracing::info!(
            local_member_id = %self.local(),
            remote_peer_id = %id,
            remote_peer_urls = ?urls,
            "added new remote peer"
        );
        Ok(())
    }

    fn knows(&self, id: MemberId) -> bool {
        let peers = self.inner.peers.read();
        peers.peers.contains_key(&id) || peers.remotes.contains_key(&id)
    }

    /// Since when messages pass to and from this peer; `None` while they do not.
    pub fn active_since(&self, id: MemberId) -> Option<Instant> {
        self.inner.peers.read().peers.get(&id)?.active_since()
    }

    /// How many peers are active.
    pub fn active_peers(&self) -> usize {
        self.inner.peers.read().peers.values().filter(|peer| peer.active_since().is_some()).count()
    }

    /// Which streams to this peer are up: of MsgApp, of all else.
    pub fn streams_up(&self, id: MemberId) -> (bool, bool) {
        self.peer(id).map_or((false, false), |peer| peer.streams_up())
    }

    /// Ends all connections and everything that is served, and lets go of the member.
    pub fn stop(&self) {
        let peers = {
            let mut peers = self.inner.peers.write();
            peers.stopped = true;
            peers.remotes.clear();
            std::mem::take(&mut peers.peers)
        };
        peers.values().for_each(|peer| peer.stop());
        self.inner.stopped.send_replace(true);
        self.inner.shared.detach();
    }

    pub fn local(&self) -> MemberId {
        self.inner.shared.local()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn peer(&self, id: MemberId) -> Option<Arc<Peer>> {
        self.inner.peers.read().peers.get(&id).cloned()
    }

    /// Resolves when the transport was stopped.
    pub(crate) async fn stopped(&self) {
        // An error means that the sender is gone, which this handle holds.
        let _ = self.inner.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }
}
