//! The command line: etcdutl's commands and flags, and clap's errors in the words that scripts know.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand, error::ContextKind};
use cli::{flag, value};

use crate::{
    defrag,
    failure::Failure,
    hashkv,
    migrate::{self, MigrateArgs, Wrong},
    print::{self, Format},
    restore::{self, RestoreArgs},
    schema::{self, SchemaArgs},
    status,
    survey::settle,
    version::{self, VersionArgs},
};

#[derive(Parser)]
#[command(name = "lockgateutl", about = "Works on the files of a stopped etcd or lockgate.")]
#[command(disable_version_flag = true)]
struct Cli {
    /// Output: simple, table, json or fields
    #[arg(short = 'w', long, global = true, default_value = "simple", value_name = "FORMAT")]
    write_out: String,
    /// How long to wait for a file that another process has locked; 0 waits for ever
    #[arg(long, global = true, default_value = "10s", value_parser = value::duration)]
    timeout: Duration,
    #[command(subcommand)]
    command: Option<Commands>,
}

#[derive(Subcommand)]
enum Commands {
    Completion(CompletionArgs),
    Defrag(DefragArgs),
    Hashkv(HashkvArgs),
    Migrate(MigrateArgs),
    Schema(SchemaArgs),
    Snapshot(SnapshotArgs),
    Version(VersionArgs),
}

/// Writes a completion script for bash, zsh, fish or powershell
#[derive(clap::Args)]
#[command(after_help = "Example: source <(lockgateutl completion bash)")]
struct CompletionArgs {
    /// bash, zsh, fish or powershell
    #[arg(value_name = "SHELL")]
    args: Vec<String>,
}

/// Rewrites the database of a stopped member without free pages
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl defrag --data-dir default.etcd")]
struct DefragArgs {
    /// The data dir; no server may run on it
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[arg(hide = true)]
    args: Vec<String>,
}

/// Prints the hash over the history of keys in a file
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl hashkv backup.db --rev 1000")]
struct HashkvArgs {
    /// A snapshot or a database
    #[arg(value_name = "FILE")]
    args: Vec<PathBuf>,
    /// Instead of a file: the database in this data dir
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The last revision to hash; 0 for the newest
    #[arg(long, default_value = "0", value_parser = value::int)]
    rev: i64,
}

/// Looks at snapshots and restores them
#[derive(clap::Args)]
struct SnapshotArgs {
    #[command(subcommand)]
    command: Option<SnapshotCommand>,
    #[arg(hide = true)]
    args: Vec<String>,
}

#[derive(Subcommand)]
enum SnapshotCommand {
    Restore(RestoreArgs),
    Status(StatusArgs),
}

/// Prints hash, revision, number of keys, size and storage version of a snapshot
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl snapshot status backup.db -w table")]
struct StatusArgs {
    /// The snapshot, or a database that no server runs on
    #[arg(value_name = "FILE")]
    args: Vec<PathBuf>,
}

pub(crate) fn run(args: &[OsString]) -> Result<(), Failure> {
    let program = flag::program_name(args, "lockgateutl");
    let mut root = flag::tune(Cli::command()).bin_name(&program);
    let Some(matches) = parse(&mut root, args, &program)? else { return Ok(()) };
    let cli = Cli::from_arg_matches(&matches).map_err(Failure::error)?;
    // Zero waits for ever.
    let lock_timeout = Some(cli.timeout).filter(|timeout| !timeout.is_zero());
    match cli.command {
        None => help(&mut root, &[]),
        Some(Commands::Completion(args)) => completion(&args.args, &mut root, &program),
        Some(Commands::Defrag(args)) => run_defrag(args, lock_timeout, &mut root),
        Some(Commands::Hashkv(args)) => run_hashkv(args, &cli.write_out, lock_timeout, &mut root),
        Some(Commands::Migrate(args)) => match migrate::run(&args, &cli.write_out, lock_timeout) {
            Err(Wrong::Usage(what)) => Err(usage(&mut root, &["migrate"], &what)),
            Err(Wrong::Failed(failure)) => Err(failure),
            Ok(()) => Ok(()),
        },
        Some(Commands::Schema(args)) => schema::run(&args, &cli.write_out),
        Some(Commands::Snapshot(SnapshotArgs { command: None, .. })) => help(&mut root, &["snapshot"]),
        Some(Commands::Snapshot(SnapshotArgs { command: Some(SnapshotCommand::Restore(args)), .. })) => {
            restore::run(args, lock_timeout)
        }
        Some(Commands::Snapshot(SnapshotArgs { command: Some(SnapshotCommand::Status(args)), .. })) => {
            run_status(&args.args, &cli.write_out, lock_timeout)
        }
        Some(Commands::Version(args)) => version::run(&args, &program, &cli.write_out, lock_timeout),
    }
}

