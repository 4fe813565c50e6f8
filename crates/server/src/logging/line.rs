//! One event as a line of JSON or for a person.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

use super::time;
use crate::config::LogLevel;

pub(super) struct Record<'a> {
    pub level: LogLevel,
    metadata: &'static Metadata<'static>,
    event: &'a Event<'a>,
}

impl<'a> Record<'a> {
    pub(super) fn of(event: &'a Event<'a>) -> Record<'a> {
        let metadata = event.metadata();
        let mut level = LevelVisitor(match *metadata.level() {
            Level::TRACE | Level::DEBUG => LogLevel::Debug,
            Level::INFO => LogLevel::Info,
            Level::WARN => LogLevel::Warn,
            Level::ERROR => LogLevel::Error,
        });
        event.record(&mut level);
        Record { level: level.0, metadata, event }
    }

    /// `{"level":…,"ts":…,"logger":…,"caller":…,"msg":…, fields…}` and a line end.
    pub(super) fn write_json(&self, text: &mut String) {
        text.push_str("{\"level\":\"");
        text.push_str(name(self.level));
        text.push_str("\",\"ts\":\"");
        time::write_now(text);
        text.push('"');
        if let Some(logger) = self.logger() {
            text.push_str(",\"logger\":\"");
            text.push_str(logger);
            text.push('"');
        }
        text.push_str(",\"caller\":\"");
        self.write_caller(text);
        text.push_str("\",\"msg\":");
        let mut message = MessageVisitor { text, found: false };
        self.event.record(&mut message);
        if !message.found {
            text.push_str("\"\"");
        }
        self.event.record(&mut JsonVisitor { text });
        text.push_str("}\n");
    }

    /// `time  LEVEL caller  message  key=value …` and a line end.
    pub(super) fn write_console(&self, text: &mut String, colours: bool) {
        let (dim, plain) = if colours { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        text.push_str(dim);
        time::write_now(text);
        text.push_str(plain);
        text.push(' ');
        let colour = if colours { colour(self.level) } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{colour}{:<5}{plain} ", name(self.level).to_ascii_uppercase());
        let mut message = ConsoleVisitor { text, only_message: true, dim, plain };
        self.event.record(&mut message);
        let mut fields = ConsoleVisitor { text, only_message: false, dim, plain };
        self.event.record(&mut fields);
        text.push_str(dim);
        text.push_str("  ");
        self.write_caller(text);
        text.push_str(plain);
        text.push('\n');
    }

    /// The raft library logs under a name of its own, as in etcd.
    fn logger(&self) -> Option<&'static str> {
        self.metadata.target().starts_with("raft").then_some("raft")
    }

    /// Last directory and file, leaving out `src`: `config/mod.rs:12`, `server/lib.rs:3`.
    fn write_caller(&self, text: &mut String) {
        let (Some(file), Some(line)) = (self.metadata.file(), self.metadata.line()) else {
            return text.push_str("undefined");
        };
        let mut parts = file.rsplit(['/', '\\']).filter(|part| *part != "src");
        let name = parts.next().unwrap_or_default();
        if let Some(dir) = parts.next() {
            text.push_str(dir);
            text.push('/');
        }
        let _ = write!(text, "{name}:{line}");
    }
}

fn name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
        LogLevel::DPanic => "dpanic",
        LogLevel::Panic => "panic",
        LogLevel::Fatal => "fatal",
    }
}

fn colour(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "\x1b[35m",
        LogLevel::Info => "\x1b[34m",
        LogLevel::Warn => "\x1b[33m",
        LogLevel::Error | LogLevel::DPanic | LogLevel::Panic | LogLevel::Fatal => "\x1b[31m",
    }
}

const MESSAGE: &str = "message";
const LEVEL: &str = "zap.level";

/// Looks for a level above tracing's own.
struct LevelVisitor(LogLevel);

