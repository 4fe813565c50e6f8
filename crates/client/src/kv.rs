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
    /// Reads keys. Repeated while servers are unavailable.
    pub async fn get(&self, get: impl Into<Get>) -> Result<RangeResponse> {
        rpc!(self.caller, Repeatable, KvClient::range, get.into().request)
    }

    /// Writes one key. Not repeated if it may have been sent, so that it is never applied twice.
    pub async fn put(&self, put: Put) -> Result<PutResponse> {
        rpc!(self.caller, Once, KvClient::put, put.request)
    }

    /// Deletes keys, and returns how many. Not repeated if it may have been sent.
    pub async fn delete(&self, delete: impl Into<Delete>) -> Result<DeleteRangeResponse> {
        rpc!(self.caller, Once, KvClient::delete_range, delete.into().request)
    }

    /// Runs a transaction. One without writes is repeated while servers are unavailable, like a
    /// read.
    pub async fn txn(&self, txn: Txn) -> Result<TxnResponse> {
        let policy = if txn.is_read_only() { Policy::Repeatable } else { Policy::Once };
        let send = |channel, limits: crate::call::Limits, request| async move {
            let mut client =
                KvClient::new(channel).max_encoding_message_size(limits.send).max_decoding_message_size(limits.recv);
            client.txn(request).await
        };
        self.caller.call(policy, txn.request, send).await
    }

    /// Adds to the number in a key and returns the sum. Needs Lockgate's cluster feature
    /// `AtomicIncrement`.
    ///
    /// It cannot be a step of a transaction: an older server would ignore the unknown step and
    /// apply the others.
    pub async fn increment(&self, increment: Increment) -> Result<IncrementResponse> {
        rpc!(self.caller, Once, KvClient::increment, increment.request)
    }

    /// Removes all versions that were overwritten or deleted at or before `revision`. With
    /// `physical` the response comes only after the space is free.
    pub async fn compact(&self, revision: i64, physical: bool) -> Result<CompactionResponse> {
        rpc!(self.caller, Once, KvClient::compact, CompactionRequest { revision, physical })
    }

    /// Reads a large range in pages of `page_keys` keys, all at the revision of the first page.
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

    /// Opens a stream that returns a range in pieces. Needs etcd 3.7; older servers respond with
    /// the code [`tonic::Code::Unimplemented`].
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
