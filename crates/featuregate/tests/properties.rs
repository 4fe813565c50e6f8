//! What must hold for any flag text and any settings.

use std::collections::BTreeMap;

use featuregate::{Feature, Level, Registry, Release, Settings, Spec, Version, alpha, beta, deprecated, ga, v};
use proptest::prelude::*;

const fn row(name: &'static str, level: Level, specs: &'static [Spec]) -> Feature {
    Feature { name, level, owner: "tests", writes: "", reason: "Shows a rule.", specs }
}

static TABLE: &[Feature] = &[
    row("A", Level::Server, &[alpha(v(3, 6)), beta(v(3, 8))]),
    row("B", Level::Server, &[beta(v(3, 6)).off(), ga(v(3, 8)).locked()]),
    row("C", Level::Server, &[alpha(v(3, 7))]),
    row("D", Level::Server, &[beta(v(3, 7)), deprecated(v(3, 9)).on().locked()]),
    row("E", Level::Cluster, &[alpha(v(3, 8)), ga(v(3, 9)).locked()]),
    row("F", Level::Cluster, &[alpha(v(3, 8))]),
];

fn registry() -> Registry {
    Registry::new(TABLE).expect("the table has no fault")
}

fn versions() -> impl Strategy<Value = Version> {
    (5u16..11).prop_map(|minor| v(3, minor))
}

fn levels() -> impl Strategy<Value = Level> {
    prop_oneof![Just(Level::Server), Just(Level::Cluster)]
}

/// Texts that are nearly flags, so that every branch of the parser is reached.
fn flags() -> impl Strategy<Value = String> {
    "([A-G]|AllAlpha|AllBeta|[ ,=a\"\u{e9}]{0,3})?(=| = )?(true|false|T|0|maybe| )?(,[A-G]=(1|f))*,?"
}

fn settings() -> impl Strategy<Value = BTreeMap<String, bool>> {
    proptest::collection::btree_map("[A-G]|AllAlpha|AllBeta", any::<bool>(), 0..8)
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>(), near in flags(), level in levels(), version in versions()) {
        for text in [text, near] {
            if let Err(errors) = registry().parse(level, version, &text) {
                prop_assert!(!errors.0.is_empty() && !errors.to_string().is_empty());
            }
            let _ = text.parse::<Version>();
            let _ = text.parse::<Release>();
        }
    }

    #[test]
    fn the_order_of_a_flag_does_not_matter(
        pairs in settings().prop_map(|m| m.into_iter().collect::<Vec<_>>()).prop_flat_map(|p| (Just(p.clone()), Just(p).prop_shuffle())),
        level in levels(),
        version in versions(),
    ) {
        let text = |pairs: &[(String, bool)]| pairs.iter().map(|(n, b)| format!("{n}={b}")).collect::<Vec<_>>().join(",");
        let one = registry().parse(level, version, &text(&pairs.0));
        let two = registry().parse(level, version, &text(&pairs.1));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn settings_read_back(pairs in settings()) {
        let settings = Settings::from_pairs(pairs);
        prop_assert_eq!(settings.to_string().parse::<Settings>(), Ok(settings));
    }

    /// An independent statement of the rules: lock, then name, then all-of-a-stage, then default.
    #[test]
    fn values_follow_the_rules(pairs in settings(), level in levels(), version in versions()) {
        let registry = registry();
        let settings = Settings::from_pairs(pairs.clone());
        let lenient = registry.proposal(version, &settings);
        let strict = registry.resolve(level, version, &settings);
        if let (Ok(strict), Level::Cluster) = (&strict, level) {
            prop_assert_eq!(&strict.gates, &lenient.gates);
        }
        let gates = strict.map_or(lenient.gates, |resolved| resolved.gates);
        for feature in TABLE {
            let want = feature.specs.iter().rfind(|spec| spec.version <= version).map(|spec| {
                let all = pairs.get(match spec.stage.label() { "ALPHA" => "AllAlpha", "BETA" => "AllBeta", _ => "" });
                if spec.locked { spec.default } else { *pairs.get(feature.name).or(all).unwrap_or(&spec.default) }
            });
            let want = want.filter(|_| feature.level == gates.level());
            prop_assert_eq!(gates.get(feature.name).map(|gate| gate.enabled), want);
            prop_assert_eq!(gates.enabled(feature.name), want == Some(true));
        }
    }

    #[test]
    fn what_strict_accepts_start_accepts(pairs in settings(), version in versions()) {
        let settings = Settings::from_pairs(pairs);
        if registry().resolve(Level::Cluster, version, &settings).is_ok() {
            prop_assert!(registry().check_start(&settings, version, None).is_ok());
        }
    }
}
