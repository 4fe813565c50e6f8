//! Expressions with the results of Kubernetes, and hostile expressions.

use std::thread;

use serde_json::Value as Json;
use test_case::test_case;

use super::{Error, Meter, Program, Type, Value, library::double_text, parse::DEPTH_MAX};

const COST_MAX: u64 = 1_000_000;
const SMALL_STACK_BYTES: usize = 1 << 20;
/// The stack of a thread by default.
const STACK_BYTES: usize = 2 << 20;

fn world() -> (Type, Json) {
    let world: Json = serde_json::from_str(include_str!("testdata/object.json")).unwrap();
    (crate::rules::type_of(&world["schema"]), world["object"].clone())
}

/// Runs `work` on a thread with a stack of `stack_bytes`; fails if it takes longer than the limit of all waits.
#[track_caller]
fn finish<T: Send + 'static>(what: &str, stack_bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = thread::Builder::new().stack_size(stack_bytes).spawn(work).unwrap();
    harness::until(what, || thread.is_finished());
    thread.join().unwrap()
}

/// The result in one line, in the form that `testdata/expressions.txt` has from Kubernetes.
fn run(source: &str, kind: &Type, object: &Json) -> String {
    let program = match Program::compile(source, &[("self", kind.clone())]) {
        Ok(program) => program,
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            return if first.contains("Syntax error") { "! syntax".to_owned() } else { format!("! {first}") };
        }
    };
    match program.eval(&[("self", Value::of(object, kind))], &mut Meter::new(COST_MAX)) {
        Ok(value) => show(&value),
        Err(error) => format!("error: {error}"),
    }
}

fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("bool({value})"),
        Value::Int(value) => format!("int({value})"),
        Value::Uint(value) => format!("uint({value})"),
        Value::Double(value) => format!("double({})", double_text(*value)),
        Value::String(text) => Json::from(text.to_string()).to_string(),
        Value::List(list) => format!("[{}]", list.iter().map(|item| show(&item)).collect::<Vec<_>>().join(", ")),
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(inner)) => format!("some({})", show(inner)),
        other => other.type_name().to_owned(),
    }
}

