//! The command line: commands in groups, global flags, environment, and clap's errors in the words etcdctl uses.

use std::ffi::OsString;

use clap::{
    Arg, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ErrorKind},
    parser::ValueSource,
};
use cli::flag;

use crate::{
    command,
    context::{Context, Globals},
    failure::Failure,
    print::println,
};

#[derive(Parser)]
#[command(name = "lockgatectl", about = "Looks at and changes a running etcd cluster.")]
#[command(disable_version_flag = true, infer_subcommands = true, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Commands>,
}

#[derive(Subcommand)]
enum Commands {
    Get(command::get::GetArgs),
    Put(command::put::PutArgs),
    Del(command::del::DelArgs),
    Increment(command::increment::IncrementArgs),
    Txn(command::txn::TxnArgs),
    Watch(command::watch::WatchArgs),
    Lease(command::lease::LeaseArgs),
    Compaction(command::compaction::CompactionArgs),
    Alarm(command::alarm::AlarmArgs),
    Defrag(command::defrag::DefragArgs),
    Downgrade(command::downgrade::DowngradeArgs),
    Endpoint(command::endpoint::EndpointArgs),
    Member(command::member::MemberArgs),
    Auth(command::auth::AuthArgs),
    User(command::user::UserArgs),
    Role(command::role::RoleArgs),
    MoveLeader(command::move_leader::MoveLeaderArgs),
    Snapshot(command::snapshot::SnapshotArgs),
    Check(command::check::CheckArgs),
    Completion(command::completion::CompletionArgs),
    Options(OptionsArgs),
    Version(VersionArgs),
}

const GROUPS: [(&str, &[&str]); 4] = [
    ("Keys", &["get", "put", "del", "increment", "txn", "watch", "lease", "compaction"]),
    ("Cluster", &["alarm", "defrag", "downgrade", "endpoint", "member", "move-leader", "snapshot"]),
    ("Users", &["auth", "user", "role"]),
    ("Other", &["check", "completion", "help", "options", "version"]),
];

/// Shows the flags that every command takes
#[derive(clap::Args)]
#[command(after_help = "Example: lockgatectl options")]
struct OptionsArgs {
    #[arg(hide = true)]
    args: Vec<String>,
}

/// Prints the version of this program and of the API it speaks
#[derive(clap::Args)]
#[command(after_help = "Example: lockgatectl version")]
struct VersionArgs {
    #[arg(hide = true)]
    args: Vec<String>,
}

pub(crate) fn run(args: &[OsString]) -> Result<(), Failure> {
    let program = flag::program_name(args, "lockgatectl");
    let mut root = root(&program);
    let Some(matches) = parse(&mut root, args).map_err(|failure| no_answer(failure, &program, args))? else {
        return Ok(());
    };
    let Cli { globals, command } = Cli::from_arg_matches(&matches).map_err(Failure::error)?;
    let set = |name: &str| deepest(&matches).value_source(name) == Some(ValueSource::CommandLine);
    if globals.debug {
        show_settings(&root, deepest(&matches));
    }
    let context = Context::new(globals, program, set("command_timeout"));
    match command {
        None => show(&root.render_help().to_string()),
        Some(command) => dispatch(command, &context, &mut root),
    }
}

