//! Flags of the groups Clustering and Discovery.

use super::Kind::*;
use super::{Flag, flag};

pub(in crate::config) const NO_DISCOVERY: &str =
    "discovery is not supported by this version; name the members in --initial-cluster";

#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    flag("initial-advertise-peer-urls", Urls, "http://localhost:2380", 
        "Peer URLs that this member tells the others; port 0 stands for the port of --listen-peer-urls."),
    flag("initial-cluster", Text, "default=http://localhost:2380",
        "Members of a new cluster as `name=url,...`; with only --name set it follows the name."),
    flag("initial-cluster-state", OneOf(&["new", "existing"]), "new",
        "`new` to found a cluster, `existing` to join one; not read once there is data."),
    flag("initial-cluster-token", Text, "etcd-cluster", "Makes the ids of a new cluster differ from other clusters'."),
    flag("initial-cluster-version", Text, "3.8",
        "Cluster version, 3.7 or 3.8, beyond which a cluster does not rise while this member leads; at 3.7 a real etcd \
         3.7 can take the data dir over. Not an etcd flag."),
    flag("advertise-client-urls", Urls, "http://localhost:2379",
        
        "Client URLs that this member tells clients; required with --listen-client-urls; port 0 stands for the port of one of those."),
    flag("strict-reconfig-check", Bool, "true", "Refuse membership changes that would lose the quorum."),
    flag("pre-vote", Bool, "true", "Ask before an election whether it could be won."),
    flag("auto-compaction-retention", Text, "0",
        "History to keep: hours or a duration (periodic), or revisions (revision); 0 compacts nothing."),
    flag("auto-compaction-mode", Text, "periodic",
        "`periodic` or `revision`: how --auto-compaction-retention is read."),
    flag("v2-deprecation", List, "", "Stage of the v2 store's removal; deprecated by etcd.")
        .ignored("there is no v2 store, and etcd 3.7 ignores the value too"),
];

#[rustfmt::skip]
pub(super) const DISCOVERY: &[Flag] = &[
    flag("discovery-token", Text, "", "Token of the cluster to find.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-endpoints", List, "", "Endpoints of the discovery service.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-dial-timeout", Duration, "2s", "Time to connect to it.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-request-timeout", Duration, "5s", "Time for a request to it.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-keepalive-time", Duration, "2s", "Interval of pings to it.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-keepalive-timeout", Duration, "6s", "Wait for the answer to a ping.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-insecure-transport", Bool, "true", "Connect to it without TLS.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-insecure-skip-tls-verify", Bool, "false", "Do not check its certificate.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-cert", Text, "", "Client certificate for it.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-key", Text, "", "Key of that certificate.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-cacert", Text, "", "CA bundle that signed its certificate.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-user", Text, "", "User at the discovery service.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-password", Text, "", "Password of that user.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-fallback", OneOf(&["exit", "proxy"]), "exit", "What to do when discovery fails.")
        .not_in_file().refused(NO_DISCOVERY),
    flag("discovery-srv", Text, "", "DNS domain with SRV records of the members.").refused(NO_DISCOVERY),
    flag("discovery-srv-name", Text, "", "Suffix of the SRV service names.").refused(NO_DISCOVERY),
];
