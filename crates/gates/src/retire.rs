//! `retire`: what is known of a gate, gathered from code, files and a cluster.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Result;
use featureset::{
    config_map::NAMESPACE,
    definition::name_of,
    retire::{RetireFacts, plan_retire},
};

use crate::{
    change::finish,
    code,
    disk::{self, Source, targets},
    output::Output,
    plan_source,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Retire {
    /// The gate.
    name: String,
    /// Folders with code that must not ask for it; the folder of gates.toml unless given.
    #[arg(long)]
    code: Vec<PathBuf>,
    /// Registries of released and installed versions, as files or folders of ConfigMaps.
    #[arg(long)]
    registry: Vec<PathBuf>,
    /// Asks the cluster that kubectl would speak to for the versions that run there.
    #[arg(long)]
    cluster: bool,
    /// Asks the cluster of this file.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries and leases of the cluster are.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    /// Says what it would do, and writes nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Retire {
    pub(crate) fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let dirs = if self.code.is_empty() { vec![source.dir().to_owned()] } else { self.code };
        let generated: Vec<PathBuf> = targets(&source, &source.file)?.into_iter().map(|t| t.path).collect();
        let names: BTreeSet<String> = [self.name.clone(), featureset::generate::ident(&self.name)].into();
        let names: Vec<String> = names.into_iter().collect();
        let mut references = Vec::new();
        for dir in &dirs {
            references.extend(code::references(dir, &names, &generated)?);
        }
        let mut facts =
            RetireFacts { references, registries: disk::registries(&self.registry)?, ..RetireFacts::default() };
        if self.cluster || self.kubeconfig.is_some() {
            let running = plan_source::running(self.kubeconfig.as_deref(), &self.namespace)?;
            facts.followers = running
                .definitions
                .iter()
                .filter(|one| code::follows(one, &names))
                .map(|one| name_of(one).to_owned())
                .collect();
            facts.registries.extend(running.registries);
            (facts.unreadable, facts.rows) = (running.unreadable, running.rows);
        }
        finish(&source, plan_retire(&source.file, &self.name, &facts)?, self.dry_run)
    }
}