fn dispatch(command: Commands, context: &Context, root: &mut Command) -> Result<(), Failure> {
    use Commands::*;
    match command {
        Get(args) => run_async(command::get::run(context, args)),
        Put(args) => run_async(command::put::run(context, args)),
        Del(args) => run_async(command::del::run(context, args)),
        Increment(args) => run_async(command::increment::run(context, args)),
        Txn(args) => run_async(command::txn::run(context, args)),
        Watch(args) => run_async(command::watch::run(context, args)),
        Lease(args) => run_async(command::lease::run(context, args.command)),
        Compaction(args) => run_async(command::compaction::run(context, args)),
        Alarm(args) => run_async(command::alarm::run(context, args.command)),
        Defrag(args) => run_async(command::defrag::run(context, args)),
        Downgrade(args) => run_async(command::downgrade::run(context, args.command)),
        Endpoint(args) => run_async(command::endpoint::run(context, args.cluster, args.command)),
        Member(args) => run_async(command::member::run(context, args.command)),
        Auth(args) => run_async(command::auth::run(context, args.command)),
        User(args) => run_async(command::user::run(context, args.command)),
        Role(args) => run_async(command::role::run(context, args.command)),
        MoveLeader(args) => run_async(command::move_leader::run(context, args)),
        Snapshot(args) => run_async(command::snapshot::run(context, args.command)),
        Check(args) => run_async(command::check::run(context, args.command)),
        Completion(args) => command::completion::run(&args, root, &context.program),
        Options(_) => show(&options_help()),
        Version(_) => {
            println(&format!("{} version: {}", context.program, env!("CARGO_PKG_VERSION")))?;
            println(&format!("API version: {}", client::API_VERSION))
        }
    }
}

fn run_async(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::error(format!("could not start: {error}")))?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}

fn show(text: &str) -> Result<(), Failure> {
    crate::print::print(text.as_bytes())
}

fn root(program: &str) -> Command {
    // Listed by `options` instead of in the help of every command.
    let root = flag::tune(Cli::command()).mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    let help = groups_help(&root, program);
    root.bin_name(program).help_template("{about}{after-help}").after_help(help)
}

fn groups_help(root: &Command, program: &str) -> String {
    let mut text = format!("Usage: {program} [flags] <command> [arguments]\n");
    for (group, names) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for name in names {
            let about = root.find_subcommand(name).and_then(|command| command.get_about());
            // Clap adds `help` itself, later.
            let about = about.map_or("Tells more about a command".to_owned(), ToString::to_string);
            text.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    text.push_str(&format!(
        "\nExample: {program} --endpoints=127.0.0.1:2379 put greeting hello\n\n\
         `{program} <command> --help` tells more about a command, `{program} options` lists the flags that all take.\n\
         Every such flag can also be given in the environment: --write-out as ETCDCTL_WRITE_OUT."
    ));
    text
}

fn options_help() -> String {
    let mut command = flag::tune(Cli::command()).disable_help_flag(true).disable_help_subcommand(true);
    for name in GROUPS.iter().flat_map(|group| group.1).filter(|name| **name != "help") {
        command = command.mut_subcommand(name, |command| command.hide(true));
    }
    let command = command.help_template("The following options can be passed to any command:\n\n{options}\n");
    command.term_width(0).clone().render_help().to_string()
}

/// `endpoint featuregate` answers with its exit code, so an unreadable command line must not look like the answer "off".
fn no_answer(failure: Failure, program: &str, args: &[OsString]) -> Failure {
    let lenient = root(program).ignore_errors(true).try_get_matches_from(args);
    let endpoint = lenient.as_ref().ok().and_then(|matches| matches.subcommand_matches("endpoint"));
    match endpoint.and_then(ArgMatches::subcommand_name) {
        Some("featuregate") => command::feature_gate::no_answer(failure),
        _ => failure,
    }
}

/// Every setting as the variable that would make it, wherever it came from.
fn show_settings(root: &Command, matches: &ArgMatches) {
    let mut lines = Vec::new();
    for arg in root.get_arguments().filter(|arg| arg.is_global_set()) {
        let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
        let secret = matches!(arg.get_long(), Some("password" | "user" | "auth-jwt-token"));
        let values: Vec<_> = values.map(|value| if secret { "…".into() } else { value.to_string_lossy() }).collect();
        lines.extend(env_name(arg).map(|name| format!("{name}={}", values.join(","))));
    }
    lines.sort();
    lines.iter().for_each(|line| eprintln!("{line}"));
}

/// The matches of the innermost command; global flags are known there wherever they stood.
fn deepest(matches: &ArgMatches) -> &ArgMatches {
    match matches.subcommand() {
        Some((_, inner)) => deepest(inner),
        None => matches,
    }
}

/// Parses the arguments, then once more with what the environment adds. `None` if help was asked for and given.
fn parse(root: &mut Command, args: &[OsString]) -> Result<Option<ArgMatches>, Failure> {
    let Some(matches) = parse_once(root, args)? else { return Ok(None) };
    let mut from_env = Vec::new();
    for arg in root.get_arguments().filter(|arg| arg.is_global_set()) {
        from_env.extend(env_flag(arg, deepest(&matches))?);
    }
    if from_env.is_empty() {
        return Ok(Some(matches));
    }
    let program = args.first().cloned().unwrap_or_default();
    let all = [program].into_iter().chain(from_env).chain(args.iter().skip(1).cloned());
    parse_once(root, &all.collect::<Vec<_>>())
}

fn env_flag(arg: &Arg, matches: &ArgMatches) -> Result<Option<OsString>, Failure> {
    let (Some(long), Some(name)) = (arg.get_long(), env_name(arg)) else { return Ok(None) };
    let Some(value) = std::env::var_os(&name).filter(|value| !value.is_empty()) else { return Ok(None) };
    if matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
        let text = "conflicting environment variable is shadowed by corresponding command-line flag \
                    (either unset environment variable or disable flag)";
        return Err(Failure::error(format!("{text}: {name}")));
    }
    let mut flag = OsString::from(format!("--{long}="));
    flag.push(value);
    Ok(Some(flag))
}

