//! Runs the scenarios of `testdata/sync`: the controller, step by step. `UPDATE_GOLDENFILES=1` rewrites what they print.

use std::{collections::BTreeMap, fs, path::Path};

use featureset::{
    Registry,
    ack::Ack,
    object::{Condition, FEATURE_SET_IN_FORCE, FeatureGate, InForce, StatusRow},
    sync::{FieldWrite, Held, Write},
};
use featuretest::{
    Cluster,
    cluster::{Validation, registry},
};
use serde_json::{Value, json};

#[test]
fn scripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sync");
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10);
    let mut failed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (commands, want) = text.split_once("---\n").unwrap();
        let mut script = Script::default();
        let lines = commands.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let got: String = lines.filter_map(|line| script.run(line).map(|said| format!("> {line}\n{said}"))).collect();
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&file, format!("{commands}---\n{got}")).unwrap();
        } else if got != want {
            failed.push(format!("{}:\n{got}", file.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[derive(Default)]
struct Script {
    cluster: Cluster,
    known: BTreeMap<String, Registry>,
}

impl Script {
    fn run(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            // The registry of a release: `release 1.4.0 A:Default B:TechPreviewNoUpgrade`.
            ["release", version, gates @ ..] => {
                self.known.insert(version.to_string(), registry(version, gates));
            }
            // The version left its registry in the cluster.
            ["left", version] => self.cluster.put_registry(&self.known[*version]),
            ["history", desired, versions @ ..] => self.cluster.history(desired, versions),
            ["no-history"] => self.cluster.cluster_version = None,
            ["broken-history", why @ ..] => {
                self.cluster.cluster_version = None;
                self.cluster.cluster_version_unreadable = Some(why.join(" "));
            }
            ["choose", set] => self.cluster.choose(json!({"featureSet": set})),
            // Any spec, as a loosened definition accepts it, or none.
            ["spec"] => {
                self.cluster.feature_gate.as_mut().unwrap().spec =
                    serde_json::from_value::<FeatureGate>(json!({})).unwrap().spec
            }
            ["spec", spec] => self.cluster.choose(serde_json::from_str(spec).unwrap()),
            ["definition", "loose"] => self.cluster.validation = Validation::Loose,
            ["definition", "ratcheting"] => self.cluster.validation = Validation::Ratcheting,
            ["definition", "exact"] => self.cluster.validation = Validation::Exact,
            ["choose"] => self.cluster.choose(json!({})),
            ["custom", names @ ..] => {
                let with = |mark| names.iter().filter_map(|name| name.strip_prefix(mark)).collect::<Vec<_>>();
                let lists = json!({"enabled": with('+'), "disabled": with('-')});
                self.cluster.choose(json!({"featureSet": "CustomNoUpgrade", "customNoUpgrade": lists}));
            }
            ["delete", "featuregate"] => self.cluster.feature_gate = None,
            ["delete", "audit"] => self.cluster.audit.clear(),
            ["delete", "registry", version] => {
                self.cluster.registries.retain(|object| featureset::config_map::version_of(object) != Some(version));
            }
            ["corrupt", "registry", version] => {
                let is_it = |object: &&mut Value| featureset::config_map::version_of(object) == Some(version);
                let object = self.cluster.registries.iter_mut().find(is_it).unwrap();
                let text = object["data"]["registry.json"].as_str().unwrap().replacen(
                    "\"since\": \"1.0\"",
                    "\"since\": \"1.1\"",
                    1,
                );
                object["data"]["registry.json"] = text.into();
            }
            // A forged registry with a correct digest: `forge 1.4.0 OKD A` inverts A in one set.
            ["forge", version, set, gate] => {
                let is_it = |object: &&mut Value| featureset::config_map::version_of(object) == Some(version);
                forge(self.cluster.registries.iter_mut().find(is_it).unwrap(), set, gate);
            }
            ["corrupt", "audit"] => self.cluster.audit[0]["data"]["000001"] = "{".into(),
            // An edit by hand: `edit 1.4.0 A` puts A into both lists of the row.
            ["edit", version, gate] => {
                let rows = &mut self.cluster.feature_gate.as_mut().unwrap().status.feature_gates;
                let row = rows.iter_mut().find(|row| row.version == *version).unwrap();
                let name = featureset::object::GateName { name: gate.to_string(), extra: Default::default() };
                row.enabled.push(name.clone());
                row.disabled.push(name);
            }
            ["reorder"] => {
                let rows = &mut self.cluster.feature_gate.as_mut().unwrap().status.feature_gates;
                rows.reverse();
                rows.iter_mut().for_each(|row| (row.enabled.reverse(), row.disabled.reverse()).0);
            }
            ["ack", component, version, seconds] => {
                let ack = |renewed| Ack {
                    component: component.to_string(),
                    instance: "i".to_owned(),
                    version: version.to_string(),
                    digest: "d".to_owned(),
                    gates: None,
                    renewed,
                    duration_seconds: seconds.parse().unwrap(),
                };
                self.cluster.acks.push(ack(self.cluster.now));
            }
            // Definitions of resources: `crd jobs.g.io A:alpha B:beta=off`, annotated with `follow jobs.g.io feature-sets`.
            ["crd", name, gates @ ..] => self.cluster.definitions.get(name).put(gates),
            ["follow", name, value] => self.cluster.definitions.get(name).follow = Some(value.to_string()),
            ["unfollow", name] => self.cluster.definitions.get(name).follow = None,
            ["deleted", name] => self.cluster.definitions.get(name).deleted = true,
            ["set", name, gate, value, manager] => {
                self.cluster.definitions.get(name).set(gate, *value == "on", manager)
            }
            // The API refuses applies: `refuse jobs.g.io WHY`. `again` and `contested` set the memory of the controller.
            ["refuse", name, why @ ..] => {
                drop(self.cluster.definitions.refusing.insert(name.to_string(), why.join(" ")))
            }
            ["accept", name] => drop(self.cluster.definitions.refusing.remove(*name)),
            ["again", name] => {
                for held in self.cluster.definitions.held.get_mut(*name).unwrap() {
                    if let Held::Refused { again, .. } = held {
                        *again = true;
                    }
                }
            }
            ["contested", name, times] => {
                let held = vec![Held::Contested { times: times.parse().unwrap() }];
                self.cluster.definitions.held.insert(name.to_string(), held);
            }
            ["calm", name] => drop(self.cluster.definitions.held.remove(*name)),
            ["no-definitions", why @ ..] => self.cluster.definitions.unreadable = Some(why.join(" ")),
            ["wait", seconds] => self.cluster.now += seconds.parse::<i64>().unwrap(),
            // The controller of a version runs until nothing is left to write: `run 1.4.0`.
            ["run", version] => {
                let writes = self.cluster.settle(&self.known[*version].clone());
                return Some(self.describe(&writes));
            }
            // The audit trail so far.
            ["trail"] => {
                let trail = featureset::audit::Trail::read(&self.cluster.audit).unwrap();
                return Some(trail.entries.iter().map(|entry| format!("{:?} {}\n", entry.kind, entry.set)).collect());
            }
            // The controller is killed after some writes of one step: `die 1.4.0 1`.
            ["die", version, count] => {
                let writes = self.cluster.step(&self.known[*version].clone());
                let done: Vec<Write> = writes.into_iter().take(count.parse().unwrap()).collect();
                done.iter().for_each(|write| self.cluster.write(write.clone()));
                return Some(self.describe(&done));
            }
            other => panic!("unknown command {other:?}"),
        }
        None
    }

    fn describe(&self, writes: &[Write]) -> String {
        let name = |write: &Write| match write {
            Write::CreateRegistry(_) => "registry".to_owned(),
            Write::CreateFeatureGate(_) => "new FeatureGate".to_owned(),
            Write::Audit(_) => "audit".to_owned(),
            Write::FeatureGateStatus(_) => "status".to_owned(),
            Write::RestoreSpec(object) => format!("spec {}", Value::from(object.spec.clone())),
            Write::ReplaceFeatureGate { new, .. } => format!("replaced with spec {}", Value::from(new.spec.clone())),
            Write::CreateClusterOperator(_) => "new ClusterOperator".to_owned(),
            Write::ClusterOperatorStatus(_) => "report".to_owned(),
            Write::FieldGates(fields) => describe_fields(fields),
            Write::MarkRegistry(object) => {
                let marked = object["metadata"]["annotations"].get(featureset::sync::UNUSED_SINCE);
                let version = featureset::config_map::version_of(object).unwrap();
                format!("{} {version}", if marked.is_some() { "mark" } else { "unmark" })
            }
            Write::DeleteRegistry { name, .. } => format!("delete {name}"),
            Write::ForgetAck(ack) => format!("forget {} of {}", ack.component, ack.version),
        };
        let names: Vec<String> = writes.iter().map(name).collect();
        let mut text = format!("writes: {}\n", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
        let Some(object) = &self.cluster.feature_gate else { return text };
        for row in &object.status.feature_gates {
            text += &format!("row {}:{}\n", row.version, gates(row));
        }
        let in_force = InForce::of(object).map_or_else(String::new, |in_force| show_in_force(object, &in_force));
        text += &in_force;
        let problem = |condition: &&Condition| condition.is_true() && condition.kind != FEATURE_SET_IN_FORCE;
        for condition in object.status.conditions.iter().filter(problem) {
            text += &format!("{} ({}): {}\n", condition.kind, condition.reason, condition.message);
        }
        if let Some(operator) = &self.cluster.cluster_operator {
            let is = |c: &featureset::object::Condition| format!(" {}={:?}", c.kind, c.status);
            let conditions: String = operator.status.conditions.iter().map(is).collect();
            text += &format!("at {}:{conditions}\n", operator.version("operator").unwrap_or("no version"));
        }
        text + &self.cluster.definitions.describe()
    }
}

/// The set in force, if the object shows another one.
fn show_in_force(object: &FeatureGate, in_force: &InForce) -> String {
    let others: String = in_force.others.iter().map(|(version, set)| format!(", of {version}: {set}")).collect();
    let is_shown = object.set_in_force() == object.spec.feature_set.clone().unwrap_or_default();
    if is_shown && others.is_empty() { String::new() } else { format!("rows of {}{others}\n", in_force.set) }
}

fn describe_fields(fields: &FieldWrite) -> String {
    let taken = fields.taken.iter().map(|(gate, managers)| {
        format!(" taking {gate} from {}", managers.iter().cloned().collect::<Vec<_>>().join("+"))
    });
    format!("fields of {}{}", fields.name, taken.collect::<String>())
}

fn forge(object: &mut Value, set: &str, gate: &str) {
    let text = object["data"]["registry.json"].as_str().unwrap();
    let mut content: Value = serde_json::from_str(text).unwrap();
    let lists = content["resolved"].as_array_mut().unwrap().iter_mut().find(|lists| lists["set"] == set).unwrap();
    for list in ["enabled", "disabled"] {
        let names = lists[list].as_array_mut().unwrap();
        let before = names.len();
        names.retain(|name| name != gate);
        if names.len() == before {
            names.push(gate.into());
        }
    }
    content.as_object_mut().unwrap().remove("digest");
    content["digest"] = featureset::canonical::digest_of(&content).into();
    object["data"]["registry.json"] = content.to_string().into();
}

fn gates(row: &StatusRow) -> String {
    let on = row.enabled.iter().map(|gate| format!(" +{}", gate.name));
    on.chain(row.disabled.iter().map(|gate| format!(" -{}", gate.name))).collect()
}

/// If two managers write within one second, the owner of the choice made it, and not the creator of the object.
#[test]
fn the_trail_names_who_chose() {
    let mut cluster = Cluster::default();
    let own = registry("1.4.0", &["A:Default"]);
    cluster.history("1.4.0", &["1.4.0"]);
    cluster.settle(&own);
    cluster.choose(json!({"featureSet": "OKD"}));
    let entry = |manager: &str, spec: Value, time: &str| json!({"manager": manager, "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec}});
    let managers = json!([
        entry("early", json!({"f:featureSet": {}}), "2026-01-01T00:00:00Z"),
        entry("kubectl-patch", json!({"f:featureSet": {}}), "2026-01-01T00:00:01Z"),
        entry("lockgate-operator", json!({}), "2026-01-01T00:00:01Z"),
        {"manager": "odd", "fieldsV1": 3},
    ]);
    let metadata = &mut cluster.feature_gate.as_mut().unwrap().metadata;
    metadata.extra.insert("managedFields".to_owned(), managers);
    cluster.settle(&own);
    let trail = featureset::audit::Trail::read(&cluster.audit).unwrap();
    assert_eq!(trail.entries.last().unwrap().actor.as_deref(), Some("kubectl-patch"));
}

/// A history of 100 versions with 200 gates fits into an object of the API (1.5 MiB in etcd).
#[test]
fn a_long_history_fits() {
    let mut cluster = Cluster::default();
    let gates: Vec<String> = (0..200).map(|i| format!("GateWithAnOrdinaryName{i:03}:TechPreviewNoUpgrade")).collect();
    let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
    let versions: Vec<String> = (0..100).map(|i| format!("1.{i}.0")).collect();
    let registries: Vec<Registry> = versions.iter().map(|version| registry(version, &gates)).collect();
    registries[1..].iter().for_each(|registry| cluster.put_registry(registry));
    cluster.history("1.0.0", &versions.iter().map(String::as_str).collect::<Vec<_>>());
    cluster.settle(&registries[0]);
    cluster.choose(json!({"featureSet": "TechPreviewNoUpgrade"}));
    cluster.settle(&registries[0]);
    let object = cluster.feature_gate.as_ref().unwrap();
    assert!(object.status.feature_gates.iter().all(|row| row.enabled.len() == 200) && object.versions().len() == 100);
    let bytes = serde_json::to_string(object).unwrap().len();
    assert!(cluster.step(&registries[0]).is_empty());
    assert!(bytes < 1_000_000, "{bytes} bytes");
}
