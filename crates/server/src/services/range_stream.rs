//! RangeStream: one large range in chunks, all at one revision.

use std::{
    pin::Pin,
    task::{Context as TaskContext, Poll},
};

use failpoint::failpoint;
use futures_util::Stream;
use prost::Message;
use proto::etcdserverpb::{RangeRequest, RangeResponse, RangeStreamResponse};
use tonic::Status;

use super::Context;
use crate::users::Permit;

const FIRST_CHUNK_KEYS: i64 = 10;

/// The chunks of a range. A chunk is read when the one before it has been taken, so a slow client holds no memory.
pub(crate) struct RangeChunks {
    context: Context,
    /// The range that is left; `None` when all is sent.
    request: Option<RangeRequest>,
    permit: Permit,
    limit_left: i64,
    sent: i64,
    revision: i64,
}

impl RangeChunks {
    pub(crate) fn new(context: Context, mut request: RangeRequest, permit: Permit) -> RangeChunks {
        let limit_left = if request.limit == 0 { i64::MAX } else { request.limit };
        request.limit = FIRST_CHUNK_KEYS.min(limit_left);
        RangeChunks { context, request: Some(request), permit, limit_left, sent: 0, revision: 0 }
    }

    fn next_chunk(&mut self) -> Option<Result<RangeStreamResponse, Status>> {
        let request = self.request.take()?;
        Some(self.read(request).map(|range| RangeStreamResponse { range_response: Some(range) }))
    }

    fn read(&mut self, mut request: RangeRequest) -> Result<RangeResponse, Status> {
        failpoint!("beforeRangeStreamChunk");
        let response = self.context.range_now(&request)?.into_response();
        self.context.check_still(self.permit)?;
        let header_revision = response.header.map_or(0, |h| h.revision);
        if request.count_only {
            let header = Some(self.context.header_at(header_revision));
            return Ok(RangeResponse { header, count: response.count, ..Default::default() });
        }
        if self.revision == 0 {
            self.revision = header_revision;
            if request.revision == 0 {
                request.revision = header_revision;
            }
        }
        let count = response.kvs.len() as i64;
        self.sent += count;
        self.limit_left -= count;
        if !response.more || self.limit_left == 0 {
            return self.last(response, count);
        }
        self.go_on(request, &response);
        Ok(RangeResponse { kvs: response.kvs, ..Default::default() })
    }

    /// The last chunk tells the revision, whether there is more, and how many keys there are in all.
    fn last(&self, response: RangeResponse, count: i64) -> Result<RangeResponse, Status> {
        let beyond = response.count - count;
        Ok(RangeResponse {
            header: Some(self.context.header_at(self.revision)),
            more: response.more,
            count: self.sent + if response.more { beyond } else { 0 },
            kvs: response.kvs,
        })
    }

    /// The next chunk begins after the last key, and is sized so that its message comes near the request limit.
    fn go_on(&mut self, mut request: RangeRequest, response: &RangeResponse) {
        let Some(last) = response.kvs.last() else { return };
        let mut key = last.key.to_vec();
        key.push(0);
        request.key = key.into();
        let (bytes, target) = (response.encoded_len(), self.context.limits.request_bytes_max);
        if bytes < target / 2 {
            request.limit *= 2;
        } else if bytes > target * 2 {
            request.limit = (request.limit / 2).max(1);
        }
        request.limit = request.limit.min(self.limit_left);
        self.request = Some(request);
    }
}

impl Stream for RangeChunks {
    type Item = Result<RangeStreamResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.next_chunk())
    }
}
