//! Whether Kubernetes has approved of a definition in one of its own groups.

use serde_json::Value;

pub(super) const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// As in the condition `KubernetesAPIApprovalPolicyConformant`.
pub(super) struct Approval {
    pub annotation: String,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Approval {
    /// Nothing for groups of others.
    pub(super) fn of(definition: &Value) -> Option<Approval> {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let owners = ["k8s.io", "kubernetes.io"];
        if !owners.iter().any(|owner| group == *owner || group.ends_with(&format!(".{owner}"))) {
            return None;
        }
        let found = definition["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
        let must = format!("protected groups must have approval annotation {ANNOTATION:?}");
        let (status, reason, message) = match found {
            "" => ("False", "MissingAnnotation", format!("{must}, {SEE}")),
            _ if found.starts_with("unapproved") => {
                ("False", "UnapprovedAnnotation", format!("not approved: {found:?}"))
            }
            _ if is_url(found) => ("True", "ApprovedAnnotation", format!("approved in {found}")),
            _ => {
                let with = "with either a URL or a reason starting with \"unapproved\"";
                ("False", "InvalidAnnotation", format!("{must} {with}, {SEE}"))
            }
        };
        Some(Approval { annotation: found.to_owned(), status, reason, message })
    }
}

fn is_url(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case("sigs.k8s.io", "https://github.com/kubernetes/kubernetes/pull/79724" => "True ApprovedAnnotation: approved in https://github.com/kubernetes/kubernetes/pull/79724"; "approved")]
    #[test_case("k8s.io", "unapproved, other" => "False UnapprovedAnnotation: not approved: \"unapproved, other\""; "unapproved")]
    #[test_case("a.kubernetes.io", "" => "False MissingAnnotation: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"; "missing")]
    #[test_case("a.kubernetes.io", "yes" => "False InvalidAnnotation: protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"; "invalid")]
    #[test_case("example.com", "" => ""; "not theirs")]
    fn says(group: &str, annotation: &str) -> String {
        let definition = json!({"metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group}});
        let found = Approval::of(&definition);
        found.map(|found| format!("{} {}: {}", found.status, found.reason, found.message)).unwrap_or_default()
    }
}
