//! Keeps the part of the view that the store is: its history says when a feature was switched, and a look now and then
//! finds what is in no history, such as who holds a feature off.

use std::{error::Error as _, sync::Arc, time::Duration};

use client::{Client, ConnectOptions, Error, User};
use tokio::{sync::watch, time::timeout};

use crate::{
    follow::publish,
    view::{Source, Store, View},
};

const LOOK_AGAIN: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(1);
/// The client tries all endpoints again and again within this; a change of leader is over sooner.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A client as [`follow_store`] wants it. Fails on endpoints that cannot be meant, not on those that do not answer.
pub async fn connect_store(endpoints: &[String], user: Option<User>) -> Result<Client, Error> {
    let mut options = ConnectOptions::new()
        .request_timeout(ANSWER_MAX)
        // A stream over a dead connection would be silent for ever.
        .keep_alive(Duration::from_secs(10), Duration::from_secs(6));
    if let Some(user) = user {
        options = options.user(user);
    }
    Client::connect(endpoints.iter().map(String::as_str), options).await
}

/// Never returns. While the store is away its last answer stays, marked stale.
pub async fn follow_store(client: Client, views: watch::Sender<Arc<View>>) {
    loop {
        // A member that stops ends its streams; another one has the rest.
        if let Err(error) = as_long_as_it_answers(&client, &views).await {
            let why = why(&error);
            tracing::warn!(why, "cannot ask the store for its features; it is tried again");
            publish(&views, |view| view.store = view.store.lost(&why));
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Returns when the stream of changes ends.
async fn as_long_as_it_answers(client: &Client, views: &watch::Sender<Arc<View>>) -> Result<(), Error> {
    let known = look(client, views).await?;
    // What changed between the two calls comes with the first answer.
    let mut changes = client.feature_gate_history(known + 1, true).await?;
    loop {
        match timeout(LOOK_AGAIN, changes.next()).await {
            Ok(Ok(Some(_))) | Err(_) => {}
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
        }
        look(client, views).await?;
    }
}

/// The entry that switched features last.
async fn look(client: &Client, views: &watch::Sender<Arc<View>>) -> Result<u64, Error> {
    let status = client.feature_gate_status::<[&str; 0]>([]).await?;
    let index = status.gate_index;
    publish(views, |view| view.store = Source::known(Store::new(status)));
    Ok(index)
}

fn why(error: &Error) -> String {
    if error.is_unimplemented() {
        return "the store has no cluster features, as no etcd has; --store-endpoints must name members of lockgate"
            .to_owned();
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
