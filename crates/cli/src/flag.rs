//! Clap made to behave as Go's flags, and its errors in the words that scripts know.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{
    ArgAction, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use clap_complete::Shell;

use crate::value;

/// A link named `etcdctl` speaks of itself as etcdctl.
pub fn program_name(args: &[OsString], default: &str) -> String {
    let name = args.first().and_then(|arg| Path::new(arg).file_stem()).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| default.to_owned())
}

/// Makes flags behave as in Go: `--flag=false`, the last one counts, values that begin with a dash.
pub fn tune(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .default_missing_value("true")
            .value_parser(value::boolean)
            .hide_default_value(true)
            .value_name("BOOL"),
        ArgAction::Set if !arg.is_positional() => arg.allow_hyphen_values(true),
        _ => arg,
    });
    command.args_override_self(true).infer_subcommands(true).mut_subcommands(tune)
}

/// Whether help was asked for, which is no error.
pub fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// What is wrong with a command line, in one line. `last` is its last argument.
pub fn usage_text(error: &clap::Error, program: &str, last: Option<&OsStr>) -> String {
    let value = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (arg, bad) = (value(ContextKind::InvalidArg), value(ContextKind::InvalidValue));
    // Clap names a flag with the placeholder of its value.
    let flag = arg.split([' ', '=', '[']).next().unwrap_or(arg);
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with("--") => format!("unknown flag: {flag}"),
        ErrorKind::UnknownArgument => {
            format!("unknown shorthand flag: '{}' in {flag}", flag.chars().nth(1).unwrap_or('-'))
        }
        ErrorKind::InvalidSubcommand => {
            format!("unknown command {:?} for {:?}", value(ContextKind::InvalidSubcommand), path(error, program))
        }
        ErrorKind::InvalidValue if bad.is_empty() && last.is_some_and(|last| last == "-w") => {
            "flag needs an argument: 'w' in -w".to_owned()
        }
        ErrorKind::InvalidValue if bad.is_empty() => format!("flag needs an argument: {flag}"),
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let flag = if flag == "--write-out" { "-w, --write-out" } else { flag };
            format!("invalid argument {bad:?} for {flag:?} flag: {reason}")
        }
        ErrorKind::InvalidValue => format!("invalid argument {bad:?} for {flag:?}"),
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    }
}

/// The commands so far, which clap tells only through its usage line.
fn path(error: &clap::Error, program: &str) -> String {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip(1).take_while(|word| !word.starts_with(['<', '[']));
    let words: Vec<&str> = words.collect();
    if words.is_empty() { program.to_owned() } else { words.join(" ") }
}

/// Names on standard error what may have been meant.
pub fn suggest(error: &clap::Error) {
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand) {
        eprintln!("\nDid you mean this?");
        names.iter().for_each(|name| eprintln!("\t{name}"));
        eprintln!();
    }
}

/// The script that completes commands and flags in a shell; an error says what is wrong with the arguments.
pub fn completion(args: &[String], root: &mut Command, program: &str) -> Result<Vec<u8>, String> {
    let [shell] = args else {
        return Err(format!("accepts 1 arg(s), received {}", args.len()));
    };
    let shell = match shell.as_str() {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        "powershell" => Shell::PowerShell,
        other => return Err(format!("invalid argument {other:?} for \"{program} completion\"")),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, root, program, &mut script);
    Ok(script)
}
