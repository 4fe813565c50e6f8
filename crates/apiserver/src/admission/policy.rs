//! A policy, ready to be asked.

use serde_json::Value;

use super::{
    code::{self, Code},
    rule::Resources,
};
use crate::{field, object};

pub(crate) struct Policy {
    pub name: String,
    pub constraints: Resources,
    /// Whether what cannot be judged is refused (`failurePolicy: Fail`).
    pub fails: bool,
    /// A policy that somebody else stored may have expressions that are none here.
    pub code: Result<Code, String>,
}

impl Policy {
    pub(crate) fn new(object: &Value) -> Policy {
        let spec = &object["spec"];
        let mut errors = Vec::new();
        let code = code::compile(spec, &mut errors);
        let code = match (errors.is_empty(), spec["paramKind"].is_object()) {
            (_, true) => Err(code::NO_PARAMS.to_owned()),
            (false, false) => Err(field::join(&errors)),
            (true, false) => Ok(code),
        };
        let name = object::meta(object, "name").to_owned();
        if let Err(why) = &code {
            tracing::warn!(policy = name, "the policy cannot be evaluated: {why}");
        }
        Policy {
            name,
            constraints: Resources::new(&spec["matchConstraints"]),
            fails: spec["failurePolicy"] != "Ignore",
            code,
        }
    }
}
