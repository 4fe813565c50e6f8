//! Gates of feature sets as flags.

use std::collections::BTreeSet;

use featureset::{Row, gate::STORE_PREFIX};
use serde_json::{Value, json};

use crate::{
    evaluate::boolean,
    refusal::Refusal,
    view::{Sets, Source},
};

pub(crate) fn flag(source: &Source<Sets>, version: Option<&str>, key: &str) -> Result<Value, Refusal> {
    let (sets, stale) = known(source)?;
    let row = row_for(sets, version)?;
    let unknown = || Refusal::NotFound(format!("version {:?} does not know the gate {key:?}", row.version));
    one(sets, stale, row, key).ok_or_else(unknown)
}

/// All gates of the row, and what holds for all of them.
pub(crate) fn flags(
    source: &Source<Sets>,
    version: Option<&str>,
    flags: &mut Vec<Value>,
    metadata: &mut Value,
) -> Result<(), Refusal> {
    let (sets, stale) = known(source)?;
    let row = row_for(sets, version)?;
    // No gates.toml has such a name; a row of somebody else might.
    let ours = |name: &&String| !name.starts_with(STORE_PREFIX);
    let names = row.enabled.iter().chain(&row.disabled).filter(ours).collect::<BTreeSet<_>>();
    flags.extend(names.into_iter().filter_map(|name| one(sets, stale, row, name)));
    metadata["version"] = row.version.clone().into();
    metadata["featureSet"] = sets.feature_set(&row.version).into();
    Ok(())
}

fn known(source: &Source<Sets>) -> Result<(&Sets, bool), Refusal> {
    match source {
        Source::Known { value, stale } => Ok((value, stale.is_some())),
        Source::Unknown(why) => Err(Refusal::Server(format!("gates of feature sets are not known: {why}"))),
        Source::NotFollowed => {
            let why =
                "gates of feature sets are not followed here (--no-feature-sets); those of the store are store.NAME";
            Err(Refusal::NotFound(why.to_owned()))
        }
    }
}

fn row_for<'a>(sets: &'a Sets, version: Option<&str>) -> Result<&'a Row, Refusal> {
    if sets.rows.is_empty() {
        return Err(Refusal::Server("the cluster has no row of gates yet".to_owned()));
    }
    let rows = || format!("there are rows for {:?}", sets.versions());
    match (version, &sets.desired) {
        (Some(version), _) => sets.row(version).ok_or_else(|| {
            Refusal::Caller("INVALID_CONTEXT", format!("there is no row for version {version:?}; {}", rows()))
        }),
        (None, Some(desired)) => sets.row(desired).ok_or_else(|| {
            let why = format!("the cluster is to run {desired:?}, which has no row yet; {}", rows());
            Refusal::Server(why)
        }),
        (None, None) => {
            Err(Refusal::Caller("INVALID_CONTEXT", format!("name your version in the context; {}", rows())))
        }
    }
}

fn one(sets: &Sets, stale: bool, row: &Row, key: &str) -> Option<Value> {
    let value = row.get(key)?;
    let mut metadata =
        json!({"version": row.version, "featureSet": sets.feature_set(&row.version), "digest": row.digest()});
    if let Some(info) = sets.info(&row.version, key) {
        metadata["stage"] = info.stage.clone().into();
        metadata["owner"] = info.owner.clone().into();
    }
    if stale {
        metadata["stale"] = true.into();
    }
    Some(boolean(key, value, metadata))
}
