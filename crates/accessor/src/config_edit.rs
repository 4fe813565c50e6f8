//! One list within a config file of somebody else's, put there line by line, so that comments, order and quoting of the rest stay.
//!
//! Only block style is understood. Whoever calls it reads the result again, and takes it only if it says what it should: a
//! file that is written in some other way costs nothing but this try.

/// The text with the list at this path; `None` if it is not written in a way that is understood here.
pub(crate) fn with_list(text: &str, path: &[String], items: &[String]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let end_of_line = if lines.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let (from, to, new) = decide(&lines, path, items)?;
    let mut out = lines[..from].concat();
    if !out.is_empty() && !out.ends_with('\n') {
        out += end_of_line;
    }
    new.iter().for_each(|line| out += &format!("{line}{end_of_line}"));
    Some(out + &lines[to..].concat())
}

/// Which lines go, and which come in their place.
fn decide(lines: &[&str], path: &[String], items: &[String]) -> Option<(usize, usize, Vec<String>)> {
    let (mut from, mut to, mut indent) = (0, lines.len(), None);
    for (depth, key) in path.iter().enumerate() {
        let here = (from..to).find(|i| says(lines[*i]) && !is_mark(lines[*i])).map(|i| indent_of(lines[i]));
        // A key without a value yet: what comes below it is two further in.
        let column = here.or(indent).unwrap_or_default();
        let found = (from..to).find(|i| indent_of(lines[*i]) == column && value_of(lines[*i], key).is_some());
        let Some(at) = found else { return Some((to, to, block(column, &path[depth..], items))) };
        let end = end_of(lines, at, to);
        if depth + 1 == path.len() {
            return Some((at, end, block(column, &path[depth..], items)));
        }
        if !value_of(lines[at], key)?.is_empty() {
            return None;
        }
        (from, to, indent) = (at + 1, end, Some(column + 2));
    }
    None
}

/// `a:` / `  b:` / `  - item`.
fn block(column: usize, path: &[String], items: &[String]) -> Vec<String> {
    let pad = |depth: usize| " ".repeat(column + 2 * depth);
    let mut lines: Vec<String> = path.iter().enumerate().map(|(i, key)| format!("{}{key}:", pad(i))).collect();
    match (items.is_empty(), lines.last_mut()) {
        (true, Some(last)) => last.push_str(" []"),
        _ => lines.extend(items.iter().map(|item| format!("{}- {item}", pad(path.len() - 1)))),
    }
    lines
}

/// Behind the last line that belongs to the key. Comments and empty lines after it belong to what follows.
fn end_of(lines: &[&str], at: usize, to: usize) -> usize {
    let column = indent_of(lines[at]);
    let inside = |line: &str| indent_of(line) > column || (indent_of(line) == column && line.trim().starts_with('-'));
    let next = (at + 1..to).find(|i| says(lines[*i]) && (is_mark(lines[*i]) || !inside(lines[*i]))).unwrap_or(to);
    (at + 1..next).rev().find(|i| says(lines[*i])).map_or(at + 1, |last| last + 1)
}

/// What stands behind `key:` in this line, without a comment.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let line = line.trim();
    let spelled = [key.to_owned(), format!("\"{key}\""), format!("'{key}'")];
    let rest = spelled.iter().find_map(|key| line.strip_prefix(key.as_str())?.strip_prefix(':'))?;
    let value = rest.trim_start();
    (rest.is_empty() || value.len() < rest.len()).then(|| if value.starts_with('#') { "" } else { value })
}

fn says(line: &str) -> bool {
    !matches!(line.trim().chars().next(), None | Some('#'))
}

/// The begin or the end of a document.
fn is_mark(line: &str) -> bool {
    matches!(line.trim_end(), "---" | "...")
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::with_list;

    #[track_caller]
    fn check(old: &str, path: &str, new: &str) {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let items = ["A=true".to_owned(), "B=false".to_owned()];
        assert_eq!(with_list(old, &path, &items).as_deref(), Some(new));
        assert_eq!(with_list(new, &path, &items).as_deref(), Some(new), "a second time");
    }

    #[test]
    fn only_the_list_changes() {
        check(
            "# ours\nlog: 0644  # mode\nargs:\n  v: ['2']\n  gates: [Old=true]\n  # next\n  w: x\n",
            "args.gates",
            "# ours\nlog: 0644  # mode\nargs:\n  v: ['2']\n  gates:\n  - A=true\n  - B=false\n  # next\n  w: x\n",
        );
        check("gates:\n- Old=true\n\n# end\nz: 1\n", "gates", "gates:\n- A=true\n- B=false\n\n# end\nz: 1\n");
        check("'gates':\r\nz: 1\r\n", "gates", "gates:\r\n- A=true\r\n- B=false\r\nz: 1\r\n");
    }

    #[test]
    fn what_is_missing_is_put_at_the_end() {
        check("a: 1", "x.y", "a: 1\nx:\n  y:\n  - A=true\n  - B=false\n");
        check("---\na:\n    b: 1\nc: 2\n", "a.y", "---\na:\n    b: 1\n    y:\n    - A=true\n    - B=false\nc: 2\n");
        check("a:  # nothing yet\nc: 2\n", "a.y", "a:  # nothing yet\n  y:\n  - A=true\n  - B=false\nc: 2\n");
    }

    #[test]
    fn flow_style_below_is_not_understood() {
        assert_eq!(with_list("a: {b: 1}\n", &["a".to_owned(), "y".to_owned()], &[]), None);
        assert_eq!(with_list("a: 1\n", &["g".to_owned()], &[]).as_deref(), Some("a: 1\ng: []\n"));
    }
}
