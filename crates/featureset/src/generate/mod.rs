//! Everything that is made from `gates.toml`, as names and contents of files. Made twice it is the same, so a file that
//! differs was changed by hand or is of another `gates.toml`.

mod docs;
mod go;
mod ident;
mod manifest;
mod rust;

use serde_json::Value;

pub use docs::{BEGIN as DOCS_BEGIN, END as DOCS_END, table};
pub use ident::ident;
pub use manifest::{crds, feature_gate, namespace, policies, rbac};

use crate::{
    config_map::{NAMESPACE, to_config_map},
    file::GatesFile,
    registry::{Registry, RegistryError},
    set::LISTED,
};

/// A file to write, with its path from the directory of `gates.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub path: String,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Whole(String),
    /// Goes between the two marks of a file that people write.
    Between(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    #[error("gates {0} and {1} would have one name in code, {2}; rename one")]
    SameIdentifier(String, String, String),
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the marks {DOCS_BEGIN} and {DOCS_END} are not there, each once and in this order; add them where the table should be"
)]
pub struct NoMarks;

pub fn generate(file: &GatesFile) -> Result<Vec<Generated>, GenerateError> {
    let mut all = Vec::new();
    let whole = |path: &str, text: String| Generated { path: path.to_owned(), content: Content::Whole(text) };
    if let Some(path) = &file.output.rust {
        all.push(whole(path, rust::source(file)?));
    }
    if let Some(path) = &file.output.go {
        all.push(whole(path, go::source(file)?));
    }
    if let Some(path) = &file.output.docs {
        all.push(Generated { path: path.clone(), content: Content::Between(table(file)) });
    }
    if let Some(dir) = &file.output.manifests {
        let dir = dir.trim_end_matches('/');
        all.extend(manifests(file)?.into_iter().map(|(name, text)| whole(&format!("{dir}/{name}"), text)));
    }
    Ok(all)
}

/// The text of a file of people with the part between the marks replaced.
pub fn between_marks(text: &str, part: &str) -> Result<String, NoMarks> {
    let once = |mark: &str| (text.matches(mark).count() == 1).then(|| text.find(mark)).flatten();
    match (once(DOCS_BEGIN), once(DOCS_END)) {
        (Some(begin), Some(end)) if begin < end => {
            Ok(format!("{}{DOCS_BEGIN}\n{part}{}", &text[..begin], &text[end..]))
        }
        _ => Err(NoMarks),
    }
}

fn manifests(file: &GatesFile) -> Result<Vec<(String, String)>, GenerateError> {
    let registry = Registry::of_file(file, &file.version)?;
    let major = file.version.split('.').next().unwrap_or_default();
    let mut all = vec![
        ("0-crds.yaml".to_owned(), crds()),
        ("1-namespace.yaml".to_owned(), namespace(NAMESPACE)),
        ("2-policies.yaml".to_owned(), policies(NAMESPACE)),
        ("3-rbac.yaml".to_owned(), rbac(NAMESPACE)),
        ("registry.json".to_owned(), pretty(&to_config_map(&registry, NAMESPACE))),
    ];
    for profile in &file.profiles {
        for set in LISTED {
            let object = feature_gate(&registry, profile, set)?;
            all.push((format!("featuregates/featureGate-{major}-{profile}-{set}.yaml"), pretty(&object)));
        }
    }
    Ok(all)
}

pub(crate) fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(&crate::canonical::sorted(value)).unwrap_or_default();
    text.push('\n');
    text
}
