//! What gates look at of an object is made of less than the object, and is the same.

use fieldgate::{Gates, Gating};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::shown_tests::{node, object};
use crate::schema::{self, Schema};

fn gating(schema: &Value) -> Gating {
    let paths = [".a", ".b.a", ".b.b", ".name[*].a", ".uid.a.b", ".kind", r#".metadata['c"d']"#];
    let gate = |path: &&str| json!({"name": "G", "preRelease": "alpha", "fieldPaths": [path]});
    // Such gates could not be declared for all of these schemas, but a schema can change under gates.
    let gates = json!({"featureGates": paths.iter().map(gate).collect::<Vec<_>>()});
    Gating::new(&Gates::parse_lenient(&gates), schema)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The stored object: what no schema names is taken out of the excerpt as it would be of the whole.
    #[test]
    fn an_excerpt_is_pruned_like_the_whole(schema in node(), object in object()) {
        let (gating, schema) = (gating(&schema), Schema::parse(&schema));
        let mut excerpt = gating.excerpt(&object);
        schema::prune(&schema, &mut excerpt);
        let mut whole = object;
        schema::prune(&schema, &mut whole);
        prop_assert_eq!(gating.excerpt(&excerpt), gating.excerpt(&whole));
    }

    /// The object that was sent: from the one that defaults were filled into.
    #[test]
    fn what_was_sent_is_known_after_defaults(schema in node(), sent in object()) {
        let (gating, schema) = (gating(&schema), Schema::parse(&schema));
        let mut filled = sent.clone();
        let done = schema::fill(&schema, &mut filled);
        prop_assert!(!done.is_empty() || filled == sent);
        let (mut excerpt, mut whole) = (gating.excerpt(&filled), filled);
        schema::unfill(&mut excerpt, &done);
        schema::unfill(&mut whole, &done);
        let mut sent = sent;
        schema::drop_nulls(&schema, &mut sent);
        prop_assert_eq!(&whole, &sent);
        prop_assert_eq!(gating.excerpt(&excerpt), gating.excerpt(&sent));
    }
}
