//! Election: the oldest key below a name leads, and its value is what the leader proclaims.

use std::{collections::VecDeque, pin::Pin};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use proto::{
    etcdserverpb::{ResponseHeader, TxnRequest},
    mvccpb::event::EventType,
    v3electionpb::{
        CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse, ProclaimRequest, ProclaimResponse,
        ResignRequest, ResignResponse, election_server::Election,
    },
};
use tonic::{Request, Response, Status};

use super::{
    events::Events,
    view::{View, created_at, delete, end_of, first_created, found, get, key_only, prefix_of, put, session_key},
};
use crate::{call, services::Context, status};

pub(crate) struct ElectionService(View);

impl ElectionService {
    pub(crate) fn new(context: Context) -> ElectionService {
        ElectionService(View(context))
    }

    async fn proclaim_as(&self, leader: &LeaderKey, value: &Bytes) -> Result<Option<ResponseHeader>, Status> {
        let txn = TxnRequest {
            compare: vec![created_at(&leader.key, leader.rev)],
            success: vec![put(&leader.key, value, leader.lease)],
            ..Default::default()
        };
        let answer = self.0.txn(txn).await?;
        if answer.succeeded { Ok(answer.header) } else { Err(status::election_not_leader()) }
    }
}

/// Deletes the leader's key, if it is still that of this leader.
fn resignation(leader: &LeaderKey) -> TxnRequest {
    TxnRequest {
        compare: vec![created_at(&leader.key, leader.rev)],
        success: vec![delete(&leader.key)],
        ..Default::default()
    }
}

#[tonic::async_trait]
impl Election for ElectionService {
    type ObserveStream = Pin<Box<dyn Stream<Item = Result<LeaderResponse, Status>> + Send>>;

    async fn campaign(&self, request: Request<CampaignRequest>) -> Result<Response<CampaignResponse>, Status> {
        let CampaignRequest { name, lease, value } = request.into_inner();
        let lease = self.0.session(lease).await?;
        let prefix = prefix_of(&name);
        let key = session_key(&prefix, lease);
        let txn = TxnRequest {
            compare: vec![created_at(&key, 0)],
            success: vec![put(&key, &value, lease)],
            failure: vec![get(key_only(&key))],
        };
        let answer = self.0.txn(txn).await?;
        let revision = answer.header.map_or(0, |header| header.revision);
        let mut leader = LeaderKey { name, key, rev: revision, lease };
        let before = found(&answer, 0);
        if let Some(kv) = before {
            leader.rev = kv.create_revision;
        }
        let undo = self.0.undo(resignation(&leader));
        if before.is_some_and(|kv| kv.value != value)
            && let Err(error) = self.proclaim_as(&leader, &value).await
        {
            undo.now().await;
            return Err(error);
        }
        let waited = self.0.wait_deletes(&prefix, leader.rev - 1).await;
        // As in etcd: only a client that has gone gives up its place.
        undo.take_back();
        waited?;
        Ok(Response::new(CampaignResponse { header: answer.header, leader: Some(leader) }))
    }

    async fn proclaim(&self, request: Request<ProclaimRequest>) -> Result<Response<ProclaimResponse>, Status> {
        let ProclaimRequest { leader, value } = request.into_inner();
        let mut leader = leader.ok_or_else(status::missing_leader_key)?;
        leader.lease = self.0.session(leader.lease).await?;
        let header = self.proclaim_as(&leader, &value).await?;
        Ok(Response::new(ProclaimResponse { header }))
    }

    async fn leader(&self, request: Request<LeaderRequest>) -> Result<Response<LeaderResponse>, Status> {
        let found = self.0.get(first_created(&prefix_of(&request.into_inner().name))).await?;
        match found.kvs.into_iter().next() {
            Some(kv) => Ok(Response::new(LeaderResponse { header: found.header, kv: Some(kv) })),
            None => Err(status::election_no_leader()),
        }
    }

    async fn observe(&self, request: Request<LeaderRequest>) -> Result<Response<Self::ObserveStream>, Status> {
        let prefix = prefix_of(&request.into_inner().name);
        let observer = Observer { view: self.0.clone(), prefix, following: None, ready: VecDeque::new() };
        // The call is over when its stream begins.
        let noted = call::lifted(async { call::noted() }).await;
        let leaders = stream::unfold((observer, noted), |(mut observer, noted)| async {
            let next = call::during(noted.clone(), observer.next()).await?;
            Some((Ok(next), (observer, noted)))
        });
        Ok(Response::new(leaders.boxed()))
    }

    async fn resign(&self, request: Request<ResignRequest>) -> Result<Response<ResignResponse>, Status> {
        let leader = request.into_inner().leader.ok_or_else(status::missing_leader_key)?;
        // As in etcd, which makes a session for it, used or not.
        self.0.session(leader.lease).await?;
        let answer = self.0.txn(resignation(&leader)).await?;
        Ok(Response::new(ResignResponse { header: answer.header }))
    }
}

/// Follows the proclamations of one leader after the other.
struct Observer {
    view: View,
    prefix: Bytes,
    /// The leader's key.
    following: Option<Events>,
    ready: VecDeque<LeaderResponse>,
}

impl Observer {
    /// `None` when a read fails; the stream then ends without an error, as etcd's does.
    async fn next(&mut self) -> Option<LeaderResponse> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Some(next);
            }
            let Some(events) = &mut self.following else {
                let leader = self.find().await.ok()?;
                let revision = leader.header?.revision;
                let key = leader.kv.as_ref()?.key.clone();
                self.following = Some(Events::of(&self.view.0, key, Bytes::new(), revision + 1).ok()?);
                return Some(leader);
            };
            let (header, events) = events.next().await.ok()?;
            for event in events {
                if event.r#type() == EventType::Delete {
                    self.following = None;
                    break;
                }
                self.ready.push_back(LeaderResponse { header: Some(header), kv: event.kv });
            }
        }
    }

    /// The leader, or the first one that comes.
    async fn find(&self) -> Result<LeaderResponse, Status> {
        let found = self.view.get(first_created(&self.prefix)).await?;
        if let Some(kv) = found.kvs.into_iter().next() {
            return Ok(LeaderResponse { header: found.header, kv: Some(kv) });
        }
        let revision = found.header.map_or(0, |header| header.revision);
        let mut events = Events::of(&self.view.0, self.prefix.clone(), end_of(&self.prefix), revision)?;
        loop {
            let (mut header, events) = events.next().await?;
            let put = events.into_iter().find(|event| event.r#type() == EventType::Put);
            if let Some(kv) = put.and_then(|event| event.kv) {
                header.revision = kv.mod_revision;
                return Ok(LeaderResponse { header: Some(header), kv: Some(kv) });
            }
        }
    }
}
