//! Carries a plan out: a copy is brought to the target and put in place as a whole.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, bail};
use failpoint::failpoint;
use membership::{ClusterId, MemberId};
use node::{
    DataDir,
    offline::{Offline, Touched, cluster_of, conf_state_of},
    snapshot_record,
    swap::Staging,
};
use proto::raftpb::{self, Entry};
use serde_json::json;
use storage::{
    Backend, Options,
    schema::{cluster, meta, migrate, plan::VERSION_MAX, version},
};
use wal::{Wal, snapfile};

use super::{
    hash::{self, Hash},
    plan::{Migration, check_begins},
    space,
};
use crate::{
    failure::{open_error, path_error},
    log,
    progress::Progress,
    survey::Survey,
    v2_store,
};

const CHUNK_BYTES: usize = 1 << 20;

/// Does all of it, or leaves the dir as it was.
pub(super) fn carry_out(survey: Survey, plan: &Migration, force: bool) -> anyhow::Result<()> {
    match space::check(&survey) {
        Err(error) if !force => return Err(error.context("--force goes on all the same")),
        Err(error) => {
            eprintln!("WARNING: --force skips a check: {error:#}. If the disk fills up, the dir stays as it is.")
        }
        Ok(()) => {}
    }
    let staging = Staging::begin(&survey.dir)?;
    survey.check_in_place()?;
    let new = staging.new_dir();
    copy(&survey.database, &new.db())?;
    failpoint!("migrateAfterCopy");
    bring_database(&survey, plan, &new)?;
    let hash = check_hash(plan, &new)?;
    write_log(&survey, plan, &new)?;
    failpoint!("migrateAfterLog");
    staging.commit()?;
    log::info(
        "migrated",
        &[
            ("data-dir", json!(survey.dir.root())),
            ("from", json!(plan.from.to_string())),
            ("storage-version", json!(plan.to.stored())),
            ("applied-index", json!(survey.commit())),
            ("hashkv", json!(hash.hash)),
            ("hash-revision", json!(hash.revision)),
        ],
    );
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut source = File::open(from).map_err(|error| path_error("open", from, &error))?;
    let bytes = source.metadata().map_err(|error| path_error("stat", from, &error))?.len();
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .map_err(|error| path_error("open", to, &error))?;
    let mut progress = Progress::bytes("copying", bytes);
    let (mut chunk, mut done) = (vec![0; CHUNK_BYTES], 0);
    loop {
        let read = source.read(&mut chunk).map_err(|error| path_error("read", from, &error))?;
        if read == 0 {
            break;
        }
        out.write_all(&chunk[..read]).map_err(|error| path_error("write", to, &error))?;
        done += read as u64;
        progress.set(done);
    }
    out.sync_all().map_err(|error| path_error("sync", to, &error))
}

/// Committed entries come in, then the schema changes, with the versions, in one commit.
fn bring_database(survey: &Survey, plan: &Migration, new: &DataDir) -> anyhow::Result<()> {
    let backend = Backend::open(&new.db(), Options::default()).map_err(open_error)?;
    apply(survey, plan, &backend)?;
    failpoint!("migrateAfterApply");
    check_begins(plan, version::detect(&backend.view())?)?;
    let mut batch = backend.write();
    migrate::execute(&mut batch, &plan.schema)?;
    if plan.cluster_version.is_some() {
        cluster::put_version(&mut batch, plan.to);
    }
    let job = cluster::downgrade(&batch)?.filter(|job| job.enabled);
    if job.is_some() {
        cluster::put_downgrade(&mut batch, &cluster::Downgrade::default());
    }
    batch.commit()?;
    failpoint!("migrateAfterSchema");
    backend.close()?;
    Ok(())
}

fn apply(survey: &Survey, plan: &Migration, backend: &Backend) -> anyhow::Result<()> {
    let Some((first, last)) = plan.applies else { return Ok(()) };
    let (id, local) = (ClusterId(survey.log.metadata.cluster_id), MemberId(survey.log.metadata.node_id));
    let is_new = |entry: &Entry| (first..=last).contains(&entry.index());
    // Read twice, so that of all keys only those that it touches are in memory while it is applied.
    let mut touched = Touched::default();
    each_entry(survey, |entry| {
        is_new(&entry).then(|| touched.note(&entry));
        Ok(())
    })?;
    let mut offline = Offline::load(backend.clone(), (id, local), VERSION_MAX, touched)?;
    let mut progress = Progress::bytes("applying", survey.log.bytes);
    let mut done = 0;
    each_entry(survey, |entry| {
        done += entry.data.as_ref().map_or(0, |data| data.len() as u64);
        progress.set(done);
        if is_new(&entry) { Ok(offline.apply(&entry)?) } else { Ok(()) }
    })?;
    Ok(offline.finish()?)
}

fn each_entry(survey: &Survey, mut visit: impl FnMut(Entry) -> anyhow::Result<()>) -> anyhow::Result<()> {
    Wal::each_entry(&survey.dir.wal(), &survey.log.at, &survey.log.places, |entry| visit(entry).map_err(Stop))
        .map_err(|Stop(error)| error)
}

/// An error that ends a walk over the log.
struct Stop(anyhow::Error);

impl From<wal::Error> for Stop {
    fn from(error: wal::Error) -> Stop {
        Stop(error.into())
    }
}

/// No step of a migration changes a key. (Entries that were applied do.)
fn check_hash(plan: &Migration, new: &DataDir) -> anyhow::Result<Hash> {
    let file = Backend::open_read_only(&new.db(), None).map_err(open_error)?;
    let found = hash::of(&file)?;
    if plan.applies.is_none() && plan.hash.as_ref().is_some_and(|before| *before != found) {
        bail!("the copy's hash is {found:?}, but that of the database is {:?}; nothing was changed", plan.hash);
    }
    Ok(found)
}

/// A new log that goes on from the database, with the entries that are not known to be committed.
fn write_log(survey: &Survey, plan: &Migration, new: &DataDir) -> anyhow::Result<()> {
    let file = Backend::open_read_only(&new.db(), None).map_err(open_error)?;
    let view = file.view();
    let (index, term) = meta::consistent(&view)?;
    let metadata = survey.log.metadata;
    let cluster = cluster_of(&view, ClusterId(metadata.cluster_id), MemberId(metadata.node_id))?;
    let members = conf_state_of(&cluster);
    let mut wal = Wal::create(&new.wal(), &metadata.encode(), wal::Options::default())?;
    wal.save_snapshot(&snapshot_record(index, term, members.clone()))?;
    let state = raftpb::HardState { commit: Some(index), ..survey.log.hard_state };
    let state = raftpb::HardState { term: Some(state.term().max(term)), ..state };
    wal.save(Some(&state), &[])?;
    each_entry(survey, |entry| {
        if entry.index() > index {
            wal.append(None, &[entry])?;
        }
        Ok(())
    })?;
    wal.sync()?;
    wal.close()?;
    remove_spares(&new.wal())?;
    if plan.writes_snap {
        let store = v2_store::render(cluster.members(), cluster.removed(), cluster.version()).to_string();
        let metadata = raftpb::SnapshotMetadata { conf_state: Some(members), index: Some(index), term: Some(term) };
        snapfile::save(&new.snap(), &raftpb::Snapshot { data: Some(store.into()), metadata: Some(metadata) })?;
    }
    Ok(())
}

/// Reserved for a next segment that this program will not write.
fn remove_spares(dir: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("failed to list {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tmp") {
            std::fs::remove_file(&path).map_err(|error| path_error("remove", &path, &error))?;
        }
    }
    Ok(())
}
