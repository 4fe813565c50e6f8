//! What a command found, in the form that `--write-out` names.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// A result with a name and a text for each of its parts.
pub trait Shown: Serialize {
    /// Headings and cells of a table of one row.
    fn row(&self) -> Vec<(&'static str, String)>;
    fn fields(&self) -> Vec<(&'static str, String)>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Simple,
    Table,
    Json,
    Fields,
    Protobuf,
}

impl Format {
    pub fn parse(name: &str) -> Result<Format, Failure> {
        Ok(match name {
            "simple" => Format::Simple,
            "table" => Format::Table,
            "json" => Format::Json,
            "fields" => Format::Fields,
            "protobuf" => Format::Protobuf,
            _ => return Err(Failure::bad_feature("unsupported output format")),
        })
    }

    pub fn print(self, result: &impl Shown) -> Result<(), Failure> {
        let text = match self {
            Format::Simple => result.row().into_iter().map(|cell| cell.1).collect::<Vec<_>>().join(", ") + "\n",
            Format::Table => table(&result.row()),
            Format::Json => serde_json::to_string(result).map_err(Failure::error)? + "\n",
            Format::Fields => result.fields().iter().map(|(name, value)| format!("{name:?} : {value}\n")).collect(),
            // etcd has no protobuf message for what is found in a file.
            Format::Protobuf => return Err(Failure::bad_feature("protobuf not supported as output format")),
        };
        print(text.as_bytes())
    }
}

/// Who reads standard output may be gone; that is no reason for a long error.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::error(error)),
        _ => Ok(()),
    }
}

/// A table of one row in box characters: centred headings, values to the right.
fn table(row: &[(&str, String)]) -> String {
    let width = |cell: &(&str, String)| cell.0.chars().count().max(cell.1.chars().count());
    let rule = |left: &str, middle: &str, right: &str| {
        let cells: Vec<String> = row.iter().map(|cell| "─".repeat(width(cell) + 2)).collect();
        format!("{left}{}{right}\n", cells.join(middle))
    };
    let line = |cells: Vec<String>| format!("│ {} │\n", cells.join(" │ "));
    let headings = row.iter().map(|cell| format!("{:^1$}", cell.0.to_uppercase(), width(cell))).collect();
    let values = row.iter().map(|cell| format!("{:>1$}", cell.1, width(cell))).collect();
    [rule("┌", "┬", "┐"), line(headings), rule("├", "┼", "┤"), line(values), rule("└", "┴", "┘")].concat()
}

/// A size with two significant digits and decimal units: `20 kB`, `2.1 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 10 {
        return format!("{bytes} B");
    }
    let exponent = bytes.ilog10() / 3;
    let value = (bytes as f64 / 1000f64.powi(exponent as i32) * 10.0 + 0.5).floor() / 10.0;
    let unit = UNITS[exponent as usize];
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case(9 => "9 B")]
    #[test_case(999 => "999 B")]
    #[test_case(1000 => "1.0 kB")]
    #[test_case(20480 => "20 kB")]
    #[test_case(2_097_152_000 => "2.1 GB")]
    fn sizes(bytes: u64) -> String {
        super::size(bytes)
    }

    #[test]
    fn headings_are_centred_and_values_to_the_right() {
        let row = [("hash", "8699225".to_owned()), ("hash revision", "6".to_owned())];
        let expected = "\
┌─────────┬───────────────┐
│  HASH   │ HASH REVISION │
├─────────┼───────────────┤
│ 8699225 │             6 │
└─────────┴───────────────┘
";
        assert_eq!(super::table(&row), expected);
    }
}
