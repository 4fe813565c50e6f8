//! Whether a CEL rule may read a field. Only for warnings: an expression is looked at as words, not understood.

use crate::Step;

/// Words that CEL keeps for itself; a field of that name is written `__name__`.
const RESERVED: [&str; 22] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "__proto__",
];

/// Whether `rule`, which stands at some value, may read what `rest` leads to from there.
pub(super) fn may_read(rule: &str, rest: &[Step]) -> bool {
    let mut names = rest.iter().filter_map(|step| match step {
        Step::Named(name) => Some(name.as_str()),
        Step::Each => None,
    });
    let Some(first) = names.next() else { return true };
    let quoted = [format!("\"{first}\""), format!("'{first}'")].iter().any(|text| rule.contains(text));
    // Through [*] the word after the first may be any key.
    let second = if rest.contains(&Step::Each) { None } else { names.next().map(escape) };
    let first = escape(first);
    quoted || words(rule).any(|(word, after)| reads_whole(word, after) || reads(word, after, &first, second.as_deref()))
}

/// `self` that is not followed by a field stands for all of them.
fn reads_whole(word: &str, after: &str) -> bool {
    matches!(word, "self" | "oldSelf") && !after.starts_with(['.', '['])
}

fn reads(word: &str, after: &str, first: &str, second: Option<&str>) -> bool {
    let Some(second) = second else { return word == first };
    let next = after.strip_prefix('.').map(|after| words(after.trim_start_matches(['?', ' '])).next());
    word == first
        && match next.flatten() {
            Some((next, after)) => next == second || after.starts_with('('),
            None => true,
        }
}

/// The words of a rule, each with what follows it.
fn words(rule: &str) -> impl Iterator<Item = (&str, &str)> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = rule;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !in_word(c));
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then(|| (word, after.trim_start()))
    })
}

/// A field's name as CEL writes it.
fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let escaped = name.replace("__", "__underscores__");
    escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;
    use crate::Path;

    #[test_case("self.replicas < 5", ".replicas" => true)]
    #[test_case("has(self.replicas) ? self.replicas < 5 : true", ".replicas" => true; "guarded rules are named as well")]
    #[test_case("self.replicasMax < 5", ".replicas" => false; "whole words")]
    #[test_case("self == oldSelf", ".replicas" => true; "all of self")]
    #[test_case("self.foo.baz > 1", ".foo.qux" => false; "a sibling")]
    #[test_case("self.foo.qux > 1", ".foo.qux" => true; "nested")]
    #[test_case("self.?foo.?qux.orValue(1) > 1", ".foo.qux" => true; "optional")]
    #[test_case("size(self.foo) > 1", ".foo.qux" => true; "all of the parent")]
    #[test_case("self.foo.all(k, k != 'x')", ".foo.qux" => true; "a method of the parent")]
    #[test_case("self.items.all(i, i.n > 1)", ".items[*].foo" => true; "each item")]
    #[test_case("self['a.b'] > 1", "['a.b']" => true; "by key")]
    #[test_case("self.a__dot__b > 1", "['a.b']" => true; "escaped")]
    #[test_case("self.__if__ > 1", ".if" => true; "reserved word")]
    #[test_case("self.min <= self.max", ".replicas" => false; "others")]
    fn involvement(rule: &str, path: &str) -> bool {
        may_read(rule, path.parse::<Path>().unwrap().steps())
    }
}
