//! `cargo xtask interop fetch`: builds the peers and the clients of the scenarios into the cache. What is there already,
//! by its stamp, is left alone. A peer or client that cannot be built does not keep the others from being built; all that
//! failed are listed at the end.

use std::{
    fmt,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, bail};
use sha2::{Digest, Sha256};

use super::{
    kube,
    peer::{self, Program},
    root,
};

/// The directory of clients among those of peers.
pub(crate) const CLIENTS: &str = "clients";

const TRIES: u32 = 3;
const STAMP: &str = "stamp.txt";
/// The Python client, and the protoc that the Rust client needs at build; exact, so that a second run means the same.
const PYTHON_PACKAGES: [&str; 2] = ["etcd3gw==2.7.0", "grpcio-tools==1.85.1"];
const PYTHON_KUBE_PACKAGES: [&str; 1] = ["kubernetes==37.0.2"];
const PYTHON_OFREP_PACKAGES: [&str; 2] = ["openfeature-provider-ofrep==0.3.0", "openfeature-sdk==0.10.0"];

/// With `only`, what is kept in directories whose name contains it, also what just long runs need.
pub(crate) fn run(all: bool, only: Option<&str>) -> Result<()> {
    let cache = harness::peers_dir();
    println!("peers are kept in {}", cache.display());
    let wanted = |program: &Program| match only {
        Some(only) => program.dir.contains(only),
        None => all || !program.only_all,
    };
    let programs: Vec<Program> = peer::programs()?.into_iter().filter(wanted).collect();
    let mut dirs: Vec<&str> = programs.iter().map(|p| p.dir).collect();
    dirs.dedup();
    let mut outcomes = Outcomes::default();
    for dir in &dirs {
        let of_dir: Vec<Program> = programs.iter().copied().filter(|p| p.dir == *dir).collect();
        let made = Unit::peer(&cache, dir, &of_dir).make(|into| match of_dir.first() {
            Some(program) if kube::build::is_ours(program) => kube::build::program(into, program),
            _ => build_peer(into, &of_dir),
        });
        outcomes.add(dir, made);
    }
    fetch_clients(&cache, all, only, &mut outcomes)?;
    match only {
        Some(only) if outcomes.made + outcomes.failed.len() == 0 => {
            bail!("no peer and no client has {only:?} in its name")
        }
        _ => outcomes.into_result(),
    }
}