fn env_name(arg: &Arg) -> Option<String> {
    arg.get_long().map(|long| format!("ETCDCTL_{}", long.to_uppercase().replace('-', "_")))
}

fn parse_once(root: &mut Command, args: &[OsString]) -> Result<Option<ArgMatches>, Failure> {
    match root.try_get_matches_from_mut(args) {
        Ok(matches) => Ok(Some(matches)),
        Err(error) if flag::is_help(&error) => show(&error.render().to_string()).map(|()| None),
        Err(error) => Err(usage_failure(&error, root, args)),
    }
}

/// Parses a line typed into `txn` or `watch -i`, with flags that behave as on the command line.
pub(crate) fn parse_line<T: Parser>(args: Vec<OsString>) -> Result<T, clap::Error> {
    let matches = flag::tune(T::command()).try_get_matches_from(args)?;
    T::from_arg_matches(&matches)
}

/// What is wrong with the command line, in one line, and where help is.
fn usage_failure(error: &clap::Error, root: &Command, args: &[OsString]) -> Failure {
    let last = args.last().map(OsString::as_os_str);
    let program = root.get_bin_name().unwrap_or("lockgatectl");
    if error.kind() == ErrorKind::InvalidSubcommand {
        eprintln!("Error: {}", flag::usage_text(error, program, last));
        flag::suggest(error);
        eprintln!("Run '{program} --help' for usage.");
        return Failure::told(1);
    }
    eprintln!("Error: {}", flag::usage_text(error, program, last));
    match error.get(ContextKind::Usage) {
        Some(usage) => eprintln!("{usage}"),
        None => eprintln!("Usage: {program} <command> --help tells more."),
    }
    Failure::told(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_group_and_an_example() {
        let root = root("lockgatectl");
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.1.iter().copied()).collect();
        check_examples(&root, &grouped);
        fn check_examples(command: &Command, grouped: &[&str]) {
            for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
                let name = inner.get_name();
                if !grouped.is_empty() {
                    assert!(grouped.contains(&name), "{name} is in no group");
                }
                if inner.has_subcommands() {
                    check_examples(inner, &[]);
                } else {
                    let help = inner.get_after_help().map(ToString::to_string).unwrap_or_default();
                    assert!(help.contains("Example: "), "{name} has no example");
                }
            }
        }
    }

    #[test]
    fn clap_agrees() {
        root("lockgatectl").debug_assert();
    }
}
