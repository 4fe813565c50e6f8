//! Gates as users of a published schema see them (`kubectl explain`).

use serde_json::{Value, json};

use crate::{Gate, Gates, Path, Step};

/// The extension that names the life cycle of a field, by component.
const LIFECYCLE: &str = "x-kubernetes-api-lifecycle";

impl Gates {
    /// Marks every gated field that this schema of a served version has: an `x-kubernetes-api-lifecycle` under the
    /// component, or `group` if there is none, and a line before its description.
    ///
    /// One key of a map has no schema of its own; there the map gets the line, with the rest of the path.
    pub fn publish(&self, schema: &mut Value, group: &str) {
        let component = self.component.as_deref().unwrap_or(group);
        let mut fields: Vec<(&Path, &Gate)> =
            self.gates.iter().flat_map(|gate| gate.field_paths.iter().map(move |path| (path, gate))).collect();
        // Lines go before each other: backwards, so that they read in the order of the paths.
        fields.sort_by(|a, b| (b.0, &b.1.name).cmp(&(a.0, &a.1.name)));
        for (path, gate) in fields {
            publish_field(schema, path, gate, component);
        }
    }
}

fn publish_field(schema: &mut Value, path: &Path, gate: &Gate, component: &str) {
    if crate::resolve(schema, path).is_err() {
        return;
    }
    let (field, rest) = own_schema(schema, path.steps());
    let state = if gate.is_on() { "on" } else { "off" };
    let (stage, name) = (gate.pre_release, &gate.name);
    if rest.is_empty() {
        let lifecycle = json!({ "status": stage.as_str(), "featureGate": name, "enabled": gate.is_on() });
        set_lifecycle(field, component, lifecycle);
        describe(field, &format!("[{stage}, gate {name}: {state}]"));
    } else {
        let rest: String = rest.iter().map(Step::to_string).collect();
        describe(field, &format!("[{stage}, gate {name}: {state} for {rest}]"));
    }
}

/// The last schema on the way that belongs to this path alone, and the steps that are left from there.
///
/// Invariant: the path resolves in the schema.
fn own_schema<'a, 's>(schema: &'a mut Value, steps: &'s [Step]) -> (&'a mut Value, &'s [Step]) {
    let Some((step, rest)) = steps.split_first() else { return (schema, steps) };
    let below = match step {
        Step::Named(name) => schema.get("properties").and_then(|fields| fields.get(name)).map(|_| "properties"),
        Step::Each if crate::schema::map_values(schema).is_some() => Some("additionalProperties"),
        Step::Each => Some("items"),
    };
    let Some(below) = below else { return (schema, steps) };
    let next = &mut schema[below];
    match step {
        Step::Named(name) => own_schema(&mut next[name.as_str()], rest),
        Step::Each => own_schema(next, rest),
    }
}

fn set_lifecycle(field: &mut Value, component: &str, lifecycle: Value) {
    let Some(field) = field.as_object_mut() else { return };
    let all = field.entry(LIFECYCLE).or_insert_with(|| json!({}));
    if !all.is_object() {
        *all = json!({});
    }
    all[component] = lifecycle;
}

fn describe(field: &mut Value, line: &str) {
    let Some(field) = field.as_object_mut() else { return };
    let text = match field.get("description").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!("{line}\n{text}"),
        _ => line.to_owned(),
    };
    field.insert("description".to_owned(), text.into());
}
