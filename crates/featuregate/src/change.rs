//! What a change of the table means to operators, in words; for release notes and reviews.

use crate::{Level, Release, Row, Spec, Stage, lifecycle::show};

/// One line for each thing that an operator of `new` will notice, coming from `old`. Ordered by feature.
pub fn describe_change(old: &Release, new: &Release) -> Vec<String> {
    let mut lines = Vec::new();
    let names: std::collections::BTreeSet<&String> = old.features.keys().chain(new.features.keys()).collect();
    for name in names {
        let was = old.features.get(name).and_then(|row| Some((row, row.spec_at(old.version)?)));
        let is = new.features.get(name).and_then(|row| Some((row, row.spec_at(new.version)?)));
        match (was, is) {
            (None, Some((row, spec))) => lines.push(describe_new(name, row, spec)),
            (Some((row, spec)), None) => lines.push(describe_gone(name, row, spec)),
            (Some((was_row, was)), Some((is_row, is))) => {
                if was_row.level != is_row.level {
                    lines.push(format!("{name}: moved from {} to {}.", was_row.level.flag(), is_row.level.flag()));
                }
                describe_spec(name, is_row.level, was, is, &mut lines);
            }
            (None, None) => {}
        }
    }
    lines
}

fn describe_new(name: &str, row: &Row, spec: &Spec) -> String {
    let flag = row.level.flag();
    let how = match (spec.locked, spec.default, row.level) {
        (true, value, _) => format!("locked to {value}"),
        (false, true, Level::Server) => format!("on unless {flag}={name}=false"),
        (false, false, Level::Server) => format!("off unless {flag}={name}=true"),
        (false, true, Level::Cluster) => format!("on unless any voting member has {flag}={name}=false"),
        (false, false, Level::Cluster) => format!("off until every voting member has {flag}={name}=true"),
    };
    format!("{name}: new {}-level feature, {}, {how}.", row.level, spec.stage.word())
}

fn describe_gone(name: &str, row: &Row, spec: &Spec) -> String {
    let behaviour = match (spec.stage, spec.default) {
        (Stage::Alpha, _) => "the experiment is gone",
        (_, true) => "what it did is now always done",
        (_, false) => "what it did is gone",
    };
    format!(
        "{name}: removed (was {}); {behaviour}, and {} no longer takes the name.",
        show(Some(spec)),
        row.level.flag()
    )
}

fn describe_spec(name: &str, level: Level, was: &Spec, is: &Spec, lines: &mut Vec<String>) {
    if was.stage != is.stage {
        let outlook = match is.stage {
            Stage::Deprecated => "; it will be removed in a future release",
            Stage::Ga => "; setting it draws a warning",
            Stage::Alpha | Stage::Beta => "",
        };
        lines.push(format!("{name}: {} becomes {}{outlook}.", was.stage.word(), is.stage.word()));
    }
    if was.default != is.default {
        let word = |on| if on { "on" } else { "off" };
        let verb = if is.default { "turns on" } else { "turns off" };
        lines.push(format!(
            "{name}: the default goes from {} to {}; it {verb} where nothing is set in {}.",
            word(was.default),
            word(is.default),
            level.flag()
        ));
    }
    if !was.locked && is.locked {
        lines.push(format!(
            "{name}: locked to {0}; {1}={name}={2} is refused at start, remove it before upgrading.",
            is.default,
            level.flag(),
            !is.default
        ));
    } else if was.locked && !is.locked {
        lines.push(format!("{name}: no longer locked; {} may set it.", level.flag()));
    }
}
