//! Flags of the group Member.

use super::Kind::*;
use super::{Flag, flag};

#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    flag("name", Text, "default", "Name of this member, for people."),
    flag("data-dir", Text, "", "Directory of the data; `<name>.etcd` if empty."),
    flag("wal-dir", Text, "", "Separate directory of the write-ahead log; inside the data dir if empty."),
    flag("snapshot-count", Uint, "10000", "Applied entries between two snapshots of the log."),
    flag("heartbeat-interval", Uint, "100", "Milliseconds between heartbeats of a leader."),
    flag("election-timeout", Uint, "1000", "Milliseconds without a leader before an election; at least 5 heartbeats."),
    flag("initial-election-tick-advance", Bool, "true", "Skip most of the first election timeout when starting."),
    flag("listen-peer-urls", Urls, "http://localhost:2380",
        "URLs to listen on for other members; with port 0, here and below, the system chooses the port."),
    flag("listen-client-urls", Urls, "http://localhost:2379",
        "URLs to listen on for clients: gRPC, and HTTP unless --listen-client-http-urls is given."),
    flag("listen-client-http-urls", Urls, "",
        "URLs to listen on for HTTP alone; takes HTTP off --listen-client-urls."),
    flag("ports-file", Text, "",
        "File that gets the URLs of all listeners as JSON once they are bound, for programs that start a member with port 0. \
         Not an etcd flag."),
    flag("max-snapshots", Uint, "5", "Snapshot files to keep; deprecated by etcd 3.6.")
        .ignored("one snapshot is enough to start from, and etcd removes the flag in 3.8"),
    flag("max-wals", Uint, "5", "Finished log segments to keep; 0 keeps all."),
    flag("memory-mlock", Bool, "false", "Keep the process's memory from being swapped out.")
        .refused("locking memory is not supported by this version; turn swap off for the process instead"),
    flag("quota-backend-bytes", Int, "0",
        "Size of the database that raises NOSPACE; 0 means 2 GiB, a negative number no quota."),
    flag("backend-bbolt-freelist-type", OneOf(&["map", "array", ""]), "map",
        "In-memory form of the database's free list.")
        .ignored("the free list here has one form and is never written to the file"),
    flag("backend-batch-interval", Duration, "0s", "Longest time between two commits of the database; 0 means 100ms."),
    flag("backend-batch-limit", Int, "0", "Changes after which the database commits at once; 0 means 10000."),
    flag("max-txn-ops", Uint, "128", "Operations allowed in one transaction."),
    flag("max-request-bytes", Uint, "1572864", "Largest client request in bytes."),
    flag("max-concurrent-streams", Uint32, "4294967295", "Streams that one client connection may have open."),
    flag("grpc-keepalive-min-time", Duration, "5s", 
        "Shortest interval at which a client may ping; one that pings more often is disconnected. 0 means 5m."),
    flag("grpc-keepalive-interval", Duration, "2h", "Interval of the server's pings to a client; 0 sends none."),
    flag("grpc-keepalive-timeout", Duration, "20s",
        "Wait for the answer to such a ping before the connection is closed; 0 sends no pings."),
    flag("socket-reuse-port", Bool, "false", "Set SO_REUSEPORT on listeners.").nested("socket-options", "reuse-port"),
    flag("socket-reuse-address", Bool, "false", "Set SO_REUSEADDR on listeners.")
        .nested("socket-options", "reuse-address")
        .ignored("listeners always have it, so that a restart need not wait for old connections"),
    flag("enable-grpc-gateway", Bool, "true", "Serve the JSON gateway under /v3/."),
    flag("raft-read-timeout", Duration, "5s", "Read timeout of connections between members."),
    flag("raft-write-timeout", Duration, "5s", "Write timeout of connections between members."),
    flag("lease-checkpoint-interval", Duration, "5m",
        "How often the remaining time of longer leases is written to the log, while checkpoints are made; at least 1s. Not an etcd flag."),
    flag("feature-gates", Text, "", "Server features to switch, as `Name=true,Other=false`."),
    flag(
        "cluster-feature-gates",
        Text,
        "",
        "What this member proposes for cluster features, as `Name=true,Other=false`; one is on only while all voters agree. Not an etcd flag.",
    ),
];
