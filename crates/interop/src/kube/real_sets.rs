//! Feature sets on a real kube-apiserver and a real etcd: every manifest that `lockgate gates render` ships, with controller and
//! followers as service accounts that have the shipped roles and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        http::Http,
        server::Server,
        wait::until_some,
    },
    api::Api,
    loosened,
    real::{KUBERNETES, OLDEST, Real},
    sets::{ANY, EVERYWHERE, METRICS, NO_UPGRADES, PREVIEWS, Running, Sets},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "kube-apiserver: feature sets",
        short: false,
        run: |world, base| feature_sets(world, base, KUBERNETES),
    },
    Scenario {
        name: "kube-apiserver 1.30: feature sets",
        short: false,
        run: |world, base| feature_sets(world, base, OLDEST),
    },
];

const NAMESPACE: &str = "lockgate-gates";
const ONE_WAY: &str = "TechPreviewNoUpgrade may not be changed";
const REMOVED: &str = ".spec.featureSet cannot be removed";
/// Part of the refusal of a write by a policy.
const DENIED: &str = "denied request: ";

fn feature_sets(world: &World, base: &Path, release: &str) -> Result<Ending> {
    let store = Server::start(&world.etcd, &base.join("store"))?;
    let real = Real::start_release(release, world, &base.join("real"), &store.endpoint, &key(world, base)?)?;
    let sets = Sets::new(world, base, &real.kubeconfig)?;
    sets.release("1.4.0", &[("A", PREVIEWS), ("B", &[])])?;
    sets.release("1.5.0", &[("A", EVERYWHERE), ("B", PREVIEWS), ("C", &[])])?;
    install(&sets)?;
    let controller = account(&sets, base, "controller")?;
    let follower = account(&sets, base, "follower")?;

    let mut running = vec![sets.controller("1.4.0", &controller, &[])];
    begin_and_complete(&sets, "1.4.0").with_context(|| running[0].log_text())?;
    running[0].check_well()?;
    running.clear();
    running.push(sets.controller("1.5.0", &controller, &[]));
    let metrics = running[0].endpoint("metrics")?;
    begin_and_complete(&sets, "1.5.0").with_context(|| running[0].log_text())?;
    sets.until_rows("1.4.0: 1.5.0:A")?;
    sets.until_condition("clusteroperator", "config-operator", "Upgradeable", "True AsExpected")?;

    let refusals = names_and_lists(&sets)? + transitions(&sets, release)? + deletions(&sets)?;
    sets.until_rows("1.4.0:A 1.5.0:A,B")?;
    sets.until_condition("clusteroperator", "config-operator", "Upgradeable", NO_UPGRADES)?;
    sets.until_condition("featuregate", "cluster", "DeterminationDegraded", "False AsExpected")?;
    follow(&sets, base, &follower)?;
    ask(world, &sets, base, &follower)?;
    let roles = roles(&sets, &controller, &follower)?;
    let writes = quiet(&sets, &metrics)?;
    sets.check_metrics(&metrics, METRICS)?;
    running.iter_mut().try_for_each(Running::check_well)?;
    // Everything that the controller does, it may do.
    let log = running[0].log_text();
    ensure!(!log.contains("forbidden"), "the controller lacks a role:\n{log}");
    running.clear();
    let forged = loosened::forged_rows(&sets, &controller)?;
    Ok(Ending::Well(format!(
        "{refusals} refusals, {roles} limits of roles, {writes} objects at rest, {forged}, {release}"
    )))
}

/// Only a private key for service accounts is taken from Lockgate, which does not run meanwhile.
fn key(world: &World, base: &Path) -> Result<PathBuf> {
    let beside = Server::start(&world.ours, &base.join("beside"))?;
    let key = Api::start(world, &base.join("key"), std::slice::from_ref(&beside.endpoint), &[])?.key();
    beside.stop()?;
    Ok(key)
}

