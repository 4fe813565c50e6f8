//! Flags of the groups about running a member: monitoring, logging, tracing, features, unsafe, general.

use super::Kind::*;
use super::{Flag, flag};

const NO_TRACING: &str = "distributed tracing is not supported by this version; use the logs and /metrics";
const NO_TRACING_NO_USE: &str = "used with --enable-distributed-tracing only, which this version does not have";

#[rustfmt::skip]
pub(super) const MONITORING: &[Flag] = &[
    flag("enable-pprof", Bool, "false", "Serve Go profiles under /debug/pprof/.")
        .ignored("this is no Go program; use perf and /metrics"),
    flag("metrics", OneOf(&["basic", "extensive"]), "basic", "`extensive` adds histograms of every gRPC method's latency."),
    flag("listen-metrics-urls", Urls, "", "More URLs to listen on for /metrics and the health endpoints."),
];

#[rustfmt::skip]
pub(super) const LOGGING: &[Flag] = &[
    flag("logger", Text, "zap", "Shape of the log lines; `zap` is the only one."),
    flag("log-outputs", List, "default", "Where to log: `default` or `stderr`, `stdout`, or paths of files."),
    flag("log-level", Text, "info", "Lowest level to log: debug, info, warn, error, dpanic, panic or fatal."),
    flag("log-format", Text, "", "`json` or `console`; if not given, console on a terminal and json elsewhere."),
    flag("enable-log-rotation", Bool, "false", "Start a new file when the log file has reached its size."),
    flag("log-rotation-config-json", Text,
        r#"{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}"#,
        "Size in MB, age in days and number of rotated files to keep; 0 means no limit for the last two."),
    flag("warning-unary-request-duration", Duration, "300ms", "Log a warning when a unary request takes longer."),
];

#[rustfmt::skip]
pub(super) const TRACING: &[Flag] = &[
    flag("enable-distributed-tracing", Bool, "false", "Send spans to an OpenTelemetry collector.").refused(NO_TRACING),
    flag("distributed-tracing-address", Text, "localhost:4317", "Address of the collector.").ignored(NO_TRACING_NO_USE),
    flag("distributed-tracing-service-name", Text, "etcd", "Name of the service in spans.").ignored(NO_TRACING_NO_USE),
    flag("distributed-tracing-instance-id", Text, "", "Id of this member in spans.").ignored(NO_TRACING_NO_USE),
    flag("distributed-tracing-sampling-rate", Int, "0", "Spans to send of a million.").ignored(NO_TRACING_NO_USE),
];

#[rustfmt::skip]
pub(super) const FEATURES: &[Flag] = &[
    flag("corrupt-check-time", Duration, "0s", "Interval of comparing hashes with other members; 0 is never.")
        .at_least_ms(100),
    flag("compact-hash-check-time", Duration, "1m", "Interval of comparing compaction hashes with other members.")
        .at_least_ms(100),
    flag("compaction-batch-limit", Int, "0", "Revisions deleted in one step of a compaction; 0 means 1000."),
    flag("compaction-sleep-interval", Duration, "0s", "Pause between two such steps; 0 means 10ms."),
    flag("watch-progress-notify-interval", Duration, "0s", "Interval of progress notices to quiet watches; 0 means 10m.")
        .at_least_ms(100),
    flag("warning-apply-duration", Duration, "100ms", "Log a warning when applying a request takes longer."),
    flag("bootstrap-defrag-threshold-megabytes", Uint, "0",
        "Defragment at start if that frees at least as many megabytes; 0 is never."),
    flag("max-learners", Int, "1", "Learners allowed at one time."),
    flag("downgrade-check-time", Duration, "5s", "Interval of looking whether a downgrade has finished; 0 is never.")
        .at_least_ms(100),
    flag("snapshot-catchup-entries", Uint, "5000", "Entries kept in the log after a snapshot, for slow members."),
];

#[rustfmt::skip]
pub(super) const UNSAFE: &[Flag] = &[
    flag("force-new-cluster", Bool, "false", "Make a cluster of this member alone out of its data dir; for disasters."),
    flag("unsafe-no-fsync", Bool, "false", "Do not sync files; a crash of the machine loses data."),
];

#[rustfmt::skip]
pub(super) const GENERAL: &[Flag] = &[
    flag("config-file", Text, "", "YAML file with the settings; other flags and variables are then ignored.").not_in_file(),
    flag("version", Bool, "false", "Print the version and stop.").not_in_file(),
];
