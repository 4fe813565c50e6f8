//! What a command found, in the form that `--write-out` names.

use std::io::{self, Write};

use cli::Table;
use serde::Serialize;

use crate::failure::Failure;

/// A result with a name and a text for each of its parts.
pub(crate) trait Shown: Serialize {
    /// Headings and cells of a table of one row.
    fn row(&self) -> Vec<(&'static str, String)>;
    fn fields(&self) -> Vec<(&'static str, String)>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Simple,
    Table,
    Json,
    Fields,
    Protobuf,
}

impl Format {
    pub(crate) fn parse(name: &str) -> Result<Format, Failure> {
        Ok(match name {
            "simple" => Format::Simple,
            "table" => Format::Table,
            "json" => Format::Json,
            "fields" => Format::Fields,
            "protobuf" => Format::Protobuf,
            _ => return Err(Failure::bad_feature("unsupported output format")),
        })
    }

    pub(crate) fn print(self, result: &impl Shown) -> Result<(), Failure> {
        let text = match self {
            Format::Simple => result.row().into_iter().map(|cell| cell.1).collect::<Vec<_>>().join(", ") + "\n",
            Format::Table => {
                let (header, row) = result.row().into_iter().unzip();
                Table { header, rows: vec![row] }.render()
            }
            Format::Json => serde_json::to_string(result).map_err(Failure::error)? + "\n",
            Format::Fields => result.fields().iter().map(|(name, value)| format!("{name:?} : {value}\n")).collect(),
            // etcd has no protobuf message for what is found in a file.
            Format::Protobuf => return Err(Failure::bad_feature("protobuf not supported as output format")),
        };
        print(text.as_bytes())
    }
}

/// Who reads standard output may be gone; that is no reason for a long error.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::error(error)),
        _ => Ok(()),
    }
}
