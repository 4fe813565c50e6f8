//! Answers about endpoints, one for each.

use client::pb::{HashKvResponse, StatusResponse};

use cli::Table;

use super::{Object, Out, Show, Style, fields, json, writeln};
use crate::text;

pub(crate) struct EndpointHealth {
    pub endpoint: String,
    pub healthy: bool,
    pub took: String,
    pub error: String,
}

impl Show for Vec<EndpointHealth> {
    fn simple(&self, _: Style, out: &mut Out) {
        for EndpointHealth { endpoint, took, error, .. } in self {
            if error.is_empty() {
                writeln(out, &format!("{endpoint} is healthy: successfully committed proposal: took = {took}"));
            } else {
                eprintln!("{endpoint} is unhealthy: failed to commit proposal: {error}");
            }
        }
    }

    fn fields(&self, _: Style, out: &mut Out) -> Option<()> {
        for health in self {
            fields::quoted(out, "Endpoint", health.endpoint.as_bytes());
            fields::line(out, "Health", health.healthy);
            fields::line(out, "Took", &health.took);
            fields::line(out, "Error", &health.error);
            writeln(out, "");
        }
        Some(())
    }

    fn json(&self, _: Style) -> String {
        json::list_or_null(self.iter().map(|health| {
            Object::new()
                .always("endpoint", text::json(&health.endpoint))
                .always("health", health.healthy.to_string())
                .always("took", text::json(&health.took))
                .string("error", &health.error)
                .end()
        }))
    }

    fn table(&self) -> Option<Table> {
        let row = |health: &EndpointHealth| {
            vec![health.endpoint.clone(), health.healthy.to_string(), health.took.clone(), health.error.clone()]
        };
        Some(Table { header: vec!["endpoint", "health", "took", "error"], rows: self.iter().map(row).collect() })
    }
}

pub(crate) struct EndpointStatus {
    pub endpoint: String,
    pub response: StatusResponse,
}

impl EndpointStatus {
    fn row(&self) -> Vec<String> {
        let status = &self.response;
        let member = status.header.map_or(0, |header| header.member_id);
        let downgrade = status.downgrade_info.clone().unwrap_or_default();
        vec![
            self.endpoint.clone(),
            format!("{member:x}"),
            status.version.clone(),
            status.storage_version.clone(),
            cli::size(status.db_size.unsigned_abs()),
            cli::size(status.db_size_in_use.unsigned_abs()),
            format!("{}%", 100 - (status.db_size_in_use * 100).checked_div(status.db_size).unwrap_or(100)),
            cli::size(status.db_size_quota.unsigned_abs()),
            (status.leader == member).to_string(),
            status.is_learner.to_string(),
            status.raft_term.to_string(),
            status.raft_index.to_string(),
            status.raft_applied_index.to_string(),
            status.errors.join(", "),
            downgrade.target_version,
            downgrade.enabled.to_string(),
        ]
    }

    fn fields(&self, style: Style, out: &mut Out) {
        let status = &self.response;
        let downgrade = status.downgrade_info.clone().unwrap_or_default();
        fields::header(out, style, &status.header);
        fields::quoted(out, "Version", status.version.as_bytes());
        fields::quoted(out, "StorageVersion", status.storage_version.as_bytes());
        fields::line(out, "DBSize", status.db_size);
        fields::line(out, "DBSizeInUse", status.db_size_in_use);
        fields::line(out, "DBSizeQuota", status.db_size_quota);
        fields::line(out, "Leader", status.leader);
        fields::line(out, "IsLearner", status.is_learner);
        fields::line(out, "RaftIndex", status.raft_index);
        fields::line(out, "RaftAppliedIndex", status.raft_applied_index);
        fields::line(out, "Errors", format_args!("[{}]", status.errors.join(" ")));
        fields::quoted(out, "Endpoint", self.endpoint.as_bytes());
        fields::quoted(out, "DowngradeTargetVersion", downgrade.target_version.as_bytes());
        fields::line(out, "DowngradeEnabled", downgrade.enabled);
        writeln(out, "");
    }

    fn json(&self) -> String {
        let status = &self.response;
        let downgrade = status.downgrade_info.as_ref().map(|info| {
            Object::new().boolean("enabled", info.enabled).string("targetVersion", &info.target_version).end()
        });
        let status = Object::new()
            .header(&status.header)
            .string("version", &status.version)
            .int("dbSize", status.db_size)
            .uint("leader", status.leader)
            .uint("raftIndex", status.raft_index)
            .uint("raftTerm", status.raft_term)
            .uint("raftAppliedIndex", status.raft_applied_index)
            .strings("errors", &status.errors)
            .int("dbSizeInUse", status.db_size_in_use)
            .boolean("isLearner", status.is_learner)
            .string("storageVersion", &status.storage_version)
            .int("dbSizeQuota", status.db_size_quota)
            .optional("downgradeInfo", downgrade)
            .end();
        Object::new().always("Endpoint", text::json(&self.endpoint)).always("Status", status).end()
    }
}

impl Show for Vec<EndpointStatus> {
    fn simple(&self, _: Style, out: &mut Out) {
        self.iter().for_each(|status| writeln(out, &status.row().join(", ")));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        self.iter().for_each(|status| status.fields(style, out));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        json::list_or_null(self.iter().map(EndpointStatus::json))
    }

    fn table(&self) -> Option<Table> {
        let header = vec![
            "endpoint",
            "ID",
            "version",
            "storage version",
            "db size",
            "in use",
            "percentage not in use",
            "quota",
            "is leader",
            "is learner",
            "raft term",
            "raft index",
            "raft applied index",
            "errors",
            "downgrade target version",
            "downgrade enabled",
        ];
        Some(Table { header, rows: self.iter().map(EndpointStatus::row).collect() })
    }
}

pub(crate) struct EndpointHash {
    pub endpoint: String,
    pub response: HashKvResponse,
}

impl EndpointHash {
    fn row(&self) -> Vec<String> {
        vec![self.endpoint.clone(), self.response.hash.to_string(), self.response.hash_revision.to_string()]
    }

    fn json(&self) -> String {
        let hash = Object::new()
            .header(&self.response.header)
            .uint("hash", self.response.hash.into())
            .int("compact_revision", self.response.compact_revision)
            .int("hash_revision", self.response.hash_revision)
            .end();
        Object::new().always("Endpoint", text::json(&self.endpoint)).always("HashKV", hash).end()
    }
}

impl Show for Vec<EndpointHash> {
    fn simple(&self, _: Style, out: &mut Out) {
        self.iter().for_each(|hash| writeln(out, &hash.row().join(", ")));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        for hash in self {
            fields::header(out, style, &hash.response.header);
            fields::quoted(out, "Endpoint", hash.endpoint.as_bytes());
            fields::line(out, "Hash", hash.response.hash);
            fields::line(out, "HashRevision", hash.response.hash_revision);
            writeln(out, "");
        }
        Some(())
    }

    fn json(&self, _: Style) -> String {
        json::list_or_null(self.iter().map(EndpointHash::json))
    }

    fn table(&self) -> Option<Table> {
        Some(Table {
            header: vec!["endpoint", "hash", "hash_revision"],
            rows: self.iter().map(EndpointHash::row).collect(),
        })
    }
}
