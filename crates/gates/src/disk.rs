//! Files: read with the path in every complaint, and compared with what they should be.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use featureset::{
    GatesFile, Registry, config_map,
    exception::{Exception, FILE_NAME, parse_exceptions},
    generate::{Content, Generated, between_marks, generate},
    yaml::objects,
};

use crate::write::write_all;

/// `gates.toml` as it is.
pub(crate) struct Source {
    pub path: PathBuf,
    pub text: String,
    pub file: GatesFile,
}

/// What whoever starts from nothing has to write.
const BEGIN: &str = "begin it with these two lines, or name another with --file:\n  schema = 1\n  \
                     version = \"1.0.0\"   # what this will be released as";

impl Source {
    pub(crate) fn read(path: &Path) -> Result<Source> {
        if !path.exists() {
            bail!("there is no {}, which has all gates; {BEGIN}", path.display());
        }
        let text = read(path)?;
        let file = GatesFile::parse(&text).with_context(|| format!("{} has errors", path.display()))?;
        Ok(Source { path: path.to_owned(), text, file })
    }

    /// Where paths in the file start from.
    pub(crate) fn dir(&self) -> &Path {
        match self.path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        }
    }

    pub(crate) fn exceptions(&self) -> Result<Vec<Exception>> {
        let path = self.dir().join(FILE_NAME);
        if !path.exists() {
            return Ok(Vec::new());
        }
        parse_exceptions(&read(&path)?).with_context(|| format!("{} has errors", path.display()))
    }
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

/// A generated file and what the disk has in its place.
pub(crate) struct Target {
    pub path: PathBuf,
    pub want: String,
    /// With plain ends of lines: what a checkout made of them is not for us to mend.
    pub have: Option<String>,
    /// Lines end as they do on Windows.
    crlf: bool,
}

impl Target {
    pub(crate) fn is_current(&self) -> bool {
        self.have.as_deref() == Some(self.want.as_str())
    }

    /// What to write: the ends of lines stay as they are.
    pub(crate) fn text(&self) -> String {
        if self.crlf { self.want.replace('\n', "\r\n") } else { self.want.clone() }
    }
}

/// What is to be written, written all at once.
pub(crate) fn write_targets<'a>(targets: impl Iterator<Item = &'a Target>, first: Option<(&Path, &str)>) -> Result<()> {
    let texts: Vec<(&Path, String)> = targets.map(|target| (target.path.as_path(), target.text())).collect();
    let rest = texts.iter().map(|(path, text)| (*path, text.as_str()));
    write_all(&first.into_iter().chain(rest).collect::<Vec<_>>())
}

/// Everything that is made from a file, compared with the disk. `file` is what `source` says, or will say.
pub(crate) fn targets(source: &Source, file: &GatesFile) -> Result<Vec<Target>> {
    let dir = source.dir();
    let targets: Vec<Target> =
        generate(file)?.into_iter().map(|generated| target(dir, generated)).collect::<Result<_>>()?;
    let mut taken = vec![source.path.clone(), dir.join(FILE_NAME)];
    for Target { path, want, have, .. } in &targets {
        if let Some(other) = taken.iter().find(|other| is_same(other, path)) {
            bail!("[output] would write {} over {}; name another file", path.display(), other.display());
        }
        if !is_ours(want, have.as_deref()) {
            bail!(
                "{} is there and was not made by render; name another file in [output], or delete it",
                path.display()
            );
        }
        taken.push(path.clone());
    }
    Ok(targets)
}

/// Also by another way to the same place.
fn is_same(a: &Path, b: &Path) -> bool {
    let plain = |path: &Path| path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
    plain(a) == plain(b) || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Code that somebody wrote is not written over by a slip of the pen: what is made begins with a line that says so.
fn is_ours(want: &str, have: Option<&str>) -> bool {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let marked = first(want).starts_with("//");
    !marked || have.is_none_or(|have| have.trim().is_empty() || first(have) == first(want))
}

fn target(dir: &Path, Generated { path, content }: Generated) -> Result<Target> {
    let path = dir.join(path);
    let found = path.exists().then(|| read(&path)).transpose()?;
    let crlf = found.as_ref().is_some_and(|text| text.contains("\r\n"));
    let have = found.map(|text| text.replace("\r\n", "\n"));
    let want = match content {
        Content::Whole(text) => text,
        Content::Between(part) => {
            let new =
                || format!("# Gates\n\n{}\n{}\n", featureset::generate::DOCS_BEGIN, featureset::generate::DOCS_END);
            let around = have.clone().unwrap_or_else(new);
            between_marks(&around, &part).with_context(|| path.display().to_string())?
        }
    };
    Ok(Target { path, want, have, crlf })
}

/// Registries in files or folders: ConfigMaps as they are in the cluster, alone, in lists or in documents.
pub(crate) fn registries(paths: &[PathBuf]) -> Result<Vec<Registry>> {
    let mut all: Vec<Registry> = Vec::new();
    for path in paths.iter().map(|path| files(path)).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
        let objects = objects(&read(&path)?).with_context(|| path.display().to_string())?;
        let found = objects.iter().filter(|object| config_map::version_of(object).is_some());
        let read: Vec<Registry> = found
            .map(config_map::of_config_map)
            .collect::<Result<_, _>>()
            .with_context(|| format!("{} has a registry that cannot be read", path.display()))?;
        if read.is_empty() {
            bail!(
                "{} has no registry of a version; get one with kubectl get configmaps -n {} -o yaml",
                path.display(),
                config_map::NAMESPACE
            );
        }
        all.extend(read);
    }
    Ok(all)
}

/// The file, or all files below the folder, in order.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("failed to read {}", path.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths.iter().map(|path| files(path)).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
