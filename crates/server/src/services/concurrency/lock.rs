//! Lock: the oldest key below a name holds it; each waiter waits for those before it to go.

use bytes::Bytes;
use proto::{
    etcdserverpb::{DeleteRangeRequest, ResponseHeader, TxnRequest, kv_server::Kv},
    v3lockpb::{LockRequest, LockResponse, UnlockRequest, UnlockResponse, lock_server::Lock},
};
use tonic::{Request, Response, Status};

use super::view::{View, created_at, delete, first_created, found, get, key_only, plain, prefix_of, put, session_key};
use crate::{
    services::{Context, KvService},
    status,
};

pub(crate) struct LockService(View);

impl LockService {
    pub(crate) fn new(context: Context) -> LockService {
        LockService(View(context))
    }

    async fn wait(&self, key: &Bytes, prefix: &Bytes, create_revision: i64) -> Result<Option<ResponseHeader>, Status> {
        self.0.wait_deletes(prefix, create_revision - 1).await?;
        // Its lease may have ended meanwhile.
        let own = self.0.get(key_only(key)).await?;
        if own.kvs.is_empty() { Err(status::session_expired()) } else { Ok(own.header) }
    }
}

#[tonic::async_trait]
impl Lock for LockService {
    async fn lock(&self, request: Request<LockRequest>) -> Result<Response<LockResponse>, Status> {
        let request = request.into_inner();
        let lease = self.0.session(request.lease).await?;
        let prefix = prefix_of(&request.name);
        let key = session_key(&prefix, lease);
        let answer = self
            .0
            .txn(TxnRequest {
                compare: vec![created_at(&key, 0)],
                success: vec![put(&key, &Bytes::new(), lease), get(first_created(&prefix))],
                failure: vec![get(key_only(&key)), get(first_created(&prefix))],
            })
            .await?;
        let revision = answer.header.map_or(0, |header| header.revision);
        let own = if answer.succeeded { revision } else { found(&answer, 0).map_or(0, |kv| kv.create_revision) };
        let is_held_by_other = found(&answer, 1).is_some_and(|oldest| oldest.create_revision != own);
        if !is_held_by_other {
            return Ok(Response::new(LockResponse { header: answer.header, key }));
        }
        let undo = self.0.undo(TxnRequest { success: vec![delete(&key)], ..Default::default() });
        match self.wait(&key, &prefix, own).await {
            Ok(header) => {
                undo.take_back();
                Ok(Response::new(LockResponse { header, key }))
            }
            Err(error) => {
                undo.now().await;
                Err(error)
            }
        }
    }

    async fn unlock(&self, request: Request<UnlockRequest>) -> Result<Response<UnlockResponse>, Status> {
        let delete = DeleteRangeRequest { key: request.into_inner().key, ..Default::default() };
        let answer = plain(KvService(self.0.0.clone()).delete_range(Request::new(delete)).await)?;
        Ok(Response::new(UnlockResponse { header: answer.header }))
    }
}
