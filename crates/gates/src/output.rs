//! What a command has to say: text for people, one JSON value for programs.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Simple,
    Json,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub text: String,
    pub json: Value,
    /// False: the command did its work and the finding is bad, as with files that are out of date.
    pub good: bool,
}

impl Output {
    pub(crate) fn good(text: String, json: Value) -> Output {
        Output { text, json, good: true }
    }

    pub(crate) fn print(&self, format: Format) -> ExitCode {
        match format {
            Format::Simple => print!("{}", self.text),
            Format::Json => println!("{}", self.json),
        }
        if self.good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Errors go to standard error; programs get them as JSON too, so that they need not look in two places.
pub(crate) fn print_error(error: &anyhow::Error, format: Format) {
    let text = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    eprintln!("lockgate gates: {text}");
    if format == Format::Json {
        print_json_error(&text);
    }
}

pub(crate) fn print_json_error(text: &str) {
    println!("{}", json!({"error": text}));
}