fn fetch_clients(cache: &Path, all: bool, only: Option<&str>, outcomes: &mut Outcomes) -> Result<()> {
    let sources = root()?.join("interop");
    let (go, client_go, suite) = (sources.join("go"), sources.join("client-go"), sources.join(kube::suite::NAME));
    let mut of_go = Unit::client(cache, "go", &go)?;
    of_go.programs.push("required".to_owned());
    let mut of_suite = Unit::client(cache, kube::suite::NAME, &suite)?;
    of_suite.programs = kube::suite::PROGRAMS.map(|(program, _)| program.to_owned()).to_vec();
    let controllers = sources.join("controller-runtime");
    let mut of_controllers = Unit::client(cache, "controller-runtime", &controllers)?;
    of_controllers.programs.push("older".to_owned());
    let python = |name: &'static str, packages: &'static [&str]| {
        (
            name,
            Unit::python(cache, name, packages),
            Box::new(move |into: &Path| build_venv(into, packages)) as Build<'_>,
        )
    };
    let clients: [(&str, Unit, Build<'_>); 8] = [
        ("go", of_go, Box::new(|into| build_go_client(&go, into))),
        (
            "client-go",
            Unit::client(cache, "client-go", &client_go)?,
            Box::new(|into| build_go(&client_go, &into.join("scenario"), ".")),
        ),
        (
            "controller-runtime",
            of_controllers,
            Box::new(|into| {
                build_go(&controllers, &into.join("scenario"), ".")?;
                build_go_of(&controllers, &["-modfile=older.mod", "-tags=older"], &into.join("older"), ".")
            }),
        ),
        python("python", &PYTHON_PACKAGES),
        python("python-kube", &PYTHON_KUBE_PACKAGES),
        python("python-ofrep", &PYTHON_OFREP_PACKAGES),
        // Needs what the one of Python has.
        (
            "rust",
            Unit::client(cache, "rust", &sources.join("rust"))?,
            Box::new(|into| build_rust_client(cache, &sources, into)),
        ),
        (kube::suite::NAME, of_suite, Box::new(|into| kube::suite::build(&suite, into))),
    ];
    // These take minutes to build, and only long runs need them.
    let wanted = clients.iter().filter(|(name, ..)| match only {
        Some(only) => name.contains(only),
        None => all || ![kube::suite::NAME, "controller-runtime"].contains(name),
    });
    for (name, unit, build) in wanted {
        outcomes.add(&format!("{CLIENTS}/{name}"), unit.make(build));
    }
    Ok(())
}

/// Which peers and clients could be made.
#[derive(Default)]
struct Outcomes {
    made: usize,
    /// Names and causes, in the order of the attempts.
    failed: Vec<(String, Error)>,
}

impl Outcomes {
    fn add(&mut self, name: &str, made: Result<()>) {
        match made {
            Ok(()) => self.made += 1,
            Err(error) => {
                eprintln!("  FAILED {name}: {error:#}");
                self.failed.push((name.to_owned(), error));
            }
        }
    }

    /// The error names every failure, as those of the first attempts have long left the screen.
    fn into_result(self) -> Result<()> {
        if self.failed.is_empty() {
            return Ok(());
        }
        let causes: String = self.failed.iter().map(|(name, error)| format!("\n  {name}: {error:#}")).collect();
        bail!(
            "{} of {} peers and clients could not be built:{causes}",
            self.failed.len(),
            self.made + self.failed.len()
        )
    }
}

/// Builds one into its directory.
type Build<'a> = Box<dyn Fn(&Path) -> Result<()> + 'a>;

/// A directory of the cache that is made as a whole.
struct Unit {
    into: PathBuf,
    /// The recipe; a unit with another recipe is made again.
    recipe: String,
    programs: Vec<String>,
}

impl Unit {
    fn peer(cache: &Path, dir: &str, programs: &[Program]) -> Unit {
        let recipe: Vec<_> = programs
            .iter()
            .map(|p| format!("{} {} {}", p.name, p.package, p.modules().collect::<Vec<_>>().join(" ")))
            .collect();
        let programs = programs.iter().map(|p| p.name.to_owned()).collect();
        Unit { into: cache.join(dir), recipe: recipe.join("\n"), programs }
    }

    fn client(cache: &Path, name: &str, sources: &Path) -> Result<Unit> {
        let recipe = format!("sources {}", hash_sources(sources)?);
        Ok(Unit { into: cache.join(CLIENTS).join(name), recipe, programs: vec!["scenario".to_owned()] })
    }

    fn python(cache: &Path, name: &str, packages: &[&str]) -> Unit {
        let programs = vec!["venv/bin/python".to_owned()];
        Unit { into: cache.join(CLIENTS).join(name), recipe: packages.join("\n"), programs }
    }

    fn make(&self, build: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let name = self.into.display();
        if self.is_made() {
            println!("  {name}: there");
            return Ok(());
        }
        let start = Instant::now();
        println!("  {name}: building {}", self.programs.join(", "));
        fs::create_dir_all(&self.into).with_context(|| format!("failed to make {name}"))?;
        // What is half built must not pass for whole.
        let _ = fs::remove_file(self.into.join(STAMP));
        build(&self.into).with_context(|| format!("failed to build {name}"))?;
        fs::write(self.into.join(STAMP), self.stamp()?).with_context(|| format!("failed to stamp {name}"))?;
        println!("  {name}: built in {} s", start.elapsed().as_secs());
        Ok(())
    }

    /// Sizes are looked at, not checksums: to sum up all programs takes longer than anything else in a second run.
    fn is_made(&self) -> bool {
        let stamp = fs::read_to_string(self.into.join(STAMP)).unwrap_or_default();
        let Some(rows) = stamp.strip_prefix(&format!("{}\n", self.recipe)) else { return false };
        self.programs.iter().all(|name| {
            let size = fs::metadata(self.into.join(name)).map(|meta| meta.len().to_string());
            size.is_ok_and(|size| rows.lines().any(|row| row.ends_with(&format!(" {size} {name}"))))
        })
    }

    /// The recipe, and checksum and size of what came of it.
    fn stamp(&self) -> Result<String> {
        let mut stamp = format!("{}\n", self.recipe);
        for name in &self.programs {
            let path = self.into.join(name);
            let bytes = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            stamp.push_str(&format!("sha256 {} {} {name}\n", hex(&Sha256::digest(&bytes)), bytes.len()));
        }
        Ok(stamp)
    }
}

/// The programs of one version share a module, so that they are built from one set of dependencies.
fn build_peer(into: &Path, programs: &[Program]) -> Result<()> {
    let module = into.join("module");
    fs::create_dir_all(&module)?;
    let imports: String = programs.iter().map(|p| format!("import _ \"{}\"\n", p.import_path())).collect();
    fs::write(module.join("go.mod"), "module peers\n\ngo 1.24\n")?;
    fs::write(module.join("peers.go"), format!("//go:build peers\n\npackage peers\n\n{imports}"))?;
    let wanted: Vec<_> = programs.iter().flat_map(Program::modules).collect();
    with_tries("download", || run_command(go(&module).arg("get").args(&wanted)))?;
    for program in programs {
        let output = into.join(program.name);
        // Downloads what `go get` left out, so it is tried again as well.
        with_tries("build", || {
            run_command(go(&module).args(["build", "-mod=mod", "-o"]).arg(&output).arg(program.import_path()))
        })?;
        check_version(program, &output)?;
    }
    Ok(())
}

/// A program built with other modules than its release was can take itself for another version.
fn check_version(program: &Program, path: &Path) -> Result<()> {
    let word = match program.name {
        "etcd" => "--version",
        "etcdctl" | "etcdutl" => "version",
        // bbolt's number is not kept up by its releases.
        _ => return Ok(()),
    };
    let output = Command::new(path).arg(word).output().with_context(|| format!("failed to run {}", path.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = program.version.trim_start_matches('v');
    if !said.contains(version) {
        bail!(
            "{} should be {version} but says: {}; name its modules in interop/peers.txt",
            path.display(),
            said.trim()
        );
    }
    Ok(())
}

fn build_go_client(sources: &Path, into: &Path) -> Result<()> {
    for (program, package) in [("scenario", "."), ("required", "./required")] {
        build_go(sources, &into.join(program), package)?;
    }
    Ok(())
}

fn build_go(sources: &Path, output: &Path, package: &str) -> Result<()> {
    build_go_of(sources, &[], output, package)
}

fn build_go_of(sources: &Path, flags: &[&str], output: &Path, package: &str) -> Result<()> {
    with_tries("build", || run_command(go(sources).arg("build").args(flags).arg("-o").arg(output).arg(package)))
}

fn build_rust_client(cache: &Path, sources: &Path, into: &Path) -> Result<()> {
    let target = cache.join(CLIENTS).join("rust-target");
    let protoc = into.join("protoc");
    let python = cache.join(CLIENTS).join("python/venv/bin/python");
    if !python.is_file() {
        bail!("its protoc comes from the client python, which is not built");
    }
    fs::write(&protoc, format!("#!/bin/sh\nexec '{}' -m grpc_tools.protoc \"$@\"\n", python.display()))?;
    fs::set_permissions(&protoc, Permissions::from_mode(0o755))?;
    with_tries("build", || {
        let mut cargo = nice("cargo");
        cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(sources.join("rust/Cargo.toml"));
        run_command(cargo.arg("--target-dir").arg(&target).env("PROTOC", &protoc))
    })?;
    fs::copy(target.join("debug/scenario"), into.join("scenario"))?;
    Ok(())
}

fn build_venv(into: &Path, packages: &[&str]) -> Result<()> {
    let venv = into.join("venv");
    run_command(nice("python3").args(["-m", "venv", "--clear"]).arg(&venv))
        .context("python3 with venv is needed for the Python clients")?;
    with_tries("download", || {
        let mut pip = nice(venv.join("bin/python").to_string_lossy().as_ref());
        run_command(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages))
    })
}

pub(crate) fn go(dir: &Path) -> Command {
    let mut go = nice("go");
    // `-mod=mod` in a user's GOFLAGS or a workspace above must not change what is built.
    go.current_dir(dir).env("GOFLAGS", "-buildvcs=false").env("GOWORK", "off").env("CGO_ENABLED", "0");
    go
}

fn nice(program: &str) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "10", program]).stdin(Stdio::null());
    command
}

