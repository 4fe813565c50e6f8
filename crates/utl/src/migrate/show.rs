//! A plan in words.

use std::fmt::Write;

use super::plan::Migration;
use crate::{
    failure::Failure,
    print::{self, Format},
};

pub(super) fn plan(plan: &Migration, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Json => serde_json::to_string(plan).map_err(Failure::error)? + "\n",
        Format::Protobuf => return Err(Failure::bad_feature("protobuf not supported as output format")),
        Format::Simple | Format::Table | Format::Fields => words(plan),
    };
    print::print(text.as_bytes())
}

fn words(plan: &Migration) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, plan);
    out
}

fn write(out: &mut String, plan: &Migration) -> std::fmt::Result {
    writeln!(out, "{}: from {} to {}", plan.data_dir, plan.from, plan.to)?;
    writeln!(out, "  applied index {}, term {}", plan.applied_index, plan.applied_term)?;
    if let Some(hash) = &plan.hash {
        writeln!(out, "  hashkv {} at revision {}, compacted {}", hash.hash, hash.revision, hash.compact_revision)?;
    }
    writeln!(out, "steps:")?;
    if let Some((first, last)) = plan.applies {
        writeln!(out, "  committed entries {first} to {last} are applied")?;
    }
    writeln!(out, "  the log is snapshotted: what is applied leaves it")?;
    if let Some((first, last)) = plan.keeps {
        writeln!(out, "  entries {first} to {last}, not known to be committed, are kept as they are")?;
    }
    for step in &plan.steps {
        writeln!(out, "  {}", step.step)?;
        for change in &step.changes {
            writeln!(out, "    {change}")?;
        }
    }
    if let Some(moves) = &plan.cluster_version {
        writeln!(out, "  the cluster version goes from {} to {}", moves.from, moves.to)?;
    }
    if let Some(target) = &plan.ends_downgrade {
        writeln!(out, "  the downgrade job to {target} ends")?;
    }
    if plan.writes_snap {
        writeln!(out, "  a .snap file is written, with the members as releases up to 3.6 read them")?;
    }
    list(out, "stops working:", &plan.stops)?;
    list(out, "note:", &plan.notes)
}

fn list(out: &mut String, title: &str, lines: &[String]) -> std::fmt::Result {
    if !lines.is_empty() {
        writeln!(out, "{title}")?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}