/// Twice, because whoever installs does not know what is there; the second time nothing may change.
fn install(sets: &Sets<'_>) -> Result<()> {
    let files = ["0-crds.yaml", "1-namespace.yaml", "2-policies.yaml", "3-rbac.yaml"];
    for file in files {
        sets.good(&["apply", "-f", &sets.manifest("1.5.0", file)]).context(file)?;
    }
    let names = ["featuregates", "clusterversions", "clusteroperators"];
    for name in names {
        let name = format!("crd/{name}.config.openshift.io");
        sets.good(&["wait", "--for=condition=Established", "--timeout=60s", &name])?;
        let conditions = sets.good(&["get", &name, "-o", "jsonpath={.status.conditions[*].type}"])?;
        ensure!(!conditions.contains("NonStructuralSchema"), "{name} has a schema that is not structural");
    }
    for file in files {
        let said = sets.good(&["apply", "-f", &sets.manifest("1.5.0", file)]).context(file)?;
        let changed = said.lines().find(|line| !line.ends_with(" unchanged"));
        ensure!(changed.is_none(), "a second apply of {file} changes something: {said}");
    }
    Ok(())
}

/// A service account with the shipped roles of that name, and a kubeconfig with a token of it.
fn account(sets: &Sets<'_>, base: &Path, name: &str) -> Result<PathBuf> {
    let (role, subject) = (format!("lockgate-gates-{name}"), format!("--serviceaccount={NAMESPACE}:{name}"));
    sets.good(&["create", "serviceaccount", name, "-n", NAMESPACE])?;
    sets.good(&["create", "clusterrolebinding", &role, &format!("--clusterrole={role}"), &subject])?;
    sets.good(&["create", "rolebinding", &role, &format!("--role={role}"), &subject, "-n", NAMESPACE])?;
    let token = sets.good(&["create", "token", name, "-n", NAMESPACE])?;
    let config = fs::read_to_string(&sets.kubeconfig)?;
    let own = config.replace("token: secret", &format!("token: {}", token.trim()));
    ensure!(own != config, "the kubeconfig of the administrator has another token");
    let path = base.join(format!("{name}.kubeconfig"));
    fs::write(&path, own)?;
    Ok(path)
}

fn begin_and_complete(sets: &Sets<'_>, version: &str) -> Result<()> {
    sets.ours(&["gates", "version", "begin", version, "--wait-seconds", "90"])?;
    sets.ours(&["gates", "version", "complete", version]).map(drop)
}

fn refuse(sets: &Sets<'_>, spec: &Value, part: &str) -> Result<usize> {
    let args = Sets::patch(spec);
    sets.refused(&args.each_ref().map(String::as_str), part)?;
    Ok(1)
}

/// Refusals by policies while the set is Default. They are in force a moment after they were written.
fn names_and_lists(sets: &Sets<'_>) -> Result<usize> {
    let other = json!({"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": "other"}, "spec": {}});
    let file = sets.manifest("1.5.0", "other.json");
    fs::write(&file, other.to_string())?;
    let name = "the only FeatureGate is named cluster";
    sets.until("refused", || {
        let (well, said) = sets.kubectl_as(&sets.kubeconfig, &["create", "--dry-run=server", "-f", &file])?;
        Ok(if !well && said.contains(name) && said.contains(DENIED) { "refused".to_owned() } else { said })
    })?;
    let mut refused = 1;
    let lists = json!({"customNoUpgrade": {"enabled": ["A"]}});
    refused += refuse(sets, &lists, "spec.customNoUpgrade is allowed only with featureSet CustomNoUpgrade")?;
    let both = json!({"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": ["A"], "disabled": ["A"]}});
    refused += refuse(sets, &both, "must not have a gate in common")?;
    refused += refuse(sets, &json!({"featureSet": "Other"}), "Unsupported value: \"Other\"")?;
    Ok(refused)
}

