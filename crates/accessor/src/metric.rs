//! What holds, as lines of Prometheus' text format, for whatever `/metrics` the program has.

use std::fmt::Write;

use crate::{
    follow::NotReady,
    snapshot::{Snapshot, Source, State},
};

const ENABLED: &str =
    "# HELP feature_enabled 1 if the gate is on for this program, 0 if it is off.\n# TYPE feature_enabled gauge\n";
const QUERIED: &str = "# HELP feature_queried_total How often this program has asked for the gate.\n# TYPE feature_queried_total counter\n";
const INFO: &str =
    "# HELP feature_gates_info Which row holds, and where it comes from.\n# TYPE feature_gates_info gauge\n";
const STALE: &str = "# HELP feature_gates_stale 1 while what holds is not confirmed by the cluster.\n# TYPE feature_gates_stale gauge\n";

/// While nothing is known there are no gates, and what is not known is not confirmed.
pub(crate) fn lines(known: &Result<State, NotReady>) -> String {
    let stale = known.as_ref().map_or(true, |state| state.stale.is_some());
    let mut out = format!("{STALE}feature_gates_stale {}\n", u8::from(stale));
    let Ok(State { snapshot, .. }) = known else { return out };
    let row = &snapshot.row;
    let [version, set, digest] = [&row.version, &snapshot.feature_set, &snapshot.digest()].map(|text| escape(text));
    let source = match snapshot.source {
        Source::Cluster => "cluster",
        Source::Cache => "cache",
        Source::Defaults => "defaults",
        Source::Manifest => "manifest",
        Source::Fixed => "fixed",
    };
    let labels = format!("digest=\"{digest}\",feature_set=\"{set}\",source=\"{source}\",version=\"{version}\"");
    // Writing to a text does not fail.
    let _ = write!(out, "{INFO}feature_gates_info{{{labels}}} 1\n{ENABLED}");
    for gate in row.enabled.union(&row.disabled) {
        let on = u8::from(row.enabled.contains(gate));
        let _ = writeln!(out, "feature_enabled{{name=\"{}\",version=\"{version}\"}} {on}", escape(gate));
    }
    out + &queried(snapshot)
}

/// Of all gates of the row, so that those are seen that nobody asks for; and of others that were asked for.
fn queried(snapshot: &Snapshot) -> String {
    let (row, mut counts) = (&snapshot.row, snapshot.asked.counts());
    for gate in row.enabled.union(&row.disabled) {
        counts.entry(gate.clone()).or_default();
    }
    let line = |(gate, count): (&String, &u64)| format!("feature_queried_total{{name=\"{}\"}} {count}\n", escape(gate));
    QUERIED.to_owned() + &counts.iter().map(line).collect::<String>()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn gates_as_prometheus_reads_them() {
        let mut snapshot = Snapshot::fixed(["B"], ["A"]);
        snapshot.row.version = "1.\"4".to_owned();
        let digest = snapshot.digest();
        assert!(snapshot.is_enabled("B") && snapshot.get("B") == Some(true) && !snapshot.is_enabled("Unknown"));
        let state = State { snapshot: Arc::new(snapshot), stale: None };
        let text = lines(&Ok(state.clone()));
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let info =
            format!(r#"feature_gates_info{{digest="{digest}",feature_set="",source="fixed",version="1.\"4"}} 1"#);
        let want = [
            "feature_gates_stale 0",
            &info,
            r#"feature_enabled{name="A",version="1.\"4"} 0"#,
            r#"feature_enabled{name="B",version="1.\"4"} 1"#,
            r#"feature_queried_total{name="A"} 0"#,
            r#"feature_queried_total{name="B"} 2"#,
            r#"feature_queried_total{name="Unknown"} 1"#,
        ];
        assert_eq!(values, want);
        assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), 4);
        let stale = State { stale: Some("no API".to_owned()), ..state };
        assert!(lines(&Ok(stale)).contains("feature_gates_stale 1\n"));
        let nothing = lines(&Err(NotReady::NotAsked));
        assert!(nothing.ends_with("feature_gates_stale 1\n") && !nothing.contains("feature_enabled"));
    }
}
