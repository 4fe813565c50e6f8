//! This member's part in the cluster: starting or joining it, changing it, deciding its version, asking its leader.

pub(crate) mod begin;
pub(crate) mod corruption;
mod forward;
mod leader;
pub(crate) mod learner;
mod reconfigure;
pub(crate) mod version;

use std::{sync::Arc, time::Duration};

pub(crate) use self::{forward::LeaderError, leader::LeaderLost, reconfigure::ReconfigureFailure};

use node::Node;
use peer::Control;

/// What a member needs to act in its cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Part {
    pub node: Arc<Node>,
    pub control: Arc<Control>,
    pub options: PartOptions,
    pub leader_lost: LeaderLost,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PartOptions {
    /// `--strict-reconfig-check`
    pub strict_reconfig: bool,
    /// The cluster version is not raised beyond this while this member leads.
    pub version_max: proto::Version,
}

impl Part {
    /// How long a request to another member may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.node.request_timeout()
    }
}
