//! One call, from its headers to its status.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderMap;
use tonic::Status;

use super::{Grpc, guard::CLIENT_API_VERSION};
use crate::metrics::methods::{CANCELED, CODES, METHODS, UNKNOWN};

/// One call under way. Dropped before its status was seen, it counts as canceled.
pub(super) struct Call {
    pub grpc: Arc<Grpc>,
    pub method: usize,
    pub started: Instant,
    slow: Duration,
    finished: bool,
}

impl Call {
    pub(super) fn start(grpc: &Arc<Grpc>, method: usize, headers: &HeaderMap, slow: Duration) -> Call {
        let m = &grpc.methods[method];
        m.started.inc();
        let version = headers.get(CLIENT_API_VERSION).map_or(Ok("unknown"), |value| value.to_str());
        grpc.count_client(version.unwrap_or("unknown"), m.is_stream);
        Call { grpc: grpc.clone(), method, started: Instant::now(), slow, finished: false }
    }

    /// The handler has answered. Named as etcd names it, since people search their logs for it.
    pub(super) fn log_if_slow(&self) {
        let took = self.started.elapsed();
        if took > self.slow && !self.grpc.methods[self.method].is_stream {
            let (service, method, _) = METHODS[self.method];
            let method = format!("/{service}/{method}");
            tracing::warn!("time spent" = ?took, "response type" = %method, expected = ?self.slow, "request stats");
        }
    }

    pub(super) fn finish_by(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get(Status::GRPC_STATUS) {
            let code = status.to_str().ok().and_then(|code| code.parse::<usize>().ok());
            self.finish(code.filter(|code| *code < CODES.len()).unwrap_or(UNKNOWN));
        }
    }

    pub(super) fn finish(&mut self, code: usize) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let method = &self.grpc.methods[self.method];
        method.handled[code].inc();
        if let Some(seconds) = &method.seconds {
            seconds.observe(self.started.elapsed().as_secs_f64());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.finish(CANCELED);
    }
}
