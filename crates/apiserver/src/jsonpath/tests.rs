//! What is found was asked of kube-apiserver 1.36.3 by columns of these paths.

use serde_json::json;
use test_case::test_case;

use super::*;

#[test_case(".spec.n" => "[5]")]
#[test_case(".spec.list[1]" => r#"["b"]"#)]
#[test_case(".spec.list[-1]" => r#"["b"]"#)]
#[test_case(".spec.list[-1:]" => r#"["b"]"#)]
#[test_case(".spec.list[:1]" => r#"["a"]"#)]
#[test_case(".spec.list[]" => r#"["a"]"#)]
#[test_case(".spec.list[0:2:2]" => r#"["a"]"#)]
#[test_case(".spec.list[1,0]" => r#"["b","a"]"#)]
#[test_case(".spec.list[*]" => r#"["a","b"]"#)]
#[test_case(".spec.list[7]" => "unfit"; "beyond the end")]
#[test_case(".spec.list[0:1:0]" => "unfit"; "no step")]
#[test_case(".spec.n[0]" => "unfit"; "an item of a number")]
#[test_case(".spec[*]" => "unfit"; "items of an object")]
#[test_case(".spec.list.*" => r#"["a","b"]"#)]
#[test_case(".spec.missing.deep" => "[]")]
#[test_case("." => "[]"; "a field without a name")]
#[test_case("..n" => "[5,1,2]"; "anywhere")]
#[test_case(".status.conditions[?(@.type==\"Ready\")].status" => r#"["True"]"#; "filter")]
#[test_case(".status.conditions[?(@.type=='Ready')].status" => r#"["True"]"#; "filter with a single quote")]
#[test_case(".status.conditions[?(@.type!='Ready')].status" => r#"["False"]"#; "filter for others")]
#[test_case(".status.conditions[?(@.n>1)].type" => r#"["Other"]"#; "filter by number")]
#[test_case(".status.conditions[?(@.n>=1.5)].type" => "unfit"; "a number beside one with a fraction")]
#[test_case(".status.conditions[?(@.why)].type" => r#"["Other"]"#; "filter for what is there")]
#[test_case(".status.conditions[?(@.type==@.type)].type" => r#"["Ready","Other"]"#; "filter by itself")]
#[test_case(".status.conditions[?(@.why==\"a ) b\")].type" => r#"["Other"]"#; "a parenthesis in quotes")]
#[test_case(".status.conditions[?(@.type==1)].type" => "unfit"; "text and number")]
#[test_case(".status.conditions[?(@.type=\"Ready\")].type" => "unfit"; "no such operator")]
#[test_case(".spec.n[?(@.a==1)]" => "unfit"; "filter of a number")]
#[test_case(".metadata.annotations['a\\.b/c']" => "[1]")]
#[test_case(".metadata.annotations['a.b/c']" => "[]"; "a dot in quotes is a dot")]
#[test_case(".metadata.annotations.a\\.b/c" => "[1]")]
#[test_case(".spec.n} text {.spec.list" => "[5]"; "the first of two")]
fn finds(path: &str) -> String {
    let object = json!({"spec": {"n": 5, "list": ["a", "b"]}, "metadata": {"annotations": {"a.b/c": 1}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2, "why": "a ) b"}]}});
    let path = JsonPath::parse(path).unwrap();
    path.find(&object).map_or_else(|Unfit| "unfit".to_owned(), |found| json!(found).to_string())
}

#[test_case(".a[")]
#[test_case(".a[x]")]
#[test_case(".a[\"x\"]")]
#[test_case(".a[1:2:3:4]")]
#[test_case(".a[?(@.b==\"c\"]")]
#[test_case(".a[?(@.b==\"c\" && @.d==\"e\")]")]
#[test_case(".a[?(@.b=='c')")]
#[test_case("....a")]
#[test_case("..&")]
fn refuses(path: &str) {
    assert!(JsonPath::parse(path).is_err());
}
