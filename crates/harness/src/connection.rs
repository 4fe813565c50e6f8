//! Connections of the Rust client to members.

use std::time::Duration;

use client::{Client, ConnectOptions};

use crate::Member;

/// The time limit of a request of [`Member::client`], which a loaded machine does not reach.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Member {
    /// A connection to this member.
    pub async fn client(&self) -> Client {
        let options = ConnectOptions::new().request_timeout(REQUEST_TIMEOUT);
        let client = Client::connect([self.url()], options).await;
        client.unwrap_or_else(|error| panic!("failed to connect to {}: {error}", self.url()))
    }
}
