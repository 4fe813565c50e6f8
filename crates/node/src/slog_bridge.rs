//! Sends what the `raft` crate logs (through slog) to tracing.

use std::fmt::Write;

use slog::{Drain, KV, Key, Level, Logger, Never, OwnedKVList, Record, Serializer};

pub(crate) fn logger() -> Logger {
    Logger::root(Bridge, slog::o!())
}

struct Bridge;

impl Drain for Bridge {
    type Ok = ();
    type Err = Never;

    fn log(&self, record: &Record<'_>, _: &OwnedKVList) -> Result<(), Never> {
        // The core tells of every step; its info level is of interest only when looking into the core.
        let mut line = Line(String::new());
        match record.level() {
            Level::Critical | Level::Error => {
                tracing::error!(target: "raft", "{}{}", record.msg(), line.fill(record));
            }
            Level::Warning => tracing::warn!(target: "raft", "{}{}", record.msg(), line.fill(record)),
            _ if tracing::enabled!(target: "raft", tracing::Level::DEBUG) => {
                tracing::debug!(target: "raft", "{}{}", record.msg(), line.fill(record));
            }
            _ => {}
        }
        Ok(())
    }
}

struct Line(String);

impl Line {
    fn fill(&mut self, record: &Record<'_>) -> &str {
        // Writing to a String does not fail.
        let _ = record.kv().serialize(record, self);
        &self.0
    }
}

impl Serializer for Line {
    fn emit_arguments(&mut self, key: Key, value: &std::fmt::Arguments<'_>) -> slog::Result {
        let _ = write!(self.0, " {key}={value}");
        Ok(())
    }
}
