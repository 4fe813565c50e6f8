//! Answers about members. Only here does `--hex` change JSON.

use client::pb::{
    Member, MemberAddResponse, MemberListResponse, MemberPromoteResponse, MemberRemoveResponse, MemberUpdateResponse,
    ResponseHeader,
};

use cli::Table;

use super::{Object, Out, Show, Style, encode, fields, json, writeln};
use crate::text;

fn member_json(member: &Member, style: Style) -> String {
    let object = Object::new();
    let object = if style.hex {
        object.always("ID", text::json(&format!("{:x}", member.id)))
    } else {
        object.uint("ID", member.id)
    };
    object
        .string("name", &member.name)
        .strings("peerURLs", &member.peer_ur_ls)
        .strings("clientURLs", &member.client_ur_ls)
        .boolean("isLearner", member.is_learner)
        .end()
}

/// A list of members, and for an addition the new one; all these answers look alike.
fn answer_json(header: &Option<ResponseHeader>, member: Option<&Member>, members: &[Member], style: Style) -> String {
    let all = members.iter().map(|member| member_json(member, style));
    let member = member.map(|member| member_json(member, style));
    if !style.hex {
        return Object::new().header(header).optional("member", member).list("members", all).end();
    }
    let hex = |id: u64| text::json(&format!("{id:x}"));
    let header = header.unwrap_or_default();
    let header = Object::new()
        .always("cluster_id", hex(header.cluster_id))
        .always("member_id", hex(header.member_id))
        .int("revision", header.revision)
        .uint("raft_term", header.raft_term)
        .end();
    Object::new().always("header", header).optional("member", member).always("members", json::list(all)).end()
}

fn cluster_id(header: &Option<ResponseHeader>) -> u64 {
    header.map_or(0, |header| header.cluster_id)
}

impl Show for MemberAddResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        let member = self.member.clone().unwrap_or_default();
        let learner = if member.is_learner { " as learner " } else { " " };
        let cluster = cluster_id(&self.header);
        writeln(out, &format!("Member {:16x} added{learner}to cluster {cluster:16x}", member.id));
    }

    fn json(&self, style: Style) -> String {
        answer_json(&self.header, self.member.as_ref(), &self.members, style)
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

macro_rules! changed {
    ($name:ident, $response:ty, $text:literal) => {
        pub(crate) struct $name {
            pub(crate) id: u64,
            pub(crate) response: $response,
        }

        impl Show for $name {
            fn simple(&self, _: Style, out: &mut Out) {
                let cluster = cluster_id(&self.response.header);
                writeln(out, &format!(concat!("Member {:16x} ", $text, " cluster {:16x}"), self.id, cluster));
            }

            fn json(&self, style: Style) -> String {
                answer_json(&self.response.header, None, &self.response.members, style)
            }

            fn protobuf(&self) -> Option<Vec<u8>> {
                encode(&self.response)
            }
        }
    };
}

changed!(Removed, MemberRemoveResponse, "removed from");
changed!(Updated, MemberUpdateResponse, "updated in");
changed!(Promoted, MemberPromoteResponse, "promoted in");

impl Show for MemberListResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        self.members.iter().for_each(|member| writeln(out, &row(member).join(", ")));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        for member in &self.members {
            fields::id(out, style, "ID", member.id);
            fields::quoted(out, "Name", member.name.as_bytes());
            member.peer_ur_ls.iter().for_each(|url| fields::quoted(out, "PeerURL", url.as_bytes()));
            member.client_ur_ls.iter().for_each(|url| fields::quoted(out, "ClientURL", url.as_bytes()));
            fields::line(out, "IsLearner", member.is_learner);
            writeln(out, "");
        }
        Some(())
    }

    fn json(&self, style: Style) -> String {
        answer_json(&self.header, None, &self.members, style)
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }

    fn table(&self) -> Option<Table> {
        let header = vec!["ID", "Status", "Name", "Peer Addrs", "Client Addrs", "Is Learner"];
        Some(Table { header, rows: self.members.iter().map(row).collect() })
    }
}

fn row(member: &Member) -> Vec<String> {
    let status = if member.name.is_empty() { "unstarted" } else { "started" };
    vec![
        format!("{:x}", member.id),
        status.to_owned(),
        member.name.clone(),
        member.peer_ur_ls.join(","),
        member.client_ur_ls.join(","),
        member.is_learner.to_string(),
    ]
}
