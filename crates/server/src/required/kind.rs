//! Where a call is judged that requires features.

/// How a method's calls are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Where its entry is applied; what it reads besides, where it is read.
    Write,
    /// At its read index, or at this member's state if it is serializable; nothing newer than a change is sent.
    Read,
    /// After a read index, before it runs.
    Act,
    /// After a read index, before it runs, and whenever the gate changes.
    Stream,
}

/// All methods that are judged in another way than [`Kind::Act`].
const METHODS: &[(&str, Kind)] = &[
    ("/etcdserverpb.Cluster/MemberList", Kind::Read),
    ("/etcdserverpb.KV/Compact", Kind::Write),
    ("/etcdserverpb.KV/DeleteRange", Kind::Write),
    ("/etcdserverpb.KV/Increment", Kind::Write),
    ("/etcdserverpb.KV/Put", Kind::Write),
    ("/etcdserverpb.KV/Range", Kind::Read),
    ("/etcdserverpb.KV/RangeStream", Kind::Read),
    ("/etcdserverpb.KV/Txn", Kind::Write),
    ("/etcdserverpb.Lease/LeaseGrant", Kind::Write),
    ("/etcdserverpb.Lease/LeaseKeepAlive", Kind::Stream),
    ("/etcdserverpb.Lease/LeaseRevoke", Kind::Write),
    ("/etcdserverpb.Maintenance/Alarm", Kind::Write),
    ("/etcdserverpb.Maintenance/FeatureGateHistory", Kind::Stream),
    ("/etcdserverpb.Maintenance/FeatureGateStatus", Kind::Read),
    ("/etcdserverpb.Maintenance/Snapshot", Kind::Stream),
    ("/etcdserverpb.Watch/Watch", Kind::Stream),
    ("/grpc.health.v1.Health/Watch", Kind::Stream),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Kind::Stream),
    ("/v3electionpb.Election/Campaign", Kind::Write),
    ("/v3electionpb.Election/Observe", Kind::Stream),
    ("/v3electionpb.Election/Proclaim", Kind::Write),
    ("/v3electionpb.Election/Resign", Kind::Write),
    ("/v3lockpb.Lock/Lock", Kind::Write),
    ("/v3lockpb.Lock/Unlock", Kind::Write),
];

impl Kind {
    pub(crate) fn of(path: &str) -> Kind {
        // Most names differ in length, which is cheaper to compare than what they have in common.
        let named = |(method, _): &&(&str, Kind)| method.len() == path.len() && *method == path;
        METHODS.iter().find(named).map_or(Kind::Act, |(_, kind)| *kind)
    }

    /// Judged by the layer, before the service is called.
    pub(crate) fn is_judged_first(self) -> bool {
        matches!(self, Kind::Act | Kind::Stream)
    }

    /// The answer depends on the features as long as it is sent.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, Kind::Read | Kind::Stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_in_order_and_exist() {
        assert!(METHODS.is_sorted_by_key(|(method, _)| method));
        for (method, _) in METHODS.iter().filter(|(method, _)| !method.starts_with("/grpc.")) {
            let (service, name) = method[1..].split_once('/').expect("service and method");
            let service = proto::pool().get_service_by_name(service).expect(service);
            assert!(service.methods().any(|m| m.name() == name), "{method}");
        }
    }

    /// What streams must be ended when the gate changes.
    #[test]
    fn every_stream_is_held() {
        for service in proto::pool().services() {
            for method in service.methods().filter(|m| m.is_server_streaming()) {
                let path = format!("/{}/{}", service.full_name(), method.name());
                assert!(Kind::of(&path).is_held(), "{path}");
            }
        }
    }
}
