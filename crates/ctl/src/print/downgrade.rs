//! The downgrade job, as each member stands to it, and what it still waits for.

use cli::Table;
use client::pb::StatusResponse;

use super::{Object, Out, Show, Style, fields, json, writeln};
use crate::text;

/// A real etcd takes nobody in during a job, whatever the cluster version.
const TARGET_RUNS: &str = "the other members: this one runs the target; a member that joins must not ask it first (name a lockgate member \
     first in --initial-cluster, or wait until the job has ended)";

/// What a member answered; `None` if it did not.
pub(crate) struct MemberDowngrade {
    pub endpoint: String,
    pub status: Option<StatusResponse>,
}

/// `3.7` of `3.7.3`.
fn minor(version: &str) -> &str {
    let end = version.match_indices('.').nth(1).map_or(version.len(), |(at, _)| at);
    &version[..end]
}

impl MemberDowngrade {
    fn version(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.version)
    }

    fn storage(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.storage_version)
    }

    /// Empty if there is no job.
    fn target(&self) -> &str {
        let job = self.status.as_ref().and_then(|status| status.downgrade_info.as_ref());
        job.filter(|job| job.enabled).map_or("", |job| &job.target_version)
    }

    fn waits_for(&self) -> String {
        let Some(status) = &self.status else { return "it does not answer".to_owned() };
        let (target, storage) = (minor(self.target()), minor(self.storage()));
        let binary = minor(&status.version);
        match () {
            () if target.is_empty() && storage == binary => "nothing: there is no downgrade job".to_owned(),
            () if target.is_empty() => {
                format!("the cluster version to rise from {storage}: a member is older, or was just now")
            }
            () if binary == target => TARGET_RUNS.to_owned(),
            () if storage == target => format!("its operator: ready, stop it and start {target} on its data dir"),
            () => format!("the cluster version to drop, and its file to go from {storage} to {target}"),
        }
    }
}

impl Show for Vec<MemberDowngrade> {
    fn simple(&self, _: Style, out: &mut Out) {
        for member in self {
            let (version, storage, target) = (member.version(), member.storage(), member.target());
            writeln(out, &format!("{}, {version}, {storage}, {target}, {}", member.endpoint, member.waits_for()));
        }
    }

    fn fields(&self, _: Style, out: &mut Out) -> Option<()> {
        for member in self {
            fields::quoted(out, "Endpoint", member.endpoint.as_bytes());
            fields::quoted(out, "Version", member.version().as_bytes());
            fields::quoted(out, "StorageVersion", member.storage().as_bytes());
            fields::quoted(out, "DowngradeTargetVersion", member.target().as_bytes());
            fields::quoted(out, "WaitsFor", member.waits_for().as_bytes());
            writeln(out, "");
        }
        Some(())
    }

    fn json(&self, _: Style) -> String {
        json::list_or_null(self.iter().map(|member| {
            Object::new()
                .always("endpoint", text::json(&member.endpoint))
                .string("version", member.version())
                .string("storage_version", member.storage())
                .string("target_version", member.target())
                .always("waits_for", text::json(&member.waits_for()))
                .end()
        }))
    }

    fn table(&self) -> Option<Table> {
        let row = |member: &MemberDowngrade| {
            let (version, storage, target) = (member.version(), member.storage(), member.target());
            vec![member.endpoint.clone(), version.into(), storage.into(), target.into(), member.waits_for()]
        };
        let header = vec!["endpoint", "version", "storage version", "target", "waits for"];
        Some(Table { header, rows: self.iter().map(row).collect() })
    }
}

#[cfg(test)]
mod tests {
    use client::pb::DowngradeInfo;
    use test_case::test_case;

    use super::*;

    #[test_case("3.8.0", "3.8.0", "" => "nothing: there is no downgrade job".to_owned(); "no job")]
    #[test_case("3.8.0", "3.7.0", "" => "the cluster version to rise from 3.7: a member is older, or was just now".to_owned(); "cancelled")]
    #[test_case("3.8.0", "3.8.0", "3.7.0" => "the cluster version to drop, and its file to go from 3.8 to 3.7".to_owned(); "begun")]
    #[test_case("3.8.0", "3.7.0", "3.7.0" => "its operator: ready, stop it and start 3.7 on its data dir".to_owned(); "ready")]
    #[test_case("3.7.3", "3.7.0", "3.7.0" => TARGET_RUNS.to_owned(); "done")]
    fn says(version: &str, storage: &str, target: &str) -> String {
        let job = DowngradeInfo { enabled: !target.is_empty(), target_version: target.into() };
        let status = StatusResponse {
            version: version.into(),
            storage_version: storage.into(),
            downgrade_info: Some(job),
            ..Default::default()
        };
        MemberDowngrade { endpoint: "a".into(), status: Some(status) }.waits_for()
    }
}
