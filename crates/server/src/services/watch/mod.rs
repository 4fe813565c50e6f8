//! Watch: many watchers on one stream.

mod pace;
mod reply;
mod session;

use tonic::{Request, Response, Status, Streaming};

pub(crate) use self::{reply::WatchReply, session::WatchSession};
use super::Context;
use proto::etcdserverpb::WatchRequest;

#[derive(Clone)]
pub(crate) struct WatchService(pub Context);

impl WatchService {
    pub(crate) fn watch(&self, request: Request<Streaming<WatchRequest>>) -> Result<Response<WatchSession>, Status> {
        // Users may come to be needed while the stream is open.
        let token = crate::users::token_among(request.metadata().as_ref());
        Ok(Response::new(WatchSession::new(self.0.clone(), request.into_inner(), token)))
    }
}
