//! The database of the new member: the snapshot's contents with the members of the new cluster.

use std::path::Path;

use anyhow::bail;
use serde_json::json;
use storage::{
    Backend, Bucket, Options, Read, RevisionKey,
    schema::{MemberRecord, gate, member, meta},
};

use super::{NewCluster, Plan, first_log};
use crate::{failure::open_error, log, status::check_pages};

/// Refuses what is not a sound database of etcd. `shown` is the file as the user knows it.
pub(super) fn check(path: &Path, shown: &Path) -> anyhow::Result<()> {
    let checked = || {
        let file = Backend::open_read_only(path, None).map_err(open_error)?;
        check_pages(&file)?;
        let names = file.bucket_names()?;
        for bucket in [Bucket::Key, Bucket::Meta] {
            if !names.iter().any(|name| name == bucket.name().as_bytes()) {
                bail!("a database without bucket {:?} was not written by etcd", bucket.name());
            }
        }
        Ok(())
    };
    // The file checked has a name that is gone when the user reads this.
    let renamed = |error: anyhow::Error| {
        let text = format!("{error:#}").replace(&path.display().to_string(), &shown.display().to_string());
        anyhow::anyhow!("{} cannot be restored: {text}", shown.display())
    };
    checked().map_err(renamed)
}

/// Writes what differs in the new cluster, in one commit.
pub(super) fn adapt(path: &Path, plan: &Plan) -> anyhow::Result<()> {
    let options = Options { map_bytes: plan.map_bytes, ..Options::default() };
    let backend = Backend::open(path, options).map_err(open_error)?;
    let bumped = bumped_revision(&backend, plan.bump_revision)?;
    let mut batch = backend.write();
    member::clear(&mut batch);
    gate::clear(&mut batch);
    for member in &plan.cluster.members {
        member::put(&mut batch, &record(member));
    }
    meta::put_conf_state(&mut batch, &first_log::conf_state(&plan.cluster));
    batch.set_consistent(plan.cluster.members.len() as u64, first_log::TERM);
    if let Some(revision) = bumped {
        // etcd goes by the last key of the bucket, whatever its value is.
        batch.put(Bucket::Key, RevisionKey::new(revision, 0), &b""[..]);
        meta::put_scheduled_compact_rev(&mut batch, revision);
        log::info("marking revision compacted", &[("revision", json!(revision))]);
    }
    batch.commit()?;
    backend.close()?;
    tell_members(&plan.cluster);
    Ok(())
}

pub(super) fn record(member: &membership::Member) -> MemberRecord {
    MemberRecord {
        id: member.id.0,
        peer_urls: member.peer_urls.clone(),
        is_learner: member.is_learner,
        name: member.name.clone(),
        client_urls: member.client_urls.clone(),
    }
}

/// The newest revision raised by `bump`; none if it is not to be raised.
fn bumped_revision(backend: &Backend, bump: u64) -> anyhow::Result<Option<i64>> {
    if bump == 0 {
        return Ok(None);
    }
    let mut latest = 0;
    backend.view().scan(Bucket::Key, b"", b"", &mut |key, _| {
        latest = RevisionKey::decode(key).map_or(latest, |at| at.main);
        std::ops::ControlFlow::Continue(())
    });
    let bumped = i64::try_from(bump).ok().and_then(|bump| bump.checked_add(latest));
    let Some(bumped) = bumped else {
        bail!("--bump-revision={bump} on top of revision {latest} is more than {}, the largest revision", i64::MAX);
    };
    log::info(
        "bumping latest revision",
        &[("latest-revision", json!(latest)), ("bump-amount", json!(bump)), ("new-latest-revision", json!(bumped))],
    );
    Ok(Some(bumped))
}

fn tell_members(cluster: &NewCluster) {
    for member in &cluster.members {
        log::info(
            "added member",
            &[
                ("cluster-id", json!(cluster.id.to_string())),
                ("added-peer-id", json!(member.id.to_string())),
                ("added-peer-peer-urls", json!(member.peer_urls)),
            ],
        );
    }
}
