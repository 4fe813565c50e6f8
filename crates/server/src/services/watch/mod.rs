//! Watch: many watchers on one stream.

mod pace;
mod reply;
mod session;

use tonic::{Request, Response, Status, Streaming};

pub use self::{reply::WatchReply, session::WatchSession};
use super::Context;
use proto::etcdserverpb::WatchRequest;

#[derive(Clone)]
pub struct WatchService(pub Context);

impl WatchService {
    pub fn watch(&self, request: Request<Streaming<WatchRequest>>) -> Result<Response<WatchSession>, Status> {
        Ok(Response::new(WatchSession::new(self.0.clone(), request.into_inner())))
    }
}
