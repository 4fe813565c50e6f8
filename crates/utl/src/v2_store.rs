//! etcd's first key-value store, as far as releases up to 3.6 still start from it: members and cluster version, in `.snap`
//! files.

use std::path::Path;

use membership::{Member, MemberId};
use proto::Version;
use serde_json::{Map, Value, json};
use wal::snapfile;

/// The store with these members, removed ids and version.
pub(crate) fn render<'a>(
    members: impl IntoIterator<Item = &'a Member>,
    removed: impl IntoIterator<Item = MemberId>,
    version: Option<Version>,
) -> Value {
    let mut index = 0;
    let mut next = || {
        index += 1;
        index
    };
    let mut found = Map::new();
    for member in members {
        let path = format!("/0/members/{}", member.id);
        let at = next();
        let mut children = Map::new();
        let mut raft = json!({ "peerURLs": member.peer_urls });
        if member.is_learner {
            raft["isLearner"] = json!(true);
        }
        children.insert("raftAttributes".into(), leaf(&format!("{path}/raftAttributes"), at, &raft.to_string()));
        if !member.client_urls.is_empty() {
            let attributes = json!({ "name": member.name, "clientURLs": member.client_urls }).to_string();
            children.insert("attributes".into(), leaf(&format!("{path}/attributes"), next(), &attributes));
        }
        found.insert(member.id.to_string(), dir(&path, at, children));
    }
    let mut store = Map::new();
    store.insert("members".into(), dir("/0/members", 1, found));
    let removed: Vec<_> = removed.into_iter().collect();
    if !removed.is_empty() {
        let at = next();
        let gone = removed.iter().map(|id| (id.to_string(), leaf(&format!("/0/removed_members/{id}"), at, "")));
        store.insert("removed_members".into(), dir("/0/removed_members", at, gone.collect()));
    }
    if let Some(version) = version {
        store.insert("version".into(), leaf("/0/version", next(), &version.stored()));
    }
    let root = [("0".to_owned(), dir("/0", 0, store)), ("1".to_owned(), dir("/1", 0, Map::new()))];
    json!({ "Root": dir("/", 0, root.into_iter().collect()), "CurrentIndex": index, "CurrentVersion": 2 })
}

fn leaf(path: &str, index: u64, value: &str) -> Value {
    node(path, index, value, Value::Null)
}

fn dir(path: &str, index: u64, children: Map<String, Value>) -> Value {
    node(path, index, "", children.into())
}

fn node(path: &str, index: u64, value: &str, children: Value) -> Value {
    json!({
        "Path": path,
        "CreatedIndex": index,
        "ModifiedIndex": index,
        "ExpireTime": "0001-01-01T00:00:00Z",
        "Value": value,
        "Children": children,
    })
}

/// Paths in the newest `.snap` file that hold data of users of the v2 API, which no release since 3.6 keeps.
pub(crate) fn foreign(snap_dir: &Path) -> Vec<String> {
    let newest = snapfile::list(snap_dir).unwrap_or_default().into_iter().find_map(|path| snapfile::read(&path).ok());
    let store = newest.and_then(|snapshot| serde_json::from_slice::<Value>(&snapshot.data.unwrap_or_default()).ok());
    let mut found = Vec::new();
    if let Some(store) = store {
        collect(&store["Root"], &mut found);
    }
    found
}

/// Leaves that are not the cluster's own.
fn collect(node: &Value, found: &mut Vec<String>) {
    let path = node["Path"].as_str().unwrap_or_default();
    let own = ["/0/members", "/0/removed_members", "/0/version"].iter().any(|own| path.starts_with(own));
    match node["Children"].as_object() {
        _ if own => {}
        Some(children) => children.values().for_each(|child| collect(child, found)),
        None => found.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Member {
        Member {
            id: MemberId(0xab),
            peer_urls: vec!["http://a:1".into()],
            is_learner: true,
            name: "n".into(),
            client_urls: vec!["http://a:2".into()],
        }
    }

    #[test]
    fn it_holds_members_removed_ids_and_version() {
        let store = render([&member()], [MemberId(0xcd)], Some(Version::new(3, 6)));
        let at = |path: &str| {
            let walk = path.split('/').fold(&store["Root"], |node, name| &node["Children"][name]);
            walk["Value"].as_str().map(ToOwned::to_owned)
        };
        let raft = at("0/members/ab/raftAttributes").unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&raft).unwrap(),
            json!({"peerURLs": ["http://a:1"], "isLearner": true})
        );
        assert!(at("0/members/ab/attributes").unwrap().contains("http://a:2"));
        assert_eq!(at("0/removed_members/cd").as_deref(), Some(""));
        assert_eq!(at("0/version").as_deref(), Some("3.6.0"));
        assert!(store["Root"]["Children"]["1"]["Children"].as_object().unwrap().is_empty());
    }

    #[test]
    fn data_of_users_is_found() {
        let mut store = render([&member()], [], None);
        let mut found = Vec::new();
        collect(&store["Root"], &mut found);
        assert!(found.is_empty(), "{found:?}");
        store["Root"]["Children"]["1"]["Children"]["k"] = leaf("/1/k", 9, "v");
        collect(&store["Root"], &mut found);
        assert_eq!(found, ["/1/k"]);
    }
}
