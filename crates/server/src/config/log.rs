//! Logging flags, typed: level, format, outputs, rotation.

use std::path::PathBuf;

use super::error::ConfigError;
use super::settings::Settings;

/// zap's levels. The three above `Error` log as errors here; a line is written if its level is at least this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
    DPanic,
    Panic,
    Fatal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Console if the output is a terminal, else JSON.
    Auto,
    Json,
    Console,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    Stderr,
    Stdout,
    File(PathBuf),
}

/// Size-based rotation of the log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rotation {
    /// Megabytes after which a new file is begun; 0 means 100.
    pub maxsize: u64,
    /// Days to keep rotated files; 0 keeps them for ever.
    pub maxage: u64,
    /// Rotated files to keep; 0 keeps all.
    pub maxbackups: usize,
    /// Not supported: names of rotated files carry UTC.
    localtime: bool,
    /// Not supported.
    compress: bool,
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation { maxsize: 100, maxage: 0, maxbackups: 0, localtime: false, compress: false }
    }
}

impl Rotation {
    /// Rotation after `maxsize` megabytes, keeping `maxbackups` files (0: all).
    pub fn by_size(maxsize: u64, maxbackups: usize) -> Rotation {
        Rotation { maxsize, maxbackups, ..Rotation::default() }
    }
}

pub(super) struct Logging {
    pub level: LogLevel,
    pub format: LogFormat,
    pub outputs: Vec<LogOutput>,
    pub rotation: Option<Rotation>,
}

/// Checks in etcd's order, with its texts.
pub(super) fn build(settings: &Settings) -> Result<Logging, ConfigError> {
    let invalid = |text: String| Err(ConfigError::Invalid(text));
    match settings.text("logger").as_str() {
        "zap" => {}
        "capnslog" => return invalid("--logger=capnslog is removed in v3.5".to_owned()),
        other => return invalid(format!("unknown logger option {other:?}")),
    }
    let names = settings.list("log-outputs");
    if names.len() > 1 && names.iter().any(|name| name == "default") {
        return invalid("multi logoutput for \"default\" is not supported yet".to_owned());
    }
    let rotation = rotation(settings, &names)?;
    let outputs = names.iter().map(|name| output(name)).collect::<Result<Vec<_>, _>>()?;
    let level = level(&settings.text("log-level"))?;
    let format = match settings.text("log-format").as_str() {
        "" => LogFormat::Auto,
        "json" => LogFormat::Json,
        "console" => LogFormat::Console,
        other => return invalid(format!("unknown log format: {other}, supported values json, console")),
    };
    let outputs = if outputs.is_empty() { vec![LogOutput::Stderr] } else { dedup(outputs) };
    Ok(Logging { level, format, outputs, rotation })
}

fn level(name: &str) -> Result<LogLevel, ConfigError> {
    match name.to_ascii_lowercase().as_str() {
        "debug" => Ok(LogLevel::Debug),
        "info" | "" => Ok(LogLevel::Info),
        "warn" | "warning" => Ok(LogLevel::Warn),
        "error" => Ok(LogLevel::Error),
        "dpanic" => Ok(LogLevel::DPanic),
        "panic" => Ok(LogLevel::Panic),
        "fatal" => Ok(LogLevel::Fatal),
        _ => Err(ConfigError::Invalid(format!(
            "--log-level: unrecognized level: {name:?}, expected debug, info, warn, error, dpanic, panic or fatal"
        ))),
    }
}

fn output(name: &str) -> Result<LogOutput, ConfigError> {
    match name {
        "default" | "stderr" => Ok(LogOutput::Stderr),
        "stdout" => Ok(LogOutput::Stdout),
        "systemd/journal" => Err(ConfigError::Invalid(
            "--log-outputs=systemd/journal is not supported by this version; use stderr, which systemd collects".into(),
        )),
        "" => Err(ConfigError::Invalid("--log-outputs has an empty name".into())),
        path => Ok(LogOutput::File(PathBuf::from(path))),
    }
}

fn dedup(outputs: Vec<LogOutput>) -> Vec<LogOutput> {
    let mut unique = Vec::with_capacity(outputs.len());
    for output in outputs {
        if !unique.contains(&output) {
            unique.push(output);
        }
    }
    unique
}

fn rotation(settings: &Settings, outputs: &[String]) -> Result<Option<Rotation>, ConfigError> {
    if !settings.bool("enable-log-rotation") {
        return Ok(None);
    }
    let invalid = |text: String| Err(ConfigError::Invalid(text));
    let files = outputs.iter().filter(|name| !matches!(name.as_str(), "default" | "stderr" | "stdout")).count();
    if files != 1 {
        return invalid("--log-outputs requires a single file path when --log-rotate-config-json is defined".into());
    }
    match serde_json::from_str::<Rotation>(&settings.text("log-rotation-config-json")) {
        Ok(Rotation { localtime: true, .. }) => invalid(
            "--log-rotation-config-json: localtime is not supported by this version; rotated files carry UTC".into(),
        ),
        Ok(Rotation { compress: true, .. }) => {
            invalid("--log-rotation-config-json: compress is not supported by this version; leave it false".into())
        }
        Ok(rotation) => Ok(Some(rotation)),
        Err(err) if err.is_data() => invalid(format!("invalid log rotation config: {err}")),
        Err(err) => invalid(format!("improperly formatted log rotation config: {err}")),
    }
}