/// Networks fail for a moment; a wrong version fails three times.
pub(crate) fn with_tries(what: &str, action: impl Fn() -> Result<()>) -> Result<()> {
    let mut wait = Duration::from_secs(2);
    for left in (0..TRIES).rev() {
        match action() {
            Err(error) if left > 0 && !error.is::<Missing>() => {
                eprintln!("  {what} failed, {left} more tries: {error:#}");
                thread::sleep(wait);
                wait *= 4;
            }
            Err(error) if !error.is::<Missing>() => return Err(error.context(format!("{what} failed {TRIES} times"))),
            result => return result,
        }
    }
    Ok(())
}

/// Trying again does not help against this.
#[derive(Debug)]
struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs =
            "peers and clients are built with Go 1.26 or newer (https://go.dev/dl), cargo and Python 3 with venv";
        write!(f, "`{}` is not installed: {needs}", self.0)
    }
}

impl std::error::Error for Missing {}

pub(crate) fn run_command(command: &mut Command) -> Result<()> {
    let program = command.get_args().nth(2).unwrap_or_default().to_string_lossy().into_owned();
    let Output { status, stderr, .. } = command.output().context("failed to run `nice`")?;
    if status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&stderr);
    // `nice` answers 127 when it finds no such program.
    if status.code() == Some(127) {
        bail!(Missing(program));
    }
    let tail: Vec<_> = stderr.lines().rev().take(12).collect();
    let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n    ");
    if ["dial tcp", "no such host", "i/o timeout", "connection refused", "502 Bad", "503 Service"]
        .iter()
        .any(|sign| stderr.contains(sign))
    {
        bail!("the module proxy does not answer (see `go env GOPROXY`, or your network):\n    {tail}");
    }
    bail!("`{program}` ended with {status}:\n    {tail}")
}

