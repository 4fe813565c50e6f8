//! Cluster features of a store as flags, under `store.NAME`.

use featureset::gate::STORE_PREFIX;
use serde_json::{Value, json};

use crate::{
    evaluate::boolean,
    refusal::Refusal,
    view::{Source, Store, StoreFeature},
};

pub(crate) fn flag(source: &Source<Store>, name: &str) -> Result<Value, Refusal> {
    let (store, stale) = known(source)?;
    let feature = store.features.get(name).ok_or_else(|| {
        Refusal::NotFound(format!("the store has no cluster feature {name:?}; it has {:?}", store.names()))
    })?;
    Ok(one(store, stale, name, feature))
}

pub(crate) fn flags(source: &Source<Store>, flags: &mut Vec<Value>, metadata: &mut Value) -> Result<(), Refusal> {
    let (store, stale) = known(source)?;
    flags.extend(store.features.iter().map(|(name, feature)| one(store, stale, name, feature)));
    metadata["storeClusterVersion"] = store.cluster_version.clone().into();
    Ok(())
}

fn known(source: &Source<Store>) -> Result<(&Store, bool), Refusal> {
    match source {
        Source::Known { value, stale } => Ok((value, stale.is_some())),
        Source::Unknown(why) => Err(Refusal::Server(format!("cluster features of the store are not known: {why}"))),
        Source::NotFollowed => {
            let why =
                "no store is followed here: start lockgate ofrep with --store-endpoints to have its cluster features";
            Err(Refusal::NotFound(why.to_owned()))
        }
    }
}

fn one(store: &Store, stale: bool, name: &str, feature: &StoreFeature) -> Value {
    let mut metadata = json!({
        "level": "cluster",
        "stage": feature.stage,
        "clusterVersion": store.cluster_version,
        "default": feature.default_enabled,
        "locked": feature.locked,
    });
    if !feature.held_off_by.is_empty() {
        let reasons: Vec<&str> = feature.held_off_by.iter().map(String::as_str).collect();
        metadata["heldOffBy"] = reasons.join("; ").into();
    }
    if stale {
        metadata["stale"] = true.into();
    }
    boolean(&format!("{STORE_PREFIX}{name}"), feature.enabled, metadata)
}
