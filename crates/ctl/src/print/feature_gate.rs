//! Answers about cluster features: which are on, who proposes what, what holds a feature off.

use cli::Table;
use client::pb::{Feature, FeatureGateStatusResponse, FeatureProposal};

use super::{Object, Out, Show, Style, encode, fields, json, writeln};
use crate::text;

pub(crate) struct EndpointGate {
    pub endpoint: String,
    pub response: FeatureGateStatusResponse,
}

/// What the endpoints answered. One line or column names the endpoint where several were asked.
pub(crate) struct EndpointGates {
    pub gates: Vec<EndpointGate>,
    pub asked_several: bool,
    /// The question was for one feature, so the simple answer is true or false.
    pub asked_one_feature: bool,
}

fn member(proposal: &FeatureProposal) -> String {
    let name =
        if proposal.member_name.is_empty() { &format!("{:x}", proposal.member_id) } else { &proposal.member_name };
    if proposal.is_learner { format!("{name} (learner)") } else { name.clone() }
}

fn value(proposal: &FeatureProposal) -> &'static str {
    match (proposal.proposed, proposal.known, proposal.enabled) {
        (false, ..) => "–",
        (true, false, _) => "unknown",
        (true, true, true) => "on",
        (true, true, false) => "off",
    }
}

/// Voters first, each kind by name.
fn proposals(feature: &Feature) -> String {
    let mut all: Vec<_> = feature.proposals.iter().collect();
    all.sort_by_key(|proposal| (proposal.is_learner, &proposal.member_name, proposal.member_id));
    let all = all.into_iter().map(|proposal| format!("{}: {}", member(proposal), value(proposal)));
    all.collect::<Vec<_>>().join(", ")
}

/// The heading says "held off by" once for all.
fn reasons(feature: &Feature) -> String {
    let reasons = feature.held_off_by.iter().map(|reason| reason.strip_prefix("held off by ").unwrap_or(reason));
    reasons.collect::<Vec<_>>().join("; ")
}

fn switch(feature: &Feature) -> &'static str {
    match (feature.enabled, feature.locked) {
        (true, false) => "on",
        (false, false) => "off",
        (true, true) => "on (locked)",
        (false, true) => "off (locked)",
    }
}

impl EndpointGate {
    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.response.features.iter().map(|feature| {
            vec![
                self.endpoint.clone(),
                feature.name.clone(),
                feature.stage.clone(),
                switch(feature).to_owned(),
                proposals(feature),
                reasons(feature),
            ]
        })
    }

    fn fields(&self, style: Style, out: &mut Out) {
        let gate = &self.response;
        fields::header(out, style, &gate.header);
        fields::quoted(out, "Endpoint", self.endpoint.as_bytes());
        fields::quoted(out, "ClusterVersion", gate.cluster_version.as_bytes());
        fields::line(out, "GateIndex", gate.gate_index);
        fields::line(out, "RelevantIndex", gate.relevant_index);
        fields::line(out, "AppliedIndex", gate.applied_index);
        for feature in &gate.features {
            feature_fields(style, feature, out);
        }
        writeln(out, "");
    }

    fn json(&self) -> String {
        let gate = &self.response;
        let inner = Object::new()
            .header(&gate.header)
            .list("features", gate.features.iter().map(feature_json))
            .string("cluster_version", &gate.cluster_version)
            .uint("gate_index", gate.gate_index)
            .uint("relevant_index", gate.relevant_index)
            .uint("applied_index", gate.applied_index)
            .end();
        Object::new().always("Endpoint", text::json(&self.endpoint)).always("FeatureGate", inner).end()
    }
}

fn feature_fields(style: Style, feature: &Feature, out: &mut Out) {
    fields::quoted(out, "Feature", feature.name.as_bytes());
    fields::line(out, "Enabled", feature.enabled);
    fields::quoted(out, "Stage", feature.stage.as_bytes());
    fields::line(out, "DefaultEnabled", feature.default_enabled);
    fields::line(out, "Locked", feature.locked);
    for proposal in &feature.proposals {
        fields::id(out, style, "ProposalMemberID", proposal.member_id);
        fields::quoted(out, "ProposalMemberName", proposal.member_name.as_bytes());
        fields::line(out, "ProposalIsLearner", proposal.is_learner);
        fields::quoted(out, "Proposal", value(proposal).as_bytes());
    }
    feature.held_off_by.iter().for_each(|reason| fields::quoted(out, "HeldOffBy", reason.as_bytes()));
}

/// `enabled` is there also if it is false: it is the answer.
fn feature_json(feature: &Feature) -> String {
    Object::new()
        .string("name", &feature.name)
        .always("enabled", feature.enabled.to_string())
        .string("stage", &feature.stage)
        .boolean("default_enabled", feature.default_enabled)
        .boolean("locked", feature.locked)
        .list("proposals", feature.proposals.iter().map(proposal_json))
        .strings("held_off_by", &feature.held_off_by)
        .end()
}

fn proposal_json(proposal: &FeatureProposal) -> String {
    Object::new()
        .uint("member_ID", proposal.member_id)
        .string("member_name", &proposal.member_name)
        .boolean("is_learner", proposal.is_learner)
        .boolean("proposed", proposal.proposed)
        .boolean("known", proposal.known)
        .boolean("enabled", proposal.enabled)
        .end()
}

impl EndpointGates {
    fn answers(&self, out: &mut Out) {
        for EndpointGate { endpoint, response } in &self.gates {
            let is_on = response.features.iter().all(|feature| feature.enabled);
            if !self.asked_several {
                writeln(out, &is_on.to_string())
            } else {
                writeln(out, &format!("{endpoint}, {is_on}"))
            }
        }
    }
}

impl Show for EndpointGates {
    /// A table too: reasons are sentences, and lines parted by commas would not be simple.
    fn simple(&self, _: Style, out: &mut Out) {
        if self.asked_one_feature {
            return self.answers(out);
        }
        out.extend(self.table().iter().flat_map(|table| table.render().into_bytes()));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        self.gates.iter().for_each(|gate| gate.fields(style, out));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        json::list_or_null(self.gates.iter().map(EndpointGate::json))
    }

    /// One message, so the answer of one endpoint.
    fn protobuf(&self) -> Option<Vec<u8>> {
        let [gate] = self.gates.as_slice() else { return None };
        encode(&gate.response)
    }

    fn table(&self) -> Option<Table> {
        let skipped = usize::from(!self.asked_several);
        let header = ["endpoint", "feature", "stage", "enabled", "proposals", "held off by"];
        let rows = self.gates.iter().flat_map(EndpointGate::rows).map(|row| row[skipped..].to_vec());
        Some(Table { header: header[skipped..].to_vec(), rows: rows.collect() })
    }
}
