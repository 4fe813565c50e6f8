//! Names of managers.

use crate::field::{Fault, FieldError};

const BYTES_MAX: usize = 128;

/// What is wrong with a name that a client gave.
pub(crate) fn check(name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > BYTES_MAX {
        let detail = format!("may not be more than {BYTES_MAX} bytes");
        errors.push(FieldError::new(Fault::TooLong, "fieldManager", ().into(), detail));
    }
    for (at, c) in name.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(FieldError::invalid("fieldManager", name, detail));
    }
    errors
}

/// The name of a client that gives none: its program, from `kubectl/v1.33.0 (linux/amd64)`.
pub(crate) fn from_user_agent(agent: &str) -> String {
    let program = agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in program.chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > BYTES_MAX {
            break;
        }
        name.push(c);
    }
    name
}

/// Letters, marks, numbers, punctuation, symbols and the plain space.
fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_whitespace() || c.is_control() || is_formatting(c))
}

/// Signs that are not seen: marks of direction and joining, separators, what is for private use.
fn is_formatting(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case("kubectl/v1.33.0 (linux/amd64)" => "kubectl"; "kubectl")]
    #[test_case("my app" => "my app"; "without a version")]
    #[test_case("a\tb\u{200b}c/1" => "abc"; "what cannot be seen")]
    #[test_case("" => ""; "none")]
    fn user_agents(agent: &str) -> String {
        super::from_user_agent(agent)
    }

    #[test]
    fn long_names_are_cut_or_refused() {
        assert_eq!(super::from_user_agent(&"ä".repeat(100)).len(), 128);
        assert_eq!(
            super::check(&"a".repeat(129))[0].to_string(),
            "fieldManager: Too long: may not be more than 128 bytes"
        );
        assert!(super::check(&"a".repeat(128)).is_empty());
        assert!(super::check("a\nb")[0].to_string().contains("invalid character U+000A (at position 1)"));
    }
}