impl Visit for LevelVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 = match (field.name(), value) {
            (LEVEL, "dpanic") => LogLevel::DPanic,
            (LEVEL, "panic") => LogLevel::Panic,
            (LEVEL, "fatal") => LogLevel::Fatal,
            _ => self.0,
        };
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

struct MessageVisitor<'a> {
    text: &'a mut String,
    found: bool,
}

impl Visit for MessageVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            self.found = true;
            push_quoted(self.text, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == MESSAGE {
            self.found = true;
            push_debug_quoted(self.text, value);
        }
    }
}

struct JsonVisitor<'a> {
    text: &'a mut String,
}

impl JsonVisitor<'_> {
    /// Begins a field unless it was shown already.
    fn key(&mut self, field: &Field) -> bool {
        if matches!(field.name(), MESSAGE | LEVEL) {
            return false;
        }
        self.text.push(',');
        push_quoted(self.text, field.name());
        self.text.push(':');
        true
    }

    fn raw(&mut self, field: &Field, value: impl fmt::Display) {
        if self.key(field) {
            let _ = write!(self.text, "{value}");
        }
    }
}

impl Visit for JsonVisitor<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.raw(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.raw(field, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.raw(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.raw(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.raw(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() { self.raw(field, value) } else { self.record_str(field, &value.to_string()) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.key(field) {
            push_quoted(self.text, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !self.key(field) {
            return;
        }
        let start = self.text.len();
        push_debug_quoted(self.text, value);
        if self.text[start..].starts_with("\"[") {
            self.list_from(start);
        }
    }
}

impl JsonVisitor<'_> {
    /// Turns text that is a JSON array, as `?vec![..]` gives it, into that array.
    fn list_from(&mut self, start: usize) {
        let Ok(text) = serde_json::from_str::<String>(&self.text[start..]) else { return };
        if let Ok(list) = serde_json::from_str::<Vec<serde_json::Value>>(&text) {
            self.text.truncate(start);
            let _ = write!(self.text, "{}", serde_json::Value::Array(list));
        }
    }
}

struct ConsoleVisitor<'a> {
    text: &'a mut String,
    only_message: bool,
    dim: &'static str,
    plain: &'static str,
}

impl Visit for ConsoleVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let needs_quotes = value.is_empty() || value.contains([' ', '"', '\n', '\t', '=']);
        if field.name() != MESSAGE && needs_quotes {
            self.record_debug(field, &value)
        } else {
            self.record_debug(field, &format_args!("{value}"))
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match (field.name(), self.only_message) {
            (MESSAGE, true) => {
                let start = self.text.len();
                let _ = write!(self.text, "{value:?}");
                // A line stays a line.
                if self.text[start..].contains('\n') {
                    let one_line = self.text[start..].replace('\n', "\\n");
                    self.text.truncate(start);
                    self.text.push_str(&one_line);
                }
            }
            (MESSAGE | LEVEL, _) | (_, true) => {}
            (name, false) => {
                let _ = write!(self.text, "  {}{name}={}{value:?}", self.dim, self.plain);
            }
        }
    }
}

/// A JSON string.
fn push_quoted(text: &mut String, value: &str) {
    text.push('"');
    // Escaping into a String cannot fail.
    let _ = Escaped(text).write_str(value);
    text.push('"');
}

fn push_debug_quoted(text: &mut String, value: &dyn fmt::Debug) {
    text.push('"');
    let _ = write!(Escaped(text), "{value:?}");
    text.push('"');
}

/// Escapes what is written through it for the inside of a JSON string.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, value: &str) -> fmt::Result {
        let mut clean = 0;
        for (i, byte) in value.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0..0x20 => "",
                _ => continue,
            };
            self.0.push_str(&value[clean..i]);
            clean = i + 1;
            match escape {
                "" => write!(self.0, "\\u{byte:04x}")?,
                escape => self.0.push_str(escape),
            }
        }
        self.0.push_str(&value[clean..]);
        Ok(())
    }
}
