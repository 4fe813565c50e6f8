//! Evidence for a promotion: read from folders of JUnit results, and told.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail};
use featureset::{
    GatesFile,
    evidence::{Evidence, Report},
};

use crate::disk;

/// Results by profile. With one profile the files may lie in the folder itself.
pub(crate) fn read(dir: &Path, file: &GatesFile) -> Result<BTreeMap<String, Evidence>> {
    if !dir.is_dir() {
        bail!("{} is not a folder of JUnit results", dir.display());
    }
    let mut by_profile = BTreeMap::new();
    for profile in &file.profiles {
        let own = dir.join(profile);
        let from = match (own.is_dir(), file.profiles.len()) {
            (true, _) => own,
            (false, 1) => dir.to_owned(),
            (false, _) => continue,
        };
        let mut evidence = Evidence::default();
        for path in disk::files(&from)?.iter().filter(|path| is_xml(path)) {
            evidence.add(&disk::read(path)?).with_context(|| path.display().to_string())?;
        }
        by_profile.insert(profile.clone(), evidence);
    }
    Ok(by_profile)
}

fn is_xml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"))
}

/// What was found, of each profile that was asked for.
pub(crate) fn report(
    by_profile: &BTreeMap<String, Evidence>,
    gate: &str,
    wanted: impl Fn(&&String) -> bool,
) -> BTreeMap<String, Report> {
    let asked = by_profile.iter().filter(|(profile, _)| wanted(profile));
    asked.map(|(profile, evidence)| (profile.clone(), evidence.report(gate))).collect()
}

/// Also where none was needed: who promotes to a preview set sees how far it is to Default.
pub(crate) fn describe(gate: &str, reports: &BTreeMap<String, Report>) -> String {
    let mut text = String::new();
    for (profile, Report { files, tests, lacks }) in reports {
        let enough = if lacks.is_empty() { "enough" } else { "not enough" };
        text += &format!(
            "evidence for {gate} in profile {profile}: {} tests in {files} files, {enough} for Default\n",
            tests.len()
        );
        text += &lacks.iter().map(|lack| format!("  {lack}\n")).collect::<String>();
    }
    text
}
