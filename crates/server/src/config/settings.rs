//! What was set, by whatever source, over the table's defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::ConfigError;
use super::table::{self, Flag, Kind};
use super::url::Url;
use super::value::Value;

#[derive(Debug, Default)]
pub(super) struct Settings {
    explicit: BTreeMap<&'static str, Value>,
}

impl Settings {
    pub(super) fn set(&mut self, flag: &'static Flag, value: Value) {
        self.explicit.insert(flag.name, value);
    }

    pub(super) fn set_text(&mut self, flag: &'static Flag, text: &str) -> Result<(), String> {
        // An empty list of URLs counts as given but leaves the default, as in etcd.
        let text = if flag.kind == Kind::Urls && text.is_empty() { flag.default } else { text };
        self.set(flag, Value::parse(flag.kind, text)?);
        Ok(())
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.explicit.contains_key(name)
    }

    /// Explicit values that differ from the default, in the table's order.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&'static Flag, &Value)> {
        table::flags()
            .filter_map(|flag| Some((flag, self.explicit.get(flag.name)?)))
            .filter(|(flag, value)| **value != default_of(flag))
    }

    pub(super) fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Bool(true))
    }

    pub(super) fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Value::Int(n) => n,
            other => unreachable!("--{name} is {other:?} in the table"),
        }
    }

    pub(super) fn uint(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Uint(n) => n,
            other => unreachable!("--{name} is {other:?} in the table"),
        }
    }

    pub(super) fn text(&self, name: &str) -> String {
        match self.get(name) {
            Value::Text(text) => text,
            other => unreachable!("--{name} is {other:?} in the table"),
        }
    }

    pub(super) fn list(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Value::List(items) => items,
            other => unreachable!("--{name} is {other:?} in the table"),
        }
    }

    pub(super) fn urls(&self, name: &str) -> Vec<Url> {
        match self.get(name) {
            Value::Urls(urls) => urls,
            other => unreachable!("--{name} is {other:?} in the table"),
        }
    }

    /// The duration, raised to the least one of its flag.
    pub(super) fn duration(&self, name: &'static str) -> Result<Duration, ConfigError> {
        match self.get(name) {
            Value::Duration(nanos) => u64::try_from(nanos)
                .map(|nanos| at_least(Duration::from_nanos(nanos), table::find(name).and_then(|flag| flag.least)))
                .map_err(|_| ConfigError::NegativeDuration { flag: name, nanos }),
            other => unreachable!("--{name} is {other:?} in the table"),
        }
    }

    /// The durations that were set and are shorter than the least one of their flag, and the durations used instead.
    pub(super) fn raised(&self) -> impl Iterator<Item = (&'static Flag, Duration, Duration)> {
        self.changed().filter_map(|(flag, value)| {
            let Value::Duration(nanos) = value else { return None };
            let given = Duration::from_nanos(u64::try_from(*nanos).ok()?);
            Some((flag, given, at_least(given, flag.least))).filter(|(_, given, used)| given != used)
        })
    }

    /// The duration, or `instead` where 0 stands for a default.
    pub(super) fn duration_or(&self, name: &'static str, instead: Duration) -> Result<Duration, ConfigError> {
        Ok(Some(self.duration(name)?).filter(|d| !d.is_zero()).unwrap_or(instead))
    }

    fn get(&self, name: &str) -> Value {
        match (self.explicit.get(name), table::find(name)) {
            (Some(value), _) => value.clone(),
            (None, Some(flag)) => default_of(flag),
            (None, None) => unreachable!("--{name} is not in the table"),
        }
    }
}

fn at_least(given: Duration, least: Option<Duration>) -> Duration {
    least.filter(|_| !given.is_zero()).map_or(given, |least| given.max(least))
}

/// A test of the table proves that every default parses.
fn default_of(flag: &Flag) -> Value {
    Value::parse(flag.kind, flag.default).unwrap_or_else(|_| Value::Text(flag.default.to_owned()))
}
