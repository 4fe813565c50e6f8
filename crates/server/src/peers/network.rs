//! The node's network: etcd's peer protocol.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use membership::{Member, MemberId};
use parking_lot::Mutex;
use peer::Transport;
use proto::raftpb::Message;

/// Carries messages once the member that they are for is known; loses them before.
pub(crate) struct Wire {
    transport: Transport,
    peers: Mutex<Peers>,
}

#[derive(Default)]
struct Peers {
    attached: bool,
    /// Those the transport has been told of.
    told: BTreeMap<MemberId, Vec<String>>,
    wanted: BTreeMap<MemberId, Vec<String>>,
}

impl Wire {
    pub(crate) fn new(transport: Transport) -> Wire {
        Wire { transport, peers: Mutex::default() }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// From here on peers are connected to, and what they send is handed to `member`.
    pub(crate) fn attach(&self, member: Arc<dyn peer::Member>) {
        let mut peers = self.peers.lock();
        self.transport.attach(member);
        peers.attached = true;
        self.follow(&mut peers);
    }

    fn follow(&self, peers: &mut Peers) {
        if !peers.attached {
            return;
        }
        for id in peers.told.keys().filter(|id| !peers.wanted.contains_key(id)) {
            self.transport.remove_peer(*id);
        }
        for (id, urls) in &peers.wanted {
            let result = match peers.told.get(id) {
                None => self.transport.add_peer(*id, urls),
                Some(told) if told != urls => self.transport.update_peer(*id, urls),
                Some(_) => Ok(()),
            };
            if let Err(error) = result {
                tracing::warn!(remote_peer_id = %id, ?urls, %error, "cannot connect to a member");
            }
        }
        peers.told = peers.wanted.clone();
    }
}

impl node::Network for Wire {
    fn send(&self, messages: Vec<Message>) {
        self.transport.send(messages);
    }

    fn send_snapshot(&self, message: Message, database: node::Database) {
        self.transport.send_snapshot(message, peer::Database { len: database.len, reader: database.reader });
    }

    fn set_members(&self, members: Vec<Member>) {
        let local = self.transport.local();
        let mut peers = self.peers.lock();
        peers.wanted = members.into_iter().filter(|m| m.id != local).map(|m| (m.id, m.peer_urls)).collect();
        self.follow(&mut peers);
    }

    fn active_since(&self, id: MemberId) -> Option<Instant> {
        self.transport.active_since(id)
    }
}
