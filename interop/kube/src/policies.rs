//! An admission policy through the types of k8s-openapi: in force, in its own words, and gone again.

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::{Foo, code, foo, until};

const NAME: &str = "few-foos.clux.dev";

pub async fn run(client: &Client, foos: &Api<Foo>) -> Result<()> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let rule = json!({"apiGroups": ["clux.dev"], "apiVersions": ["*"], "resources": ["foos"], "operations": ["CREATE", "UPDATE"]});
    let policy = json!({"metadata": {"name": NAME}, "spec": {"matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": "count", "expression": "object.spec.replicas"}],
        "validations": [{"expression": "variables.count < 5", "messageExpression": "'too many: ' + string(variables.count)"}]}});
    let binding = json!({"metadata": {"name": NAME}, "spec": {"policyName": NAME, "validationActions": ["Deny"]}});
    let made = policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
    let filled = made.spec.and_then(|spec| spec.failure_policy);
    ensure!(filled.as_deref() == Some("Fail"), "failurePolicy is {filled:?}");
    bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;

    let mut many = foo("many");
    many.spec.replicas = 7;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    // A Kubernetes takes a moment.
    until(|| async { Ok(foos.create(&dry, &many).await.is_err()) }).await?;
    let refused = code(foos.create(&PostParams::default(), &many).await)?;
    let text = format!(
        "foos.clux.dev \"many\" is forbidden: ValidatingAdmissionPolicy '{NAME}' with binding '{NAME}' denied request: too many: 7"
    );
    ensure!(refused == (422, text), "refused with {refused:?}");
    bindings.delete(NAME, &DeleteParams::default()).await?;
    policies.delete(NAME, &DeleteParams::default()).await?;
    until(|| async { Ok(foos.create(&dry, &many).await.is_ok()) }).await
}
