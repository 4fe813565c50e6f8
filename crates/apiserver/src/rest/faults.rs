//! Whether an object is fit to be stored.

use serde_json::Value;

use super::{Api, admit::Scope};
use crate::{
    admission, builtin, crd,
    field::FieldError,
    object,
    resource::{Resource, Role},
    rules,
    schema::{self, Schema},
    serve::answer::Warnings,
    status::{Result, Status},
};

impl Api {
    /// Refuses an object that is not fit to be stored.
    pub(super) fn validate(
        &self,
        resource: &Resource,
        scope: Scope,
        object: &Value,
        old: Option<&Value>,
        more: Vec<FieldError>,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let mut errors = self.faults(resource, scope, object, old, warnings);
        errors.extend(more);
        if errors.is_empty() {
            builtin::caution(&resource.kind, object).into_iter().for_each(|caution| warnings.add(caution));
            Ok(())
        } else {
            Err(Status::invalid(&resource.kind_name(), object::meta(object, "name"), &errors))
        }
    }

    /// All that is wrong with an object about to be stored.
    pub(super) fn faults(
        &self,
        resource: &Resource,
        scope: Scope,
        object: &Value,
        old: Option<&Value>,
        warnings: &mut Warnings,
    ) -> Vec<FieldError> {
        let mut errors = object::check_metadata(object, resource.namespaced, resource.name_rule);
        // Kubernetes asks this of its oldest kinds alone, to which leases do not belong.
        if resource.custom().is_none() && matches!(resource.role, Role::Plain | Role::Secret | Role::Namespace) {
            errors.extend(object::check_vague(object));
        }
        // The types of fields of other kinds were seen to when they were read; all else is said below.
        if resource.custom().is_some() {
            errors.extend(check_shape(resource, scope, object, old));
        }
        if resource.role == Role::Definition && scope == Scope::Main {
            let (faults, cautions) = crd::validate(object, old);
            errors.extend(faults);
            cautions.into_iter().for_each(|caution| warnings.add(caution));
        }
        match resource.role {
            Role::Policy if scope == Scope::Main => errors.extend(admission::check_policy(object)),
            Role::Binding => errors.extend(admission::check_binding(object)),
            _ => {}
        }
        if let Some(old) = old {
            check_change(object, old, &mut errors);
        }
        if resource.custom().is_none() {
            errors.extend(builtin::faults(&resource.kind, scope.name(), object, old));
        }
        errors.extend(resource.scale.iter().flat_map(|scale| scale.check(object, scope != Scope::Status)));
        check_rules(resource, object, old, &mut errors, warnings);
        if resource.custom().is_some() {
            object::doubtful_finalizers(object, old).into_iter().for_each(|text| warnings.add(text));
        }
        errors
    }
}

/// What the schema says. On an update of a custom resource, what was wrong before and has not changed is let be; and of a write
/// of the status only the status is judged, but for lists and rules, which may be about both.
fn check_shape(resource: &Resource, scope: Scope, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let schema = &resource.schema;
    let lists = |object: &Value| {
        let mut errors = Vec::new();
        schema::check_lists(schema, object, "", &mut errors);
        errors
    };
    let custom = resource.custom().is_some();
    let mut errors = match (scope, old.filter(|_| custom)) {
        (Scope::Status, old) if custom => check_status(schema, object, old),
        (_, old) => schema::validate_update(schema, object, old, ""),
    };
    if scope != Scope::Status {
        schema::check_embedded(schema, object, "", &mut errors);
    }
    if old.filter(|_| custom).is_none_or(|old| lists(old).is_empty()) {
        errors.extend(lists(object));
    }
    errors
}

fn check_status(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (Some(schema), Some(status)) = (schema.properties.get("status"), object.get("status")) else {
        return Vec::new();
    };
    schema::validate_update(schema, status, old.and_then(|old| old.get("status")), "status")
}

/// Rules are asked only of objects whose shape they can rely on.
fn check_rules(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
    warnings: &mut Warnings,
) {
    let Some(tree) = &resource.rules else { return };
    if errors.iter().any(|error| error.fault.blocks_rules()) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to \
            complete validation";
        errors.push(FieldError::invalid("<nil>", Value::Null, detail));
        return;
    }
    let verdict = rules::validate(tree, &resource.schema, object, old);
    errors.extend(verdict.errors);
    verdict.tolerated.iter().for_each(|error| warnings.add(error.to_string()));
}

/// What an object cannot become.
fn check_change(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if object::is_deleting(old) {
        let before = object::list(old, "finalizers");
        let new: Vec<&Value> =
            object::list(object, "finalizers").iter().filter(|name| !before.contains(name)).collect();
        if !new.is_empty() {
            let names: Vec<String> = new.iter().map(|name| name.to_string()).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                names.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
}
