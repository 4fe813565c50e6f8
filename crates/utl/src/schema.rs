//! `schema`: every bucket, key and part of a value, with the version that brought it.

use cli::Table;
use serde::Serialize;
use storage::schema::{
    Version,
    plan::{VERSION_MAX, VERSION_MIN},
    table::{ROWS, Row},
};

use crate::{
    failure::Failure,
    print::{self, Format},
};

/// Prints what a database holds: buckets, keys, parts of values, and the version that brought each
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl schema --version 3.6")]
pub(crate) struct SchemaArgs {
    /// What a file at this version may hold; all versions if not given
    #[arg(long, value_name = "X.Y")]
    version: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    bucket: &'static str,
    key: String,
    since: String,
    encoding: String,
    up: String,
    down: String,
    meaning: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<ShownPart>,
}

#[derive(Serialize)]
struct ShownPart {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    since: String,
}

pub(crate) fn run(args: &SchemaArgs, format: &str) -> Result<(), Failure> {
    let format = Format::parse(format)?;
    let version = args.version.as_deref().map(parse_version).transpose()?.unwrap_or(VERSION_MAX);
    let rows: Vec<_> = ROWS.iter().filter(|row| row.since <= version).map(|row| shown(row, version)).collect();
    let text = match format {
        Format::Json => serde_json::to_string(&rows).map_err(Failure::error)? + "\n",
        Format::Table => table(&rows),
        Format::Simple | Format::Fields => rows.iter().map(simple).collect(),
        Format::Protobuf => return Err(Failure::bad_feature("protobuf not supported as output format")),
    };
    print::print(text.as_bytes())
}

/// A version such as 3.6, that files can be brought to.
pub(crate) fn parse_version(text: &str) -> Result<Version, Failure> {
    let wrong = || Failure::error(format!("wrong target version format, expected \"X.Y\", got {text:?}"));
    let version: Version = text.parse().map_err(|_| wrong())?;
    if version.to_string() != text {
        return Err(wrong());
    }
    if version < VERSION_MIN {
        return Err(Failure::error(format!("target version {text:?} not supported. Minimal \"{VERSION_MIN}\"")));
    }
    if version > VERSION_MAX {
        return Err(Failure::error(format!("target version {text:?} not supported. Maximal \"{VERSION_MAX}\"")));
    }
    Ok(version)
}

fn shown(row: &Row, version: Version) -> Shown {
    let parts = row.parts().into_iter().filter(|part| part.since <= version);
    let parts = parts.map(|part| ShownPart { name: part.name, number: part.number, since: part.since.to_string() });
    Shown {
        bucket: row.bucket.name(),
        key: row.key.to_string(),
        since: row.since.to_string(),
        encoding: row.encoding.to_string(),
        up: row.up.to_string(),
        down: row.down.to_string(),
        meaning: row.note,
        parts: parts.collect(),
    }
}

fn parts_text(row: &Shown) -> String {
    row.parts.iter().map(|part| format!("{} {}", part.name, part.since)).collect::<Vec<_>>().join(", ")
}

fn simple(row: &Shown) -> String {
    let Shown { bucket, key, since, encoding, up, down, meaning, .. } = row;
    let parts = if row.parts.is_empty() { String::new() } else { format!(" ({})", parts_text(row)) };
    format!("{bucket}/{key}\n  since {since}; {encoding}{parts}; going up: {up}; going down: {down}; {meaning}\n")
}

fn table(rows: &[Shown]) -> String {
    let header = vec!["bucket", "key", "since", "value", "parts", "going up", "going down", "meaning"];
    let cells = |row: &Shown| {
        let Shown { bucket, key, since, encoding, up, down, meaning, .. } = row;
        let (bucket, meaning) = ((*bucket).to_owned(), (*meaning).to_owned());
        vec![bucket, key.clone(), since.clone(), encoding.clone(), parts_text(row), up.clone(), down.clone(), meaning]
    };
    Table { header, rows: rows.iter().map(cells).collect() }.render()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("3.5" => Some(Version::new(3, 5)))]
    #[test_case("3.8" => Some(Version::new(3, 8)))]
    #[test_case("3.8.0" => None; "three numbers")]
    #[test_case("3.4" => None; "too old")]
    #[test_case("3.9" => None; "too new")]
    #[test_case("03.8" => None; "padded")]
    #[test_case("x" => None; "no version")]
    fn versions(text: &str) -> Option<Version> {
        parse_version(text).ok()
    }
}
