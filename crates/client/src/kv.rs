//! Keys: get, put, delete, transactions, compaction.

use proto::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeResponse, IncrementResponse, PutResponse, RangeResponse,
    RangeStreamResponse, TxnResponse, kv_client::KvClient,
};
use tonic::Streaming;

use crate::{
    Client, Delete, Error, Get, Increment, Pages, Put, Result, Txn,
    call::{Policy, rpc},
};

impl Client {
    pub async fn get(&self, get: impl Into<Get>) -> Result<RangeResponse> {
        rpc!(self.caller, Repeatable, KvClient::range, get.into().request)
    }

    pub async fn put(&self, put: Put) -> Result<PutResponse> {
        rpc!(self.caller, Once, KvClient::put, put.request)
    }

    pub async fn delete(&self, delete: impl Into<Delete>) -> Result<DeleteRangeResponse> {
        rpc!(self.caller, Once, KvClient::delete_range, delete.into().request)
    }

    /// A transaction without writes is repeated like a read.
    pub async fn txn(&self, txn: Txn) -> Result<TxnResponse> {
        let policy = if txn.is_read_only() { Policy::Repeatable } else { Policy::Once };
        let send = |channel, limits: crate::call::Limits, request| async move {
            let mut client =
                KvClient::new(channel).max_encoding_message_size(limits.send).max_decoding_message_size(limits.recv);
            client.txn(request).await
        };
        self.caller.call(policy, txn.request, send).await
    }

    /// Adds to the number in a key and returns the sum. Needs the cluster feature AtomicIncrement.
    ///
    /// A transaction cannot hold it: it would be a new field of an old request, which an older server would ignore, and
    /// then do the rest.
    pub async fn increment(&self, increment: Increment) -> Result<IncrementResponse> {
        rpc!(self.caller, Once, KvClient::increment, increment.request)
    }

    /// Forgets everything that was overwritten or deleted at or before `revision`. With `physical` the answer
    /// comes only when the space is free again.
    pub async fn compact(&self, revision: i64, physical: bool) -> Result<CompactionResponse> {
        rpc!(self.caller, Once, KvClient::compact, CompactionRequest { revision, physical })
    }

    /// A large range in pages of `page_keys`, all as of one revision: that of the first page.
    ///
    /// ```no_run
    /// # async fn example(client: client::Client) -> client::Result<()> {
    /// let mut pages = client.pages(client::Get::prefix("/registry/"), 500);
    /// while let Some(page) = pages.next().await? {
    ///     println!("{} keys of {}", page.kvs.len(), page.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(&self, get: Get, page_keys: i64) -> Pages {
        Pages::new(self.clone(), get, page_keys)
    }

    /// Opens a stream that brings a range in pieces. Needs etcd 3.7; older servers answer "unimplemented".
    pub async fn range_stream(&self, get: impl Into<Get>) -> Result<RangeStream> {
        let stream = rpc!(self.caller, Repeatable, KvClient::range_stream, get.into().request)?;
        Ok(RangeStream { stream })
    }
}

/// The pieces of one range, all of one revision.
pub struct RangeStream {
    stream: Streaming<RangeStreamResponse>,
}

impl RangeStream {
    /// The next piece, or `None` after the last. Header and count are set in the last piece.
    pub async fn next(&mut self) -> Result<Option<RangeResponse>> {
        let piece = self.stream.message().await.map_err(|status| Error::from_status(status, "range stream"))?;
        Ok(piece.and_then(|piece| piece.range_response))
    }

    /// All pieces joined as one response.
    pub async fn collect(mut self) -> Result<RangeResponse> {
        let mut whole: Option<RangeResponse> = None;
        while let Some(piece) = self.next().await? {
            match &mut whole {
                None => whole = Some(piece),
                Some(whole) => merge(whole, piece),
            }
        }
        whole.ok_or(Error::EmptyStream)
    }
}

/// Later pieces add keys; a scalar of a later piece counts unless it is unset, as in a protobuf merge.
fn merge(whole: &mut RangeResponse, piece: RangeResponse) {
    whole.kvs.extend(piece.kvs);
    whole.more |= piece.more;
    whole.header = piece.header.or(whole.header.take());
    if piece.count != 0 {
        whole.count = piece.count;
    }
}
