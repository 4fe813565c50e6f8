//! Command line (Go's flag syntax) and `ETCD_*` variables into settings.

use super::error::ConfigError;
use super::notice::Notice;
use super::retired;
use super::settings::Settings;
use super::table::{self, Flag, Kind};

/// What a command line asks for.
#[derive(Debug)]
pub(super) enum Command {
    Run(Settings, Vec<Notice>),
    Help,
    Version,
}

/// Reads flags up to the first mistake, as Go does: `-name v`, `--name v`, `--name=v`, `--bool`.
pub(super) fn parse(args: &[String]) -> Result<Command, ConfigError> {
    let mut settings = Settings::default();
    let mut notices = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some((name, value)) = split(arg)? else {
            let Some(positional) = (if arg == "--" { args.next() } else { Some(arg) }) else { break };
            return Err(ConfigError::NotAFlag(positional.clone()));
        };
        if retired::IGNORED_FLAGS.contains(&name) {
            notices.push(Notice::Retired { name: name.to_owned() });
            continue;
        }
        let Some(flag) = table::find(name) else {
            if matches!(name, "help" | "h") {
                return Ok(Command::Help);
            }
            return Err(unknown(name));
        };
        match value {
            Some(value) => set(&mut settings, flag, value)?,
            None if flag.kind == Kind::Bool => set(&mut settings, flag, "true")?,
            None => {
                let value = args.next().ok_or(ConfigError::MissingArgument(flag.name))?;
                set(&mut settings, flag, value)?;
            }
        }
    }
    if settings.bool("version") {
        return Ok(Command::Version);
    }
    Ok(Command::Run(settings, notices))
}

/// Adds what the environment says about flags that were not given.
pub(super) fn add_env(
    settings: &mut Settings,
    notices: &mut Vec<Notice>,
    env: &[(String, String)],
) -> Result<(), ConfigError> {
    for (name, value) in env.iter().filter(|(name, _)| name.starts_with("ETCD_")) {
        if name == "ETCD_VERSION" {
            notices.push(Notice::EnvVersion { value: value.clone() });
            continue;
        }
        let Some(flag) = table::flags().find(|flag| flag.env() == *name) else {
            notices.push(unknown_env(name, value));
            continue;
        };
        if settings.is_set(flag.name) {
            return Err(ConfigError::ShadowedEnv(name.clone()));
        }
        if value.is_empty() {
            notices.push(Notice::EnvUnknown { assignment: format!("{name}=") });
            continue;
        }
        settings.set_text(flag, value).map_err(|reason| ConfigError::BadEnv {
            name: name.clone(),
            value: value.clone(),
            reason,
        })?;
        notices.push(Notice::EnvUsed { name: name.clone(), value: value.clone() });
    }
    Ok(())
}

fn unknown_env(name: &str, value: &str) -> Notice {
    let is = |flag: &&&str| table::env_name(flag) == name;
    match retired::IGNORED_FLAGS.iter().find(is) {
        Some(flag) => Notice::Retired { name: (*flag).to_owned() },
        None => Notice::EnvUnknown { assignment: format!("{name}={value}") },
    }
}

/// Name and `=value` of a flag; `None` if flags end here.
fn split(arg: &str) -> Result<Option<(&str, Option<&str>)>, ConfigError> {
    let Some(rest) = arg.strip_prefix('-').filter(|rest| !rest.is_empty() && *rest != "-") else {
        return Ok(None);
    };
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    if rest.starts_with(['-', '=']) {
        return Err(ConfigError::FlagSyntax(arg.to_owned()));
    }
    Ok(Some(match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    }))
}

fn set(settings: &mut Settings, flag: &'static Flag, value: &str) -> Result<(), ConfigError> {
    settings.set_text(flag, value).map_err(|reason| {
        let (flag, value, is_bool) = (flag.name, value.to_owned(), flag.kind == Kind::Bool);
        if is_bool {
            ConfigError::BadBool { flag, value, reason }
        } else {
            ConfigError::BadFlag { flag, value, reason }
        }
    })
}

fn unknown(name: &str) -> ConfigError {
    match retired::successor(name) {
        Some(successor) => ConfigError::RenamedFlag { name: name.to_owned(), successor },
        None => ConfigError::UnknownFlag {
            name: name.to_owned(),
            nearest: retired::nearest(name, table::flags().map(|flag| flag.name)),
        },
    }
}
