//! Text made from the table: help, usage, version, and the page docs/flags.md.

use std::fmt::Write;

use featuregate::Level;
use membership::features;

use super::retired;
use super::table::{Flag, GROUPS, Key, Kind, Status};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Line one is what scripts read off `etcd --version`. `sha` is the commit that the binary was built from.
pub fn version_text(sha: Option<&str>) -> String {
    let sha = sha.unwrap_or("not recorded in this build");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("etcd Version: {VERSION}\nGit SHA: {sha}\nLockgate Version: {VERSION}\nOS/Arch: {os}/{arch}\n")
}

/// What a command line that cannot be read is answered with.
pub fn usage_text() -> String {
    "Usage:\n\n  \
     lockgate [flags]          start a member\n  \
     lockgate --config-file F  start a member with the settings of a YAML file, and no others\n  \
     lockgate --version        print the version\n  \
     lockgate --help           print all flags\n"
        .to_owned()
}

pub fn help_text() -> String {
    let mut text = usage_text();
    text.push_str(
        "\nFlags are etcd's, written -name value, --name value or --name=value. Each has a variable: --data-dir is\n\
         ETCD_DATA_DIR. The default is in quotes. [no effect] and [refused] mark what this version does not do;\n\
         docs/flags.md says why.\n",
    );
    for group in GROUPS {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}:\n", group.title);
        for flag in group.flags {
            help_of(&mut text, flag);
        }
    }
    text
}

fn help_of(text: &mut String, flag: &Flag) {
    let mark = match flag.status {
        Status::Works => "",
        Status::NoEffect(_) => " [no effect]",
        Status::Refused(_) => " [refused]",
    };
    let _ = writeln!(text, "  --{} '{}'{mark}", flag.name, flag.default);
    for line in wrap(&described(flag), 100) {
        let _ = writeln!(text, "      {line}");
    }
    for line in features_of(flag) {
        let _ = writeln!(text, "        {line}");
    }
}

/// The help of a flag with its bounds.
fn described(flag: &Flag) -> String {
    let least = flag.least.map(|least| format!(" Shorter durations become {least:?}."));
    format!("{}{}", flag.help, least.unwrap_or_default())
}

/// What a flag for features can be given, one a line, as etcd prints it.
fn features_of(flag: &Flag) -> Vec<String> {
    let levels = [Level::Server, Level::Cluster];
    let level = levels.into_iter().find(|level| level.flag().strip_prefix("--") == Some(flag.name));
    let registry = features::registry().ok();
    level.zip(registry).map(|(level, registry)| registry.help(level, features::VERSION)).unwrap_or_default()
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            let _ = write!(lines[last], "{space}{word}");
        }
    }
    lines
}

/// The page docs/flags.md.
pub fn flags_page() -> String {
    let mut page = String::from(
        "# Flags\n\n\
         This page is made from the table in `crates/server/src/config/table`; change it there and run\n\
         `UPDATE_GOLDENFILES=1 cargo test -p server config`.\n\n\
         Flags, variables and config file are those of etcd 3.7. Write `-name value`, `--name value` or `--name=value`.\n\
         The variable of `--data-dir` is `ETCD_DATA_DIR`, and so on; giving both is refused. With `--config-file`\n\
         (or `ETCD_CONFIG_FILE`) the file replaces flags and variables. Keys of the file are the flags' names unless the\n\
         table says otherwise; durations in it are integer nanoseconds; unknown and double keys are refused.\n\n\
         [feature-gates.md](feature-gates.md) lists what `--feature-gates` and `--cluster-feature-gates` take.\n",
    );
    for group in GROUPS {
        let _ = write!(page, "\n## {}\n\n| flag | kind | default | what it does |\n|---|---|---|---|\n", group.title);
        for flag in group.flags {
            row_of(&mut page, flag);
        }
    }
    page.push_str("\n## Retired names\n\n");
    page.push_str("Taken and ignored, as etcd does: ");
    let names = retired::IGNORED_FLAGS.iter().map(|name| format!("`--{name}`"));
    page.push_str(&names.collect::<Vec<_>>().join(", "));
    page.push_str(
        ".\n\nThe `--experimental-*` flags of etcd 3.6 are refused with the name of their successor: the flag without the\n\
         prefix, or a feature gate.\n",
    );
    page
}

fn row_of(page: &mut String, flag: &Flag) {
    let kind = match flag.kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Int => "integer".to_owned(),
        Kind::Uint | Kind::Uint32 => "integer ≥ 0".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::List => "list".to_owned(),
        Kind::Urls => "URLs".to_owned(),
        Kind::Origins => "URLs or `*`".to_owned(),
        Kind::OneOf(names) => {
            let names = names.iter().filter(|name| !name.is_empty()).map(|name| format!("`{name}`"));
            names.collect::<Vec<_>>().join(", ")
        }
    };
    let default = if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
    let mut what = described(flag);
    match flag.key {
        Key::Same => {}
        Key::Nested(section, key) => {
            let _ = write!(what, " File: `{section}:` → `{key}:`.");
        }
        Key::None => what.push_str(" Not in the file."),
    }
    match flag.status {
        Status::Works => {}
        Status::NoEffect(why) => {
            let _ = write!(what, " *No effect: {why}.*");
        }
        Status::Refused(why) => {
            let _ = write!(what, " **Refused unless left at its default: {why}.**");
        }
    }
    let _ = writeln!(page, "| `--{}` | {kind} | {default} | {what} |", flag.name);
}
