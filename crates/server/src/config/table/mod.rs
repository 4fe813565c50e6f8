//! The one table of flags: parsing, environment, YAML keys, help and docs/flags.md all read it.

mod clustering;
mod member;
mod operation;
mod security;

use std::time::Duration;

pub(super) use clustering::NO_DISCOVERY;

/// One flag. Its environment variable is `ETCD_` and the name in capitals.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    pub kind: Kind,
    /// The default as one would write it on the command line.
    pub default: &'static str,
    /// The shortest duration that has an effect; a shorter one is raised to it. 0 keeps its special meaning.
    pub least: Option<Duration>,
    pub help: &'static str,
    pub status: Status,
    /// Where the config file has this setting.
    pub key: Key,
}

/// What a flag's value is; decides how text and YAML become a `Value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Uint,
    Uint32,
    /// Go duration on the command line, integer nanoseconds in the file.
    Duration,
    Text,
    /// Comma-separated list.
    List,
    /// Comma-separated http, https or unix URLs.
    Urls,
    /// Comma-separated URLs, or `*`.
    Origins,
    OneOf(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Works,
    /// Taken and ignored, with a notice if it was set; the text says why nothing depends on it.
    NoEffect(&'static str),
    /// Any value but the default stops the start; the text says what is missing and the way out.
    Refused(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Top-level key with the flag's name.
    Same,
    /// `section:` → `key:`.
    Nested(&'static str, &'static str),
    /// Only on the command line.
    None,
}

#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub title: &'static str,
    pub flags: &'static [Flag],
}

/// Every group in the order in which help prints them.
pub const GROUPS: &[Group] = &[
    Group { title: "Member", flags: member::FLAGS },
    Group { title: "Clustering", flags: clustering::FLAGS },
    Group { title: "Discovery", flags: clustering::DISCOVERY },
    Group { title: "Security", flags: security::FLAGS },
    Group { title: "Auth", flags: security::AUTH },
    Group { title: "Profiling and monitoring", flags: operation::MONITORING },
    Group { title: "Logging", flags: operation::LOGGING },
    Group { title: "Distributed tracing", flags: operation::TRACING },
    Group { title: "Features", flags: operation::FEATURES },
    Group { title: "Unsafe", flags: operation::UNSAFE },
    Group { title: "General", flags: operation::GENERAL },
];

pub fn flags() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags)
}

pub fn find(name: &str) -> Option<&'static Flag> {
    flags().find(|flag| flag.name == name)
}

impl Flag {
    pub fn env(&self) -> String {
        env_name(self.name)
    }

    const fn nested(mut self, section: &'static str, key: &'static str) -> Flag {
        self.key = Key::Nested(section, key);
        self
    }

    const fn at_least_ms(mut self, ms: u64) -> Flag {
        self.least = Some(Duration::from_millis(ms));
        self
    }

    const fn not_in_file(mut self) -> Flag {
        self.key = Key::None;
        self
    }

    const fn ignored(mut self, why: &'static str) -> Flag {
        self.status = Status::NoEffect(why);
        self
    }

    const fn refused(mut self, why: &'static str) -> Flag {
        self.status = Status::Refused(why);
        self
    }
}

pub fn env_name(flag: &str) -> String {
    format!("ETCD_{}", flag.to_ascii_uppercase().replace('-', "_"))
}

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    Flag { name, kind, default, least: None, help, status: Status::Works, key: Key::Same }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::value::Value;
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_parse() {
        let mut seen = HashSet::new();
        for flag in flags() {
            assert!(seen.insert(flag.name), "{} is listed twice", flag.name);
            if let Err(reason) = Value::parse(flag.kind, flag.default) {
                panic!("--{} has the bad default {:?}: {reason}", flag.name, flag.default);
            }
            assert!(flag.help.ends_with('.'), "help of --{} is not a sentence", flag.name);
            assert!(flag.least.is_none() || flag.kind == Kind::Duration, "--{} is not a duration", flag.name);
        }
    }

    #[test]
    fn file_keys_are_unique() {
        let mut seen = HashSet::new();
        for flag in flags() {
            let key = match flag.key {
                Key::Same => flag.name.to_owned(),
                Key::Nested(section, key) => format!("{section}/{key}"),
                Key::None => continue,
            };
            assert!(seen.insert(key.clone()), "{key} is two settings");
        }
    }
}
