//! Addresses as they can stand in a request: absolute, or a path from the root.

/// What Go's `url.ParseRequestURI` takes.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.strip_suffix('?').filter(|rest| !rest.contains('?')).unwrap_or(rest);
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        return scheme;
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) if scheme && !rest.starts_with("///") => after.split_at(after.find('/').unwrap_or(after.len())),
        _ => ("", rest),
    };
    is_authority(authority) && is_escaped(path, |_| true)
}

/// Whether there is a scheme, and what follows it. A colon that nothing stands before is an error.
fn split_scheme(text: &str) -> Option<(bool, &str)> {
    for (index, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index > 0 => return Some((true, &text[index + 1..])),
            ':' => return None,
            _ => return Some((false, text)),
        }
    }
    Some((false, text))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    user.is_none_or(is_user) && is_host(host)
}

fn is_user(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    text.chars().all(letter) && is_escaped(text, |_| true)
}

fn is_host(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('[') {
        let Some((address, port)) = inner.rsplit_once(']') else { return false };
        let address = address.split_once("%25").map_or(address, |(address, _)| address);
        return is_port(port) && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let (name, port) = text.rfind(':').map_or((text, ""), |at| text.split_at(at));
    // Of what is escaped only letters beyond ASCII can be in a name.
    is_port(port) && name.chars().all(is_host_char) && is_escaped(name, |byte| byte >= 0x80)
}

fn is_host_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_escaped(text: &str, fits: fn(u8) -> bool) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| part.get(..2).is_some_and(|hex| u8::from_str_radix(hex, 16).is_ok_and(fits)))
}
