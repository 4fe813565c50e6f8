//! Names of objects, labels and their like: what may be in them, in the texts of Kubernetes.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
/// What a DNS-1035 label is: as names of kinds and versions have to be.
const NAME: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
    and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
    '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/// Vowels and digits that look like them are left out, so that no words come about.
const SUFFIX: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_CHARS: usize = 5;
const PREFIX_CHARS_MAX: usize = 58;

pub(crate) const LABEL_CHARS_MAX: usize = 63;
pub(crate) const SUBDOMAIN_CHARS_MAX: usize = 253;

pub(crate) fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

pub(crate) fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Why the text is no DNS label, or nothing.
pub(crate) fn check_label(text: &str) -> Result<(), String> {
    match text {
        _ if text.len() > LABEL_CHARS_MAX => Err(too_long(LABEL_CHARS_MAX)),
        _ if is_label(text) => Ok(()),
        _ if text.split('.').all(is_label) => Err("must not contain dots".to_owned()),
        _ => Err(LABEL.to_owned()),
    }
}

pub(crate) fn check_subdomain(text: &str) -> Result<(), String> {
    match text {
        _ if text.len() > SUBDOMAIN_CHARS_MAX => Err(too_long(SUBDOMAIN_CHARS_MAX)),
        _ if text.split('.').all(is_label) => Ok(()),
        _ => Err(SUBDOMAIN.to_owned()),
    }
}

/// Why the text is no label that programs can use as a name, or nothing.
pub(crate) fn check_dns1035(text: &str) -> Result<(), String> {
    match text {
        _ if text.len() > LABEL_CHARS_MAX => Err(too_long(LABEL_CHARS_MAX)),
        _ if is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase()) => Ok(()),
        _ => Err(NAME.to_owned()),
    }
}

/// Why the text cannot be a part of a path, or nothing.
pub(crate) fn check_segment(text: &str) -> Result<(), String> {
    if let "." | ".." = text {
        return Err(format!("may not be '{text}'"));
    }
    match ['/', '%'].into_iter().find(|c| text.contains(*c)) {
        Some(found) => Err(format!("may not contain '{found}'")),
        None => Ok(()),
    }
}

/// Why the text is no key of a config map or secret, which can become the name of a file.
pub(crate) fn config_key_faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_CHARS_MAX {
        faults.push(too_long(SUBDOMAIN_CHARS_MAX));
    }
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(fits) {
        faults.push(CONFIG_KEY.to_owned());
    }
    match text {
        "." | ".." => faults.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// Keys of labels and annotations, finalizers: `name` or `prefix/name`.
pub(crate) fn check_qualified(text: &str) -> Result<(), String> {
    match qualified_faults(text) {
        faults if faults.is_empty() => Ok(()),
        faults => Err(faults.join("; ")),
    }
}

/// All that is wrong with such a key.
pub(crate) fn qualified_faults(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => return vec![QUALIFIED.to_owned()],
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut faults = Vec::new();
    match prefix {
        Some("") => faults.push("prefix part must be non-empty".to_owned()),
        // Kubernetes counts characters of names and bytes of keys.
        Some(prefix) if prefix.len() > SUBDOMAIN_CHARS_MAX => {
            faults.push(format!("prefix part must be no more than {SUBDOMAIN_CHARS_MAX} bytes"));
        }
        Some(prefix) if check_subdomain(prefix).is_err() => faults.push(format!("prefix part {SUBDOMAIN}")),
        _ => {}
    }
    match name {
        "" => faults.push("name part must be non-empty".to_owned()),
        _ if name.len() > 63 => faults.push("name part must be no more than 63 bytes".to_owned()),
        _ => {}
    }
    if !is_word(name) {
        faults.push(NAME_PART.to_owned());
    }
    faults
}

pub(crate) fn check_label_value(text: &str) -> Result<(), String> {
    match text {
        _ if text.len() > 63 => Err("must be no more than 63 bytes".to_owned()),
        _ if text.is_empty() || is_word(text) => Ok(()),
        _ => Err(LABEL_VALUE.to_owned()),
    }
}

fn is_word(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let edge = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last())
}

/// A name nobody else is likely to have chosen.
pub(crate) fn generate(prefix: &str) -> String {
    let mut random = [0u8; SUFFIX_CHARS];
    fill_random(&mut random);
    let cut: String = prefix.chars().take(PREFIX_CHARS_MAX).collect();
    let suffix = random.iter().map(|byte| char::from(SUFFIX[usize::from(*byte) % SUFFIX.len()]));
    cut.chars().chain(suffix).collect()
}

/// A random (version 4) UUID.
pub(crate) fn uid() -> String {
    let mut bytes = [0u8; 16];
    fill_random(&mut bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn fill_random(bytes: &mut [u8]) {
    // The system's generator fails only where there is none, and then nothing here can be kept apart.
    getrandom::fill(bytes).expect("the system has a source of randomness");
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("my-name.example.com" => true)]
    #[test_case("a" => true)]
    #[test_case("" => false)]
    #[test_case("A" => false)]
    #[test_case("a..b" => false)]
    #[test_case("-a" => false)]
    #[test_case("a_b" => false)]
    fn subdomains(text: &str) -> bool {
        check_subdomain(text).is_ok()
    }

    #[test_case("app" => true)]
    #[test_case("example.com/My_App.1" => true)]
    #[test_case("/app" => false; "empty prefix")]
    #[test_case("example.com/" => false; "empty name")]
    #[test_case("a b" => false)]
    #[test_case("Ex.com/a" => false)]
    fn qualified(text: &str) -> bool {
        check_qualified(text).is_ok()
    }

    #[test]
    fn generated_names_and_uids_have_their_form() {
        let name = generate(&"x".repeat(80));
        assert_eq!(name.len(), PREFIX_CHARS_MAX + SUFFIX_CHARS);
        assert_ne!(generate("a-"), generate("a-"));
        let uid = uid();
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
    }
}