/// As kubectl prints a refusal of Kubernetes. The newest names the value, and none of an object; the oldest, like Lockgate, the type.
fn invalid(release: &str, field: &str, value: &Value, why: &str) -> String {
    let value = match (release == KUBERNETES, value) {
        (true, Value::Object(_)) => String::new(),
        (true, value) => format!("{value}: "),
        (false, Value::Object(_)) => "\"object\": ".to_owned(),
        (false, _) => "\"string\": ".to_owned(),
    };
    format!("The FeatureGate \"cluster\" is invalid: {field}: Invalid value: {value}{why}")
}

/// A way through the table of transitions: at every stop, all that is refused there.
fn transitions(sets: &Sets<'_>, release: &str) -> Result<usize> {
    let mut refused = 0;
    sets.choose("OKD")?;
    sets.until_rows("1.4.0: 1.5.0:A")?;
    refused += refuse(sets, &json!({"featureSet": ""}), "OKD cannot transition to Default")?;
    refused += refuse(sets, &json!({"featureSet": null}), REMOVED)?;
    sets.choose("TechPreviewNoUpgrade")?;
    for set in ["", "OKD", "DevPreviewNoUpgrade", "CustomNoUpgrade"] {
        let why = invalid(release, "spec.featureSet", &set.into(), ONE_WAY);
        refused += refuse(sets, &json!({"featureSet": set}), &why)?;
    }
    let why = invalid(release, "spec", &json!({}), REMOVED);
    refused += refuse(sets, &json!({"featureSet": null}), &why)?;
    // The same by apply and by replacing the whole object.
    let mut object = sets.object("featuregate", "cluster")?;
    object["spec"] = json!({"featureSet": ""});
    let file = sets.manifest("1.5.0", "back.json");
    fs::write(&file, object.to_string())?;
    sets.refused(&["replace", "-f", &file], ONE_WAY)?;
    let small = json!({"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": "cluster"}, "spec": {"featureSet": ""}});
    fs::write(&file, small.to_string())?;
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", &file];
    sets.refused(&apply, ONE_WAY)?;
    Ok(refused + 2)
}