#[test]
fn expressions_are_what_they_are_in_kubernetes() {
    let (kind, object) = world();
    let mut wrong = Vec::new();
    let lines = include_str!("testdata/expressions.txt").lines().chain(include_str!("testdata/random.txt").lines());
    for line in lines {
        let Some((source, expected)) = line.split_once('\t') else { continue };
        let found = run(source, &kind, &object);
        if found != expected {
            wrong.push(format!("{source}\n    found    {found}\n    expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every expression has an answer, also on a small stack.
#[test]
fn no_expression_hangs_or_overflows_the_stack() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(5000), close.repeat(5000));
    let nasty = [
        deep("(", ")"),
        deep("[", "]"),
        deep("{1:", "}"),
        deep("size([", "])"),
        deep("-", ""),
        deep("!", ""),
        format!("self{}", ".a".repeat(40_000)),
        format!("self{}", "[0]".repeat(30_000)),
        format!("1{}", " + 1".repeat(20_000)),
        format!("self{}", "||self".repeat(16_000)),
        format!("true{}", " ? 1 : true".repeat(8_000)),
        "'".repeat(99_999),
        "\"\"\"".repeat(3_333),
        "\\".repeat(1000),
        "'\\".to_owned(),
        "b'\\400'".to_owned(),
        "'\\ud800'".to_owned(),
        "0x".to_owned(),
        "1e999999999".to_owned(),
        "1".repeat(90_000),
        "\u{0}".to_owned(),
        "é".repeat(90_000),
        "a.b.c(".repeat(10_000),
        "has(".repeat(10_000),
        "x".repeat(100_001),
        "self.all(a, b, c, d, e)".to_owned(),
        "self.map()".to_owned(),
        ".".to_owned(),
        "..a".to_owned(),
        "{".to_owned(),
        "[?".to_owned(),
        "@in(1, [1])".to_owned(),
    ];
    for source in nasty {
        let shown: String = source.chars().take(30).collect();
        finish(&format!("{shown} ends"), SMALL_STACK_BYTES, move || {
            if let Ok(program) = Program::compile(&source, &[("self", Type::Dyn)]) {
                let _ = program.eval(&[("self", Value::Null)], &mut Meter::new(COST_MAX));
            }
        });
    }
}

#[test]
fn the_deepest_accepted_expression_can_be_evaluated_on_a_small_stack() {
    finish("the expressions end", SMALL_STACK_BYTES, || {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Program::compile(&nested(DEPTH_MAX + 1), &[]).is_err());
        let program = Program::compile(&nested(DEPTH_MAX - 1), &[]).unwrap();
        program.eval(&[], &mut Meter::new(COST_MAX)).unwrap();
        let sum = format!("1{}", " + 1".repeat(DEPTH_MAX - 1));
        let program = Program::compile(&sum, &[]).unwrap();
        assert!(matches!(program.eval(&[], &mut Meter::new(COST_MAX)), Ok(Value::Int(100))));
    });
}

/// Without a limit, each of these would never end or use all memory.
#[test_case("[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, true)))))))"; "nested loops")]
#[test_case("[self.t].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0"; "doubling")]
#[test_case("self.t.replace('', self.t).size() > 0"; "replacing")]
#[test_case("self.l.map(x, self.l).map(x, x.map(y, self.l)).size() > 0"; "lists of lists")]
#[test_case("self.l.all(x, !self.t.matches('(a|b|c)*d'))"; "patterns")]
#[test_case("self.l.all(x, self.l.all(y, x == y || x != y))"; "pairs")]
#[test_case("self.l.all(x, self.l.all(y, self.m != self.m2))"; "large maps")]
#[test_case("self.l.all(x, self.l.all(y, self.m.exists(k, true)))"; "keys of large maps")]
#[test_case("self.l.all(x, self.l.all(y, !(self.t in self.m)))"; "large keys")]
#[test_case("self.l.all(x, self.l.all(y, !isIP(self.t)))"; "texts that are not addresses")]
#[test_case("self.l.all(x, self.l.all(y, [self.t, self.t].isSorted()))"; "large texts in order")]
fn expressions_over_the_limit_are_stopped(source: &str) {
    let map = |size: usize| (0..size).map(|key| (key.to_string(), Json::from(key))).collect::<serde_json::Map<_, _>>();
    let object = serde_json::json!({"t": "ab".repeat(10_000), "l": (0..3000).collect::<Vec<_>>(),
        "m": map(2000), "m2": map(2001)});
    assert_over_the_limit(source.to_owned(), object);
}

fn assert_over_the_limit(source: String, object: Json) {
    let result = finish("the limit stops the expression", STACK_BYTES, move || {
        let program = Program::compile(&source, &[("self", Type::Dyn)]).unwrap();
        program.eval_bool(&[("self", Value::of(&object, &Type::Dyn))], &mut Meter::new(COST_MAX))
    });
    assert_eq!(result, Err(Error::Cost));
}

/// Literals cost nothing once, but they count in loops.
#[test]
fn long_literals_in_loops_are_stopped() {
    let object = serde_json::json!({"l": (0..3000).collect::<Vec<_>>()});
    for body in [
        format!("[{}].size() > 0", vec!["1"; 20_000].join(",")),
        vec!["true"; 10_000].join("&&"),
        format!("b'{}'.size() > 0", "x".repeat(90_000)),
    ] {
        assert_over_the_limit(format!("self.l.all(x, self.l.all(y, {body}))"), object.clone());
    }
}

/// Random sequences of valid parts give an error or a value, never a panic.
#[test]
fn random_expressions_do_not_panic() {
    const PARTS: [&str; 42] = [
        "self",
        ".spec",
        ".n",
        ".?s",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "?",
        "1",
        "-1",
        "2.5",
        "3u",
        "'a'",
        "b'x'",
        "true",
        "null",
        " in ",
        " && ",
        " || ",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        " == ",
        " < ",
        "has(",
        ".all(i, ",
        ".map(i, ",
        "i",
        ".size()",
        "size(",
        "timestamp('2024-01-01T00:00:00Z')",
        "duration('1h')",
        ".format([",
        "quantity('1Gi')",
    ];
    let (kind, object) = world();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for _ in 0..20_000 {
        let count = 1 + next(9);
        let source: String = (0..count).map(|_| PARTS[next(PARTS.len())]).collect();
        run(&source, &kind, &object);
    }
}
