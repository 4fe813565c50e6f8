//! What is said of values.

use test_case::test_case;

use super::*;

#[test_case(json!({"type": "integer"}), json!("x") => r#"p: Invalid value: "string": p in body must be of type integer: "string""#; "wrong type")]
#[test_case(json!({"type": "integer"}), json!(1.5) => r#"[p: Invalid value: "number": p in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in p]"#; "fraction")]
#[test_case(json!({"type": "integer"}), json!(2.0) => ""; "whole float")]
#[test_case(json!({"type": "integer", "maximum": 10}), json!(11) => "p: Invalid value: 11: p in body should be less than or equal to 10"; "maximum")]
#[test_case(json!({"type": "integer", "minimum": 1}), json!(0) => "p: Invalid value: 0: p in body should be greater than or equal to 1"; "minimum")]
#[test_case(json!({"type": "string", "pattern": "^\\d+$"}), json!("a") => r#"p: Invalid value: "a": p in body should match '^\d+$'"#; "pattern")]
#[test_case(json!({"type": "string", "enum": ["a", "b"]}), json!("c") => r#"p: Unsupported value: "c": supported values: "a", "b""#; "enumeration")]
#[test_case(json!({"type": "string", "maxLength": 2}), json!("abc") => "p: Too long: may not be more than 2 bytes"; "too long")]
#[test_case(json!({"type": "string", "minLength": 1}), json!("") => r#"p: Invalid value: "": p in body should be at least 1 chars long"#; "too short")]
#[test_case(json!({"type": "string", "format": "date-time"}), json!("today") => r#"p: Invalid value: "today": p in body must be of type date-time: "today""#; "format")]
#[test_case(json!({"type": "string", "format": "no-such"}), json!("x") => ""; "unknown format")]
#[test_case(json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}), json!(["a", "b"]) => "p: Too many: 2: must have at most 1 item"; "too many")]
#[test_case(json!({"type": "array", "items": {"type": "string"}}), json!(["a", 1]) => r#"p[1]: Invalid value: "integer": p[1] in body must be of type string: "integer""#; "item")]
#[test_case(json!({"type": "object", "required": ["a"]}), json!({}) => "p.a: Required value"; "required")]
#[test_case(json!({"type": "string"}), json!(null) => r#"p: Invalid value: "null": p in body must be of type string: "null""#; "null")]
#[test_case(json!({"type": "string", "nullable": true}), json!(null) => ""; "nullable")]
#[test_case(json!({"x-kubernetes-int-or-string": true}), json!("50%") => ""; "int or string")]
#[test_case(json!({"x-kubernetes-int-or-string": true}), json!(true) => r#"p: Invalid value: "boolean": p in body must be of type integer,string: "boolean""#; "neither")]
#[test_case(json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({}) => r#"[<nil>: Invalid value: "": "p" must validate one and only one schema (oneOf). Found none valid, p.a: Required value]"#; "one of")]
#[test_case(json!({"type": "object", "not": {"required": ["a"]}}), json!({"a": 1}) => r#"<nil>: Invalid value: "": "p" must not validate the schema (not)"#; "not")]
#[test_case(json!({"type": "integer", "format": "int32"}), json!(3000000000u64) => "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in p"; "out of range")]
#[test_case(json!({"type": "integer", "format": "int32"}), json!(true) => r#"p: Invalid value: "": p in body must be of type int32: """#; "no number of a format")]
#[test_case(json!({"type": "integer", "format": "int32"}), json!(1.5) => r#"[p: Invalid value: "float64": p in body must be of type int32: "float64", <nil>: Invalid value: "": Checked value must be of type integer with format int32 in p]"#; "fraction in a format")]
#[test_case(json!({"type": "string", "format": "date"}), json!(5) => r#"p: Invalid value: "int64": p in body must be of type date: "int64""#; "number in place of a date")]
#[test_case(json!({"type": "number", "minimum": 2.5}), json!(1) => "p: Invalid value: 1: p in body should be greater than or equal to 2"; "a whole number is held to a whole bound")]
#[test_case(json!({"type": "number", "minimum": 2.5}), json!(2.25) => "p: Invalid value: 2.25: p in body should be greater than or equal to 2.5"; "a fraction is held to the bound")]
#[test_case(json!({"type": "integer", "minimum": 2.5}), json!(3) => r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in p"#; "a bound that no integer is")]
#[test_case(json!({"type": "number", "maximum": 1000000}), json!(1e7) => "p: Invalid value: 1e+07: p in body should be less than or equal to 1e+06"; "numbers as Go prints them")]
#[test_case(json!({"type": "number", "multipleOf": 0.1}), json!(0.3) => ""; "nearly a multiple")]
#[test_case(json!({"type": "number", "multipleOf": 0.5}), json!(3) => "p: Invalid value: 0: factor MultipleOf declared for p must be positive: 0"; "whole numbers have no halves")]
#[test_case(json!({"type": "number", "enum": [1, 2, 5]}), json!(2.5) => ""; "fractions are cut off by an enumeration")]
#[test_case(json!({"type": "string", "nullable": true, "enum": ["a"]}), json!(null) => r#"p: Unsupported value: null: supported values: "a""#; "null is not listed")]
#[test_case(json!({"type": "object", "allOf": [{"required": ["a"]}, {"minProperties": 1}]}), json!({}) => r#"[p.a: Required value, p: Invalid value: 0: p in body should have at least 1 properties, <nil>: Invalid value: "": "p" must validate all the schemas (allOf). None validated]"#; "all of")]
#[test_case(json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"k": 1}) => r#"p.k: Invalid value: "integer": p.k in body must be of type string: "integer""#; "entry")]
#[test_case(json!({"type": "integer"}), json!(1e30) => r#"[p: Invalid value: "number": p in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in p]"#; "too large")]
fn texts(schema: Value, value: Value) -> String {
    let whole = Schema::parse(&json!({"type": "object", "properties": {"p": schema}}));
    let errors = validate(&whole, &json!({"p": value}), "");
    if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
}

/// What is judged below a field is told of with its name there, and where it is.
#[test]
fn a_part_is_told_by_its_own_names() {
    let schema =
        Schema::parse(&json!({"type": "object", "additionalProperties": {"type": "string"}, "required": ["a"]}));
    let said = |value: Value| crate::field::join(&validate(&schema, &value, "status"));
    assert_eq!(said(json!({})), "status.a: Required value");
    assert_eq!(
        said(json!({"a": 1})),
        r#"status.a: Invalid value: "integer": .a in body must be of type string: "integer""#
    );
    assert_eq!(said(json!(1)), r#"status: Invalid value: "integer":  in body must be of type object: "integer""#);
}
