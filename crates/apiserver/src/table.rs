//! Objects as rows, for people: columns and cells as the server prints them.

mod cell;

use serde_json::{Value, json};

use crate::{jsonpath::JsonPath, object, serve::accept::Meta};

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may \
    allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation \
    idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
    guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented \
    in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub source: Source,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// What is at a path, by the type of the column.
    Path(JsonPath),
    /// What a built-in kind shows.
    Cell(fn(&Value) -> Value),
    /// How long ago the object was made.
    Age,
}

impl Column {
    /// A column of a built-in kind.
    pub(crate) fn cell(name: &str, kind: &str, description: &str, cell: fn(&Value) -> Value) -> Column {
        let (name, kind, description) = (name.to_owned(), kind.to_owned(), description.to_owned());
        Column { name, kind, format: String::new(), description, priority: 0, source: Source::Cell(cell) }
    }

    pub(crate) fn name() -> Column {
        let name = Column::cell("Name", "string", NAME, |object| object::meta(object, "name").into());
        Column { format: "name".to_owned(), ..name }
    }

    pub(crate) fn age() -> Column {
        Column { source: Source::Age, ..Column::cell("Age", "string", CREATED, |_| Value::Null) }
    }

    /// When an object was made, for kinds that nobody has written columns for.
    pub(crate) fn created() -> Column {
        Column::cell("Created At", "date", CREATED, |object| object::meta(object, "creationTimestamp").into())
    }

    fn custom(definition: &Value) -> Option<Column> {
        let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
        let path = text("jsonPath");
        let description = match text("description") {
            none if none.is_empty() => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description,
        };
        let (priority, source) = (definition["priority"].as_i64().unwrap_or_default(), JsonPath::parse(&path).ok()?);
        let (name, kind, format) = (text("name"), text("type"), text("format"));
        Some(Column { name, kind, format, description, priority, source: Source::Path(source) })
    }

    fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description, "priority": self.priority})
    }

    fn of(&self, object: &Value, now: jiff::Timestamp) -> Value {
        match &self.source {
            Source::Path(path) => cell::at(path, &self.kind, object, now),
            Source::Cell(cell) => cell(object),
            Source::Age => cell::age_of(object::meta(object, "creationTimestamp"), now).into(),
        }
    }
}

/// How much of each object goes along with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

/// How a table is to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub include: Include,
    pub meta: Meta,
    /// Whether columns are told; they are not for all but the first table of a watch.
    pub headers: bool,
}

/// A Table of these objects. Their parts are moved into it: `json!` would copy them.
pub(crate) fn table(columns: &[Column], objects: Vec<Value>, metadata: Value, look: Look) -> Value {
    let now = jiff::Timestamp::now();
    let rows = objects.into_iter().map(|object| row(columns, object, look, now)).collect();
    let definitions = look.headers.then(|| columns.iter().map(Column::definition).collect::<Vec<_>>());
    let mut table = json!({"kind": "Table", "apiVersion": look.meta.api_version(), "metadata": metadata, "columnDefinitions": definitions});
    table["rows"] = Value::Array(rows);
    table
}

fn row(columns: &[Column], object: Value, look: Look, now: jiff::Timestamp) -> Value {
    let mut row = json!({});
    row["cells"] = columns.iter().map(|column| column.of(&object, now)).collect();
    row["object"] = match look.include {
        Include::None => Value::Null,
        Include::Metadata => partial(object, look.meta),
        Include::Object => object,
    };
    row
}

/// The metadata of an object alone.
pub(crate) fn partial(mut object: Value, meta: Meta) -> Value {
    let mut part = json!({"kind": "PartialObjectMetadata", "apiVersion": meta.api_version()});
    part["metadata"] = object["metadata"].take();
    part
}

/// Columns of a custom resource, after its name. One that cannot be read ends them.
pub(crate) fn custom_columns(definitions: &[Value]) -> Vec<Column> {
    let age = [creation()];
    let definitions = if definitions.is_empty() { &age } else { definitions };
    std::iter::once(Column::name()).chain(definitions.iter().map_while(Column::custom)).collect()
}

/// The column that a definition has if it has no other.
pub(crate) fn creation() -> Value {
    json!({"name": "Age", "type": "date", "description": CREATED, "jsonPath": ".metadata.creationTimestamp"})
}

/// Metadata of a table that shows one object.
pub(crate) fn version_of(object: &Value) -> Value {
    match object::meta(object, "resourceVersion") {
        // What is not stored has none.
        "" => json!({}),
        version => json!({"resourceVersion": version}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(definitions: &[Value], object: Value) -> Value {
        let look = Look { include: Include::None, meta: Meta::V1, headers: true };
        table(&custom_columns(definitions), vec![object], json!({}), look)
    }

    #[test]
    fn cells_have_the_type_of_their_column() {
        let columns = [
            json!({"name": "Spec", "type": "string", "jsonPath": ".spec.cron"}),
            json!({"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1, "description": "How many."}),
            json!({"name": "Gone", "type": "string", "jsonPath": ".spec.gone"}),
        ];
        let object = json!({"metadata": {"name": "a"}, "spec": {"cron": "* *", "n": 3}});
        let table = shown(&columns, object);
        assert_eq!(table["rows"], json!([{"cells": ["a", "* *", 3, null], "object": null}]));
        let spec = json!({"name": "Spec", "type": "string", "format": "", "priority": 0,
            "description": "Custom resource definition column (in JSONPath format): .spec.cron"});
        assert_eq!(table["columnDefinitions"][1], spec);
        let number = json!({"name": "N", "type": "integer", "format": "", "priority": 1, "description": "How many."});
        assert_eq!(table["columnDefinitions"][2], number);
    }

    /// Kubernetes takes such a definition, and so it must not fail here.
    #[test]
    fn a_column_that_cannot_be_read_is_not_shown_nor_are_those_after_it() {
        let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
        let table = shown(&[column("A", ".spec.a"), column("B", ".spec["), column("C", ".spec.c")], json!({}));
        let names: Vec<&Value> =
            table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "A"]);
    }
}
