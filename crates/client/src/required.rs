//! Calls that require cluster features.
//!
//! A real etcd ignores the metadata that says so, and would do the call all the same. So such a call goes only over a
//! connection that has answered `FeatureGateStatus`, which no etcd does, and its answer must echo what was required.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use hyper_util::rt::TokioIo;
use proto::etcdserverpb::{FeatureGateStatusRequest, maintenance_client::MaintenanceClient};
use tokio::net::TcpStream;
use tonic::{
    Code, Request,
    metadata::{MetadataMap, MetadataValue},
    transport::Channel,
};

use crate::{Client, ConnectOptions, Error, Result, endpoint, login::Token, pool::Member};

const KEY: &str = "require-feature";

/// Names of features, by which handles are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Required(Arc<BTreeSet<String>>);

impl Required {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn and(&self, name: String) -> Required {
        Required(Arc::new(self.0.iter().cloned().chain([name]).collect()))
    }

    pub(crate) fn write(&self, metadata: &mut MetadataMap) {
        // What is no name is refused before anything is sent.
        for value in self.0.iter().filter_map(|name| MetadataValue::try_from(name).ok()) {
            metadata.append(KEY, value);
        }
    }

    fn check_names(&self) -> Result<()> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match self.0.iter().find(|name| name.is_empty() || !name.chars().all(legal)) {
            None => Ok(()),
            Some(name) => Err(Error::BadFeature { name: name.clone() }),
        }
    }

    /// Whether the server has heeded the metadata of a call that went well.
    pub(crate) fn check_echo(&self, metadata: &MetadataMap, endpoint: &str) -> Result<()> {
        let values = metadata.get_all(KEY).iter().filter_map(|value| value.to_str().ok());
        let echoed: BTreeSet<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        match self.0.iter().find(|name| !echoed.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::NotEchoed { endpoint: endpoint.to_owned(), name: name.clone() }),
        }
    }

    /// A connection over which a call may be sent.
    pub(crate) async fn channel(&self, member: &Member, options: &ConnectOptions, token: &Token) -> Result<Channel> {
        self.check_names()?;
        let mut proven = member.proven.lock().await;
        if let Some(channel) = &*proven {
            return Ok(channel.clone());
        }
        let channel = prove(&member.endpoint, options, token).await?;
        *proven = Some(channel.clone());
        Ok(channel)
    }
}

impl Client {
    /// The same client, whose every call happens with this cluster feature on, or fails with a code of
    /// `FailedPrecondition` and a text that names the feature. May be repeated for several features.
    ///
    /// Streams fail when they open, or as soon as the feature goes off. With a server that does not know of cluster
    /// features, such as a real etcd, calls fail without being sent.
    ///
    /// ```no_run
    /// # async fn example(client: client::Client) -> client::Result<()> {
    /// let careful = client.require_feature("PersistedLeaseCheckpoints");
    /// careful.lease_grant(3600, 0).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn require_feature(&self, name: impl Into<String>) -> Client {
        let mut client = self.clone();
        client.caller.required = self.caller.required.and(name.into());
        client
    }
}

/// Connects once and asks what no etcd answers. The channel never connects again: at the same address somebody else may
/// listen by then.
async fn prove(endpoint: &str, options: &ConnectOptions, token: &Token) -> Result<Channel> {
    let address = endpoint::address(endpoint)?.to_owned();
    let used = AtomicBool::new(false);
    let connect = tower::service_fn(move |_| {
        let (address, gone) = (address.clone(), used.swap(true, Relaxed));
        async move {
            if gone {
                return Err(io::Error::other("the connection is gone"));
            }
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        }
    });
    let unsent = |message: String| Error::Transport { endpoint: endpoint.to_owned(), message, sent: false };
    let channel = endpoint::builder(endpoint, options)?.connect_with_connector(connect).await;
    let channel = channel.map_err(|error| unsent(crate::error::innermost(&error)))?;
    let mut question = Request::new(FeatureGateStatusRequest { serializable: true, ..Default::default() });
    token.write(question.metadata_mut());
    match MaintenanceClient::new(channel.clone()).feature_gate_status(question).await {
        Ok(_) => Ok(channel),
        Err(status) if status.code() == Code::Unimplemented => {
            Err(Error::FeaturesUnknown { endpoint: endpoint.to_owned() })
        }
        Err(status) => Err(match Error::from_status(status, endpoint) {
            // The call itself has not left.
            Error::Transport { message, .. } => unsent(message),
            other => other,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_required_name_must_be_echoed() {
        let required = Required::default().and("A".into()).and("B".into());
        let mut metadata = MetadataMap::new();
        let missing = |metadata: &MetadataMap| match required.check_echo(metadata, "a:1") {
            Ok(()) => None,
            Err(Error::NotEchoed { name, .. }) => Some(name),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(missing(&metadata), Some("A".to_owned()));
        metadata.append(KEY, MetadataValue::from_static("A"));
        assert_eq!(missing(&metadata), Some("B".to_owned()));
        metadata.append(KEY, MetadataValue::from_static("C, B"));
        assert_eq!(missing(&metadata), None);
        assert!(Required::default().check_echo(&MetadataMap::new(), "a:1").is_ok());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "A,B", "A=true", "é", "a\nb"] {
            let refused = Required::default().and(name.into()).check_names();
            assert!(matches!(refused, Err(Error::BadFeature { .. })), "{name:?}");
        }
    }
}
