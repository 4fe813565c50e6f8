//! The expressions of a policy, compiled.

use serde_json::Value;

use super::types;
use crate::{
    cel::{ObjectType, Program, Type},
    field::FieldError,
};

pub(super) const NO_PARAMS: &str = "parameters are not supported by this server; write the values into the policy";
const NO_AUTHORIZER: &str = "the authorizer is not supported by this server";

#[derive(Default)]
pub(crate) struct Code {
    pub conditions: Vec<Expression>,
    pub variables: Vec<(String, Program)>,
    pub validations: Vec<Validation>,
    pub annotations: Vec<(String, Expression)>,
}

pub(crate) struct Expression {
    pub source: String,
    pub program: Program,
}

pub(crate) struct Validation {
    pub expression: Expression,
    pub message: String,
    pub message_expression: Option<Expression>,
    pub reason: Option<String>,
}

/// All expressions of a spec. What is none is reported with its place and left out.
pub(super) fn compile(spec: &Value, errors: &mut Vec<FieldError>) -> Code {
    let mut code = Code::default();
    let mut known = Known { variables: types::variables(), own: ObjectType::default(), has_own: false };
    for (index, condition) in items(spec, "matchConditions") {
        let at = format!("spec.matchConditions[{index}].expression");
        code.conditions.extend(known.compile(&at, text(condition, "expression").trim(), "", &[Type::Bool], errors));
    }
    let mut variables = items(spec, "variables").peekable();
    known.has_own = variables.peek().is_some();
    for (index, variable) in variables {
        let at = format!("spec.variables[{index}].expression");
        let source = text(variable, "expression");
        if let Some(made) = known.compile(&at, source, "expression is not specified", &[], errors) {
            let name = text(variable, "name").to_owned();
            known.own.fields.insert(name.clone(), (name.clone(), made.program.result().clone()));
            code.variables.push((name, made.program));
        }
    }
    for (index, validation) in items(spec, "validations") {
        code.validations.extend(known.validation(validation, &format!("spec.validations[{index}]"), errors));
    }
    for (index, annotation) in items(spec, "auditAnnotations") {
        let at = format!("spec.auditAnnotations[{index}].valueExpression");
        let source = text(annotation, "valueExpression").trim();
        let wanted = [Type::String, Type::Null];
        let made = known.compile(&at, source, "valueExpression is not specified", &wanted, errors);
        code.annotations.extend(made.map(|made| (text(annotation, "key").to_owned(), made)));
    }
    code
}

/// What an expression may use where it stands.
struct Known {
    variables: Vec<(&'static str, Type)>,
    /// The policy's variables so far.
    own: ObjectType,
    has_own: bool,
}

impl Known {
    fn validation(&self, json: &Value, at: &str, errors: &mut Vec<FieldError>) -> Option<Validation> {
        let source = text(json, "expression");
        let at_expression = format!("{at}.expression");
        let expression = self.compile(&at_expression, source, "expression is not specified", &[Type::Bool], errors);
        let message = text(json, "messageExpression");
        let message_expression = match message.trim() {
            "" => None,
            _ => self.compile(&format!("{at}.messageExpression"), message, "", &[Type::String], errors),
        };
        Some(Validation {
            expression: expression?,
            message: text(json, "message").trim().to_owned(),
            message_expression,
            reason: json["reason"].as_str().map(str::to_owned),
        })
    }

    /// One expression whose result is of one of these types, or of any if there are none.
    fn compile(
        &self,
        at: &str,
        source: &str,
        missing: &str,
        wanted: &[Type],
        errors: &mut Vec<FieldError>,
    ) -> Option<Expression> {
        if source.trim().is_empty() {
            errors.push(FieldError::required(at, missing));
            return None;
        }
        match self.program(source).and_then(|program| fits(program, wanted)) {
            Ok(program) => Some(Expression { source: source.to_owned(), program }),
            Err(why) => {
                errors.push(FieldError::invalid(at, source, why));
                None
            }
        }
    }

    fn program(&self, source: &str) -> Result<Program, String> {
        let mut variables = self.variables.clone();
        if self.has_own {
            let own = ObjectType { fields: self.own.fields.clone() };
            variables.push((types::VARIABLES, Type::Object(own.into())));
        }
        Program::compile(source, &variables).map_err(|error| {
            let text = error.to_string();
            let hint = match text {
                _ if text.contains("'authorizer'") => format!("\n{NO_AUTHORIZER}"),
                _ if text.contains("undeclared reference to 'params'") => format!("\n{NO_PARAMS}"),
                _ => String::new(),
            };
            format!("compilation failed: {text}{hint}")
        })
    }
}

fn fits(program: Program, wanted: &[Type]) -> Result<Program, String> {
    let name = |kind: &Type| if matches!(kind, Type::Null) { "null_type".to_owned() } else { kind.to_string() };
    let found = name(program.result());
    let names: Vec<String> = wanted.iter().map(name).collect();
    match names.as_slice() {
        [] => Ok(program),
        names if names.contains(&found) => Ok(program),
        [one] => Err(format!("must evaluate to {one} but got {found}")),
        several => Err(format!("must evaluate to one of [{}] but got {found}", several.join(" "))),
    }
}

pub(super) fn items<'a>(spec: &'a Value, key: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    spec[key].as_array().into_iter().flatten().enumerate()
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
