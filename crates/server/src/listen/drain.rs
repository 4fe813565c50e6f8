//! The end of serving: calls in flight are answered before connections are cut.

use std::{sync::Arc, time::Duration};

use crate::metrics::grpc::Grpc;

/// The time for answers to leave, and for clients to end their streams.
const GRACE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);

#[derive(Clone)]
pub(crate) struct Drain {
    pub grpc: Arc<Grpc>,
    /// The longest time that calls in flight may take.
    pub max: Duration,
}

impl Drain {
    /// Returns when connections that are still open may be cut.
    pub(super) async fn wait(&self) {
        let idle = async {
            while self.grpc.in_flight() > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(self.max, idle).await.is_err() {
            tracing::warn!(calls = self.grpc.in_flight(), waited = ?self.max, "cutting off calls that do not end");
        }
        tokio::time::sleep(GRACE).await;
    }
}
