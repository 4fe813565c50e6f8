//! `migrate --compare`: whether the data dirs of all members hold the same.

use std::{path::PathBuf, time::Duration};

use cli::Table;
use serde::Serialize;

use super::hash::{self, Hash};
use crate::{
    failure::Failure,
    print::{self, Format},
    survey::{Survey, named},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    data_dir: String,
    cluster_id: String,
    member_id: String,
    at_version: String,
    cluster_version: String,
    applied_index: u64,
    applied_term: u64,
    commit_index: u64,
    last_index: u64,
    /// Of the newest revision of this member.
    hash: Hash,
    /// Of the newest revision that every member has; none if that is compacted here.
    common_hash: Option<Hash>,
}

#[derive(Serialize)]
struct Comparison<'a> {
    members: &'a [Member],
    differences: &'a [String],
}

pub(super) fn run(dirs: &[PathBuf], format: Format, lock_timeout: Option<Duration>) -> Result<(), Failure> {
    let surveys = dirs.iter().map(|dir| Survey::look(&named(dir, None), lock_timeout));
    let surveys = surveys.collect::<anyhow::Result<Vec<_>>>()?;
    let mut members = surveys.iter().map(look).collect::<anyhow::Result<Vec<_>>>()?;
    let common = members.iter().map(|member| member.hash.revision).min().unwrap_or(0);
    for (member, survey) in members.iter_mut().zip(&surveys) {
        let is_compacted = member.hash.compact_revision > common;
        member.common_hash = if is_compacted { None } else { Some(hash::at(&survey.file, common)?) };
    }
    let differences = differences(&members, common);
    show(&members, &differences, format)?;
    if differences.is_empty() { Ok(()) } else { Err(Failure::told(1)) }
}

fn look(survey: &Survey) -> anyhow::Result<Member> {
    let text = |version: Option<storage::Version>| version.map_or("none".to_owned(), |version| version.to_string());
    Ok(Member {
        data_dir: survey.dir.root().display().to_string(),
        cluster_id: survey.cluster.id.to_string(),
        member_id: survey.cluster.local.to_string(),
        at_version: text(survey.version()),
        cluster_version: text(survey.cluster.version()),
        applied_index: survey.applied.0,
        applied_term: survey.applied.1,
        commit_index: survey.commit(),
        last_index: survey.log.last,
        hash: hash::of(&survey.file)?,
        common_hash: None,
    })
}

/// What differs from the member that is furthest, in words that name both.
fn differences(members: &[Member], common: i64) -> Vec<String> {
    let Some(furthest) = members.iter().max_by_key(|member| (member.commit_index, member.applied_index)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for member in members {
        let mut differ = |what: &str, here: String, there: String| {
            if here != there {
                found.push(format!("{}: {what} is {here}, in {} it is {there}", member.data_dir, furthest.data_dir));
            }
        };
        differ("cluster id", member.cluster_id.clone(), furthest.cluster_id.clone());
        differ("version", member.at_version.clone(), furthest.at_version.clone());
        differ("cluster version", member.cluster_version.clone(), furthest.cluster_version.clone());
        differ("applied index", member.applied_index.to_string(), furthest.applied_index.to_string());
        differ("applied term", member.applied_term.to_string(), furthest.applied_term.to_string());
        differ("commit index", member.commit_index.to_string(), furthest.commit_index.to_string());
        let hash = |member: &Member| match &member.common_hash {
            Some(hash) => format!("{} (compacted {})", hash.hash, hash.compact_revision),
            None => "compacted".to_owned(),
        };
        differ(&format!("hashkv at revision {common}"), hash(member), hash(furthest));
    }
    found
}

fn show(members: &[Member], differences: &[String], format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        let text = serde_json::to_string(&Comparison { members, differences }).map_err(Failure::error)?;
        return print::print((text + "\n").as_bytes());
    }
    let header = vec![
        "data dir",
        "member",
        "version",
        "cluster version",
        "applied",
        "term",
        "commit",
        "last",
        "revision",
        "hashkv",
    ];
    let rows = members.iter().map(|member| {
        vec![
            member.data_dir.clone(),
            member.member_id.clone(),
            member.at_version.clone(),
            member.cluster_version.clone(),
            member.applied_index.to_string(),
            member.applied_term.to_string(),
            member.commit_index.to_string(),
            member.last_index.to_string(),
            member.hash.revision.to_string(),
            member.hash.hash.to_string(),
        ]
    });
    let mut text = Table { header, rows: rows.collect() }.render();
    if differences.is_empty() {
        text += "all are equal\n";
    }
    differences.iter().for_each(|line| text += &format!("DIFFERENT: {line}\n"));
    print::print(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(dir: &str, index: u64, hash: u32) -> Member {
        let hash = Hash { hash, revision: 5, compact_revision: -1 };
        Member {
            data_dir: dir.into(),
            cluster_id: "c".into(),
            member_id: dir.into(),
            at_version: "3.7".into(),
            cluster_version: "3.7".into(),
            applied_index: index,
            applied_term: 2,
            commit_index: index,
            last_index: index,
            common_hash: Some(hash.clone()),
            hash,
        }
    }

    #[test]
    fn the_member_that_differs_is_named() {
        assert!(differences(&[member("a", 9, 1), member("b", 9, 1)], 5).is_empty());
        let found = differences(&[member("a", 9, 1), member("b", 8, 1), member("c", 9, 2)], 5);
        let about = |dir: &str| found.iter().filter(|line| line.starts_with(dir)).cloned().collect::<Vec<_>>();
        assert_eq!(about("b: ").len(), 3, "{found:#?}");
        assert!(about("b: ")[0].contains("applied index is 8"), "{found:#?}");
        // The last of equals counts as the furthest.
        assert!(about("a: ")[0].contains("hashkv at revision 5 is 1 (compacted -1), in c it is 2"), "{found:#?}");
    }
}