fn hash_sources(dir: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    for path in files_below(dir)? {
        if path.components().any(|part| part.as_os_str() == "target") {
            continue;
        }
        hash.update(path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().as_bytes());
        hash.update(fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?);
    }
    Ok(hex(&hash.finalize()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files of a directory, in order of their paths.
pub(crate) fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("failed to list {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_named_with_its_cause() {
        let mut outcomes = Outcomes::default();
        outcomes.add("etcd-1", Err(Error::msg("no such host").context("download failed 3 times")));
        outcomes.add("etcd-2", Ok(()));
        outcomes.add("clients/go", Err(Error::msg("exit code 1")));
        let error = outcomes.into_result().expect_err("two failed").to_string();
        let want = "2 of 3 peers and clients could not be built:\n  etcd-1: download failed 3 times: no such host\n  clients/go: exit code 1";
        assert_eq!(error, want);
    }

    #[test]
    fn nothing_failed_is_no_error() {
        let mut outcomes = Outcomes::default();
        outcomes.add("etcd-1", Ok(()));
        assert!(outcomes.into_result().is_ok());
        assert!(Outcomes::default().into_result().is_ok());
    }

    /// A missing program is not looked for again, as no time passes.
    #[test]
    fn a_missing_program_is_tried_once() {
        let tries = std::cell::Cell::new(0);
        let missing = || {
            tries.set(tries.get() + 1);
            Err(Missing("go".to_owned()).into())
        };
        assert!(with_tries("build", missing).expect_err("it is missing").is::<Missing>());
        assert_eq!(tries.get(), 1);
    }
}
