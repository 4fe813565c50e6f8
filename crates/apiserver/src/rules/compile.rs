//! From the JSON of a schema to rules that can be evaluated.

use serde_json::Value;

use super::{Rule, Tree, fieldpath, types};
use crate::cel::{Program, Type};

impl Tree {
    /// The rules of a whole schema, or `None` if it has none.
    pub(crate) fn compile(schema: &Value) -> Option<Tree> {
        Tree::of(schema, true)
    }

    /// The rules of a node and below; the root of an object has fields of its own.
    pub(super) fn of(schema: &Value, root: bool) -> Option<Tree> {
        tree(schema, schema, root)
    }
}

/// Rules stand in `rules`, types in `node`; these differ within `allOf`, which has no types of its own.
fn tree(rules: &Value, node: &Value, root: bool) -> Option<Tree> {
    let mut tree = Tree { kind: text(&node["type"]), ..Tree::default() };
    let own = list(&rules["x-kubernetes-validations"]);
    let kind = if own.is_empty() { None } else { types::of(node, root) };
    if let Some(kind) = kind {
        tree.rules = own.iter().filter_map(|json| rule(json, node, &kind)).collect();
    }
    for (name, property) in rules["properties"].as_object().into_iter().flatten() {
        let Some(inner) = node["properties"].get(name) else { continue };
        if let Some(found) = self::tree(property, inner, types::is_embedded(inner)) {
            tree.properties.insert(name.clone(), found);
        }
    }
    tree.items = nested(rules, node, "items");
    tree.additional = nested(rules, node, "additionalProperties");
    tree.all_of = list(&rules["allOf"]).iter().filter_map(|nested| self::tree(nested, node, root)).collect();
    (!tree.is_empty()).then_some(tree)
}

fn nested(rules: &Value, node: &Value, key: &str) -> Option<Box<Tree>> {
    let inner = node[key].as_object().map(|_| &node[key])?;
    tree(&rules[key], inner, types::is_embedded(inner)).map(Box::new)
}

/// One rule, unless it is empty.
fn rule(json: &Value, node: &Value, kind: &Type) -> Option<Rule> {
    let source = text(&json["rule"]);
    if source.trim().is_empty() {
        return None;
    }
    let optional_old = json["optionalOldSelf"] == true;
    let path = text(&json["fieldPath"]);
    let field = fieldpath::resolve(&path, node, true).ok().map(|(at, _)| at).filter(|at| !at.is_empty());
    let message = text(&json["messageExpression"]);
    let message_program = if message.is_empty() { None } else { self::message(&message, kind, optional_old).ok() };
    Some(Rule {
        program: program(&source, kind, optional_old),
        message_program,
        source,
        message: text(&json["message"]),
        reason: json["reason"].as_str().map(str::to_owned),
        field,
        optional_old,
    })
}

/// The rule's own expression, which must be a yes or a no.
pub(super) fn program(source: &str, kind: &Type, optional_old: bool) -> Result<Program, String> {
    let program = compile(source, kind, optional_old).map_err(|error| format!("compilation failed: {error}"))?;
    match program.result() {
        Type::Bool => Ok(program),
        _ => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// The expression of a message, which must be a text.
pub(super) fn message(source: &str, kind: &Type, optional_old: bool) -> Result<Program, String> {
    let failed = |error| format!("messageExpression compilation failed: {error}");
    let program = compile(source, kind, optional_old).map_err(failed)?;
    match program.result() {
        Type::String => Ok(program),
        _ => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

fn compile(source: &str, kind: &Type, optional_old: bool) -> Result<Program, crate::cel::CompileError> {
    let old = if optional_old { Type::optional(kind.clone()) } else { kind.clone() };
    Program::compile(source, &[("self", kind.clone()), ("oldSelf", old)])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
