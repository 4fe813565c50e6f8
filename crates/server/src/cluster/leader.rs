//! Whether the leader has been lost for a while: streams that need one are ended then, so that their clients look for
//! a member that has one.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt};
use node::Node;
use tokio::sync::watch;

/// As in etcd: so many election timeouts in a row without a leader.
const LOOKS: u32 = 3;

/// Who waits for the leader to be lost. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LeaderLost(Arc<watch::Sender<bool>>);

impl Default for LeaderLost {
    fn default() -> Self {
        LeaderLost(Arc::new(watch::Sender::new(false)))
    }
}

impl LeaderLost {
    pub(crate) fn wait(&self) -> BoxFuture<'static, ()> {
        let mut lost = self.0.subscribe();
        async move {
            // The sender lives as long as the member.
            let _ = lost.wait_for(|lost| *lost).await;
        }
        .boxed()
    }

    /// Runs as long as the member does.
    pub(crate) async fn watch(self, node: Arc<Node>, election_timeout: Duration) {
        let mut without = 0;
        loop {
            tokio::time::sleep(election_timeout).await;
            without = if node.status().leader == 0 { without + 1 } else { 0 };
            self.0.send_if_modified(|lost| std::mem::replace(lost, without >= LOOKS) != (without >= LOOKS));
        }
    }
}
