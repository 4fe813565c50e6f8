//! Logs in the shape that etcd's have: zap's JSON lines, or a readable form for people.
//!
//! A line is `level`, `ts`, `caller`, `msg`, then the event's fields in their order. An event with the field
//! `zap.level` (`"fatal"`, `"panic"`, `"dpanic"`) is shown with that level. A field whose value is a list written with
//! `?` becomes a JSON array.

mod line;
mod sink;
mod time;

use std::cell::RefCell;
use std::path::PathBuf;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat, LogLevel, LogOutput, Rotation};
use line::Record;
use sink::Sink;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("--log-outputs: cannot open {}: {source}", path.display())]
    Open { path: PathBuf, source: std::io::Error },
    #[error("logging is already set up")]
    AlreadySet,
}

/// Makes the configured logging that of the whole process.
pub fn init(config: &Config) -> Result<(), LogError> {
    let layer = ZapLayer::new(config.log_level, config.log_format, &config.log_outputs, config.log_rotation)?;
    install(layer)
}

/// Logging for a start that failed before there was a configuration: stderr, from `info` on.
pub fn init_default() -> Result<(), LogError> {
    install(ZapLayer::new(LogLevel::Info, LogFormat::Auto, &[LogOutput::Stderr], None)?)
}

fn install(layer: ZapLayer) -> Result<(), LogError> {
    let filter = layer.filter();
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    subscriber.try_init().map_err(|_| LogError::AlreadySet)
}

/// Writes every event to every output.
pub struct ZapLayer {
    level: LogLevel,
    sinks: Vec<Sink>,
}

/// Crates that log their own wire traffic below `warn`.
const NOISY: [&str; 5] = ["h2", "hyper", "hyper_util", "tonic", "tower"];

impl ZapLayer {
    pub fn new(
        level: LogLevel,
        format: LogFormat,
        outputs: &[LogOutput],
        rotation: Option<Rotation>,
    ) -> Result<ZapLayer, LogError> {
        let sinks = outputs.iter().map(|output| Sink::open(output, format, rotation)).collect::<Result<_, _>>()?;
        Ok(ZapLayer { level, sinks })
    }

    /// The filter that keeps what the level leaves out from being looked at at all.
    pub fn filter(&self) -> Targets {
        let level = match self.level {
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Error | LogLevel::DPanic | LogLevel::Panic | LogLevel::Fatal => LevelFilter::ERROR,
        };
        let quiet = level.min(LevelFilter::WARN);
        Targets::new().with_default(level).with_targets(NOISY.map(|name| (name, quiet)))
    }
}

thread_local! {
    /// Reused, so that a line costs no allocation.
    static BUFFER: RefCell<String> = const { RefCell::new(String::new()) };
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ZapLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let record = Record::of(event);
        if record.level < self.level {
            return;
        }
        BUFFER.with(|buffer| {
            // A value whose formatting logs itself finds the buffer taken and gets one of its own.
            let mut own = String::new();
            let mut shared = buffer.try_borrow_mut();
            let text = shared.as_deref_mut().unwrap_or(&mut own);
            for sink in &self.sinks {
                text.clear();
                if sink.is_console() {
                    record.write_console(text, sink.has_colours())
                } else {
                    record.write_json(text)
                }
                sink.write(text.as_bytes());
            }
        });
    }
}

#[cfg(test)]
mod tests;