fn run_status(args: &[PathBuf], format: &str, lock_timeout: Option<Duration>) -> Result<(), Failure> {
    let [path] = args else { return Err(Failure::bad_args("snapshot status requires exactly one argument")) };
    status::check_exists(path)?;
    let format = Format::parse(format)?;
    format.print(&status::status(path, lock_timeout)?)
}

fn run_hashkv(
    args: HashkvArgs,
    format: &str,
    lock_timeout: Option<Duration>,
    root: &mut Command,
) -> Result<(), Failure> {
    let path = match (&args.args[..], args.data_dir) {
        ([path], None) => path.clone(),
        ([], Some(dir)) => {
            let dir = node::DataDir::new(dir, None);
            settle(&dir)?;
            dir.db()
        }
        (paths, None) => return Err(usage(root, &["hashkv"], &format!("accepts 1 arg(s), received {}", paths.len()))),
        (_, Some(_)) => return Err(usage(root, &["hashkv"], "give either a file or --data-dir, not both")),
    };
    let format = Format::parse(format)?;
    status::check_exists(&path)?;
    format.print(&hashkv::hashkv(&path, args.rev, lock_timeout)?)
}

fn run_defrag(args: DefragArgs, lock_timeout: Option<Duration>, root: &mut Command) -> Result<(), Failure> {
    let Some(dir) = args.data_dir else {
        return Err(usage(root, &["defrag"], "required flag(s) \"data-dir\" not set"));
    };
    defrag::defrag(&dir, lock_timeout)
        .map_err(|error| Failure::error(format!("Failed to defragment etcd data[{}] ({error:#})", dir.display())))
}

fn completion(args: &[String], root: &mut Command, program: &str) -> Result<(), Failure> {
    match flag::completion(args, root, program) {
        Ok(script) => print::print(&script),
        Err(what) => Err(usage(root, &["completion"], &what)),
    }
}

/// `None` if help was asked for and given.
fn parse(root: &mut Command, args: &[OsString], program: &str) -> Result<Option<ArgMatches>, Failure> {
    let error = match root.try_get_matches_from_mut(args) {
        Ok(matches) => return Ok(Some(matches)),
        Err(error) => error,
    };
    if flag::is_help(&error) {
        return print::print(error.render().to_string().as_bytes()).map(|()| None);
    }
    eprintln!("Error: {}", flag::usage_text(&error, program, args.last().map(OsString::as_os_str)));
    flag::suggest(&error);
    match error.get(ContextKind::Usage) {
        Some(usage) => eprintln!("{usage}"),
        None => eprintln!("Run '{program} --help' for usage."),
    }
    Err(Failure::told(1))
}

fn help(root: &mut Command, path: &[&str]) -> Result<(), Failure> {
    print::print(command_at(root, path).render_help().to_string().as_bytes())
}

/// Tells what is wrong with the arguments of a command, and how they should be.
fn usage(root: &mut Command, path: &[&str], what: &str) -> Failure {
    eprintln!("Error: {what}");
    eprintln!("{}", command_at(root, path).render_usage());
    Failure::told(1)
}

fn command_at<'a>(root: &'a mut Command, path: &[&str]) -> &'a mut Command {
    root.build();
    let mut command = root;
    for name in path {
        // The names are those of the enums above.
        if command.find_subcommand(name).is_none() {
            break;
        }
        command = command.find_subcommand_mut(name).expect("was just found");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_agrees() {
        flag::tune(Cli::command()).debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &Command) {
            for inner in command.get_subcommands() {
                let help = inner.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(inner.has_subcommands() || help.contains("Example: "), "{}", inner.get_name());
                check(inner);
            }
        }
        check(&Cli::command());
    }
}
