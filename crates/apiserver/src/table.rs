//! Objects as rows, for people: columns and cells as the server prints them.

use serde_json::{Value, json};

use crate::{jsonpath::JsonPath, object};

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub source: Source,
    /// What stands for nothing.
    pub unset: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub enum Source {
    Path(JsonPath),
    /// How many entries the maps at these places have together.
    Count(&'static [&'static str]),
    /// How many items the list at this pointer has.
    Items(&'static str),
}

impl Column {
    pub fn path(name: &str, kind: &str, path: &str, description: &str) -> Column {
        // Paths of built-in columns are known to be sound; one that is not shows nothing.
        let source = JsonPath::parse(path).map_or(Source::Count(&[]), Source::Path);
        let (name, kind, description) = (name.to_owned(), kind.to_owned(), description.to_owned());
        Column { name, kind, format: String::new(), description, priority: 0, source, unset: None }
    }

    pub fn name() -> Column {
        let description = "Name must be unique within a namespace. Is required when creating resources.";
        Column { format: "name".to_owned(), ..Column::path("Name", "string", ".metadata.name", description) }
    }

    pub fn age() -> Column {
        let description = "CreationTimestamp is a timestamp representing the server time when this object was created.";
        Column::path("Age", "date", ".metadata.creationTimestamp", description)
    }

    pub fn items(name: &str, pointer: &'static str, description: &str) -> Column {
        Column { source: Source::Items(pointer), ..Column::path(name, "integer", "", description) }
    }

    pub fn unless_set(mut self, unset: &'static str) -> Column {
        self.unset = Some(unset);
        self
    }

    fn definition(&self) -> Value {
        // A date is shown as its age, which is a string.
        let kind = if self.kind == "date" { "string" } else { &self.kind };
        json!({"name": self.name, "type": kind, "format": self.format, "description": self.description, "priority": self.priority})
    }

    fn cell(&self, object: &Value, now: jiff::Timestamp) -> Value {
        let path = match &self.source {
            Source::Count(maps) => {
                return maps
                    .iter()
                    .map(|map| object[*map].as_object().map_or(0, |map| map.len()))
                    .sum::<usize>()
                    .into();
            }
            Source::Items(pointer) => {
                return object.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len).into();
            }
            Source::Path(path) => path,
        };
        let found = path.find(object);
        let Some(first) = found.first() else {
            if let Some(unset) = self.unset {
                return unset.into();
            }
            return if self.kind == "date" && self.name == "Age" { "<unknown>".into() } else { Value::Null };
        };
        match self.kind.as_str() {
            "integer" => first.as_i64().map_or(Value::Null, Value::from),
            "number" => first.as_f64().map_or(Value::Null, Value::from),
            "boolean" => first.as_bool().map_or(Value::Null, Value::from),
            "date" => first.as_str().map_or(Value::Null, |text| age(text, now).into()),
            _ => found.iter().map(|value| text(value)).collect::<Vec<_>>().join(" ").into(),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How much of each object goes along with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    None,
    Metadata,
    Object,
}

/// A Table of these objects; `headers` is false for all but the first of a watch.
pub fn table(columns: &[Column], objects: &[Value], include: Include, metadata: Value, headers: bool) -> Value {
    let now = jiff::Timestamp::now();
    let rows: Vec<Value> = objects.iter().map(|object| row(columns, object, include, now)).collect();
    let definitions: Vec<Value> = if headers { columns.iter().map(Column::definition).collect() } else { Vec::new() };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions, "rows": rows})
}

fn row(columns: &[Column], object: &Value, include: Include, now: jiff::Timestamp) -> Value {
    let cells: Vec<Value> = columns.iter().map(|column| column.cell(object, now)).collect();
    let mut row = json!({"cells": cells});
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = partial(object),
        Include::Object => row["object"] = object.clone(),
    }
    row
}

/// The metadata of an object alone.
pub fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// The time since then as kubectl shows it: two units at most, coarser the longer ago.
fn age(text: &str, now: jiff::Timestamp) -> String {
    let Ok(then) = text.parse::<jiff::Timestamp>() else { return "<unknown>".to_owned() };
    let seconds = now.as_second() - then.as_second();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |a: i64, x: &str, b: i64, y: &str| if b == 0 { format!("{a}{x}") } else { format!("{a}{x}{b}{y}") };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

/// What a list of such columns shows of an object that has a name only, so that there is always one.
pub fn default_columns() -> Vec<Column> {
    vec![Column::name(), Column::age()]
}

/// Columns of a custom resource, after its name.
pub fn custom_columns(definitions: &[Value]) -> Vec<Column> {
    if definitions.is_empty() {
        return default_columns();
    }
    let text = |definition: &Value, key: &str| definition[key].as_str().unwrap_or_default().to_owned();
    let custom = definitions.iter().filter_map(|definition| {
        Some(Column {
            name: text(definition, "name"),
            kind: text(definition, "type"),
            format: text(definition, "format"),
            description: text(definition, "description"),
            priority: definition["priority"].as_i64().unwrap_or_default(),
            source: Source::Path(JsonPath::parse(definition["jsonPath"].as_str()?).ok()?),
            unset: None,
        })
    });
    std::iter::once(Column::name()).chain(custom).collect()
}

/// Metadata of a table that shows one object.
pub fn version_of(object: &Value) -> Value {
    json!({"resourceVersion": object::meta(object, "resourceVersion")})
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(0 => "0s")]
    #[test_case(119 => "119s")]
    #[test_case(130 => "2m10s")]
    #[test_case(660 => "11m")]
    #[test_case(10_860 => "3h1m")]
    #[test_case(36_000 => "10h")]
    #[test_case(180_000 => "2d2h")]
    #[test_case(864_000 => "10d")]
    #[test_case(-100 => "<invalid>")]
    fn ages(seconds: i64) -> String {
        let now = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        let then = jiff::Timestamp::from_second(1_700_000_000 - seconds).unwrap();
        age(&then.to_string(), now)
    }

    #[test]
    fn cells_have_the_type_of_their_column() {
        let columns = custom_columns(&[
            json!({"name": "Spec", "type": "string", "jsonPath": ".spec.cron"}),
            json!({"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}),
            json!({"name": "Gone", "type": "string", "jsonPath": ".spec.gone"}),
        ]);
        let object = json!({"metadata": {"name": "a"}, "spec": {"cron": "* *", "n": 3}});
        let table = table(&columns, &[object], Include::None, json!({}), true);
        assert_eq!(table["rows"][0]["cells"], json!(["a", "* *", 3, null]));
        assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    }
}