fn deletions(sets: &Sets<'_>) -> Result<usize> {
    let kept = "feature sets are kept in this object, it cannot be deleted";
    let records = "registries and the audit trail are kept, they cannot be deleted";
    let list: [(&[&str], &str); 7] = [
        (&["delete", "featuregate", "cluster"], kept),
        (&["delete", "clusterversion", "version"], kept),
        (&["delete", "crd", "featuregates.config.openshift.io"], kept),
        (&["delete", "namespace", NAMESPACE], kept),
        (&["delete", "featuregates", "--all"], kept),
        (&["delete", "configmap", "gates-1.5.0", "-n", NAMESPACE], records),
        (&["delete", "configmaps", "-n", NAMESPACE, "-l", "gates.lockgate.io/kind"], records),
    ];
    for (args, why) in list {
        sets.refused(args, why)?;
    }
    let change = ["patch", "configmap", "gates-audit-1", "-n", NAMESPACE, "--type=merge", "-p", r#"{"data":null}"#];
    sets.refused(&change, "entries of registries and of the audit trail are added, never changed")?;
    let label = ["label", "configmap", "gates-audit-1", "-n", NAMESPACE, "gates.lockgate.io/kind-"];
    sets.refused(&label, "registries and the audit trail keep the label gates.lockgate.io/kind")?;
    // Other objects are not protected.
    sets.good(&["create", "configmap", "mine", "-n", NAMESPACE])?;
    sets.good(&["delete", "configmap", "mine", "-n", NAMESPACE])?;
    Ok(list.len() + 2)
}

/// The accessor, as a service account that may follow and nothing else.
fn follow(sets: &Sets<'_>, base: &Path, kubeconfig: &Path) -> Result<()> {
    let (config, output) = (kubeconfig.display().to_string(), base.join("args").display().to_string());
    for (version, want) in
        [("1.4.0", "--feature-gates=A=true,B=false"), ("1.5.0", "--feature-gates=A=true,B=true,C=false")]
    {
        let args = ["follow", "--once", "--format", "args", "--output", &output, "--kubeconfig", &config];
        sets.ours(&[&args[..], &["--release-version", version]].concat())?;
        let said = fs::read_to_string(&output)?;
        ensure!(said.trim() == want, "{version} follows {said:?}, and should {want:?}");
    }
    Ok(())
}

/// OFREP with the same rights.
fn ask(world: &World, sets: &Sets<'_>, base: &Path, kubeconfig: &Path) -> Result<()> {
    let config = kubeconfig.display().to_string();
    let args = ["ofrep", "--listen", ANY, "--kubeconfig", &config];
    let mut ofrep = Running::start(world, &args, &base.join("ofrep.log"));
    let listen = ofrep.endpoint("ofrep")?;
    for (version, want) in [("1.4.0", "false Off"), ("1.5.0", "true TechPreview")] {
        let body = json!({"context": {"targetingKey": "x", "version": version}}).to_string();
        sets.until(want, || {
            let said = Http::connect(&listen)?.post("/ofrep/v1/evaluate/flags/B", &body)?;
            let flag: Value = serde_json::from_str(&said.body)?;
            Ok(format!("{} {}", flag["value"], flag["metadata"]["stage"].as_str().unwrap_or(&said.body)))
        })?;
    }
    ofrep.check_well()?;
    ensure!(!ofrep.log_text().contains("forbidden"), "the role of followers lacks something:\n{}", ofrep.log_text());
    Ok(())
}

/// The roles are as narrow as they say.
fn roles(sets: &Sets<'_>, controller: &Path, follower: &Path) -> Result<usize> {
    let list: [(&Path, &[&str], &str); 8] = [
        // Only the one, and policies have a say in that.
        (controller, &["delete", "featuregates.config.openshift.io"], "no"),
        (controller, &["delete", "featuregates.config.openshift.io/cluster"], "yes"),
        (controller, &["patch", "featuregates.config.openshift.io"], "no"),
        (controller, &["update", "clusterversions.config.openshift.io"], "no"),
        (follower, &["delete", "leases", "-n", NAMESPACE], "no"),
        (controller, &["get", "configmaps", "-n", "default"], "no"),
        (follower, &["update", "featuregates.config.openshift.io", "--subresource=status"], "no"),
        (follower, &["create", "configmaps", "-n", NAMESPACE], "no"),
    ];
    for (who, what, want) in list {
        let (_, said) = sets.kubectl_as(who, &[&["auth", "can-i"], what].concat())?;
        // A warning about the scope may follow.
        ensure!(said.lines().next() == Some(want), "{} {what:?}: {said}", who.display());
    }
    Ok(list.len())
}

/// A step of the controller that finds nothing to do writes nothing. Returns how many objects stayed as they were.
fn quiet(sets: &Sets<'_>, metrics: &str) -> Result<usize> {
    let look = || -> Result<String> {
        let path = "jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}";
        let kinds = "featuregates,clusteroperators,clusterversions,configmaps";
        sets.good(&["get", kinds, "-n", NAMESPACE, "-o", path])
    };
    let (before, done) = (look()?, steps(metrics)?);
    // A label of no meaning wakes the controller.
    sets.good(&["label", "featuregate", "cluster", "woken=yes"])?;
    let woken = look()?;
    until_some("the controller has done a step", || Ok((steps(metrics)? > done).then_some(())))?;
    ensure!(before != woken && look()? == woken, "something was written for nothing: {before} then {}", look()?);
    Ok(before.split_whitespace().count())
}

/// How many steps the controller has done.
fn steps(metrics: &str) -> Result<u64> {
    let said = Http::connect(metrics)?.get("/metrics")?.body;
    let lines = said.lines().filter(|line| line.starts_with("lockgate_gates_sync_total{"));
    lines.map(|line| Ok(line.rsplit(' ').next().unwrap_or_default().parse::<u64>()?)).sum()
}
