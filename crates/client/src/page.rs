//! Reading a large range page by page at one revision.

use bytes::{BufMut, BytesMut};
use proto::etcdserverpb::RangeResponse;

use crate::{Client, Get, Result};

/// Pages of a range, from [`Client::pages`]. The range's own limit, if set, bounds all pages together.
pub struct Pages {
    client: Client,
    get: Get,
    page_keys: i64,
    /// Keys that may still be returned, if the whole is limited.
    left: Option<i64>,
    done: bool,
}

impl Pages {
    pub(crate) fn new(client: Client, get: Get, page_keys: i64) -> Pages {
        let left = (get.request.limit > 0).then_some(get.request.limit);
        Pages { client, get, page_keys: page_keys.max(1), left, done: false }
    }

    /// The next page, or `None` after the last. Every page is as of the revision of the first, so nothing
    /// is skipped or seen twice while others write; a compaction past it ends in `Kind::Compacted`.
    pub async fn next(&mut self) -> Result<Option<RangeResponse>> {
        if self.done {
            return Ok(None);
        }
        self.get.request.limit = self.left.map_or(self.page_keys, |left| left.min(self.page_keys));
        let page = self.client.get(self.get.clone()).await?;
        self.advance(&page);
        Ok(Some(page))
    }

    fn advance(&mut self, page: &RangeResponse) {
        let request = &mut self.get.request;
        if request.revision == 0 {
            request.revision = page.header.as_ref().map_or(0, |header| header.revision);
        }
        if let Some(left) = &mut self.left {
            *left -= page.kvs.len() as i64;
            self.done = *left <= 0;
        }
        match page.kvs.last() {
            Some(last) if page.more => {
                let mut next = BytesMut::with_capacity(last.key.len() + 1);
                next.extend_from_slice(&last.key);
                next.put_u8(0);
                request.key = next.freeze();
            }
            _ => self.done = true,
        }
    }
}
