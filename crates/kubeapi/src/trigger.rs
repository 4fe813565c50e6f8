//! Watches that only say when to look.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::{Kube, Place};

const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

impl Kube {
    /// Never returns. Notifies at every event, and whenever a watch ended, as something may have been missed. Whoever
    /// looks afresh then needs to know nothing of what happened in between.
    pub async fn notify_events(self, place: Place, label: Option<&'static str>, changed: Arc<Notify>) {
        self.on_events(place, label, || changed.notify_one()).await;
    }

    /// The same for whoever wants to know more than that there was something.
    pub async fn on_events(self, place: Place, label: Option<&'static str>, told: impl Fn()) {
        let mut wait = BACKOFF.0;
        loop {
            if let Ok(mut events) = self.watch(&place, label, None).await {
                while let Some(Ok(_)) = events.next().await {
                    wait = BACKOFF.0;
                    told();
                }
            }
            told();
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(BACKOFF.1);
        }
    }
}
