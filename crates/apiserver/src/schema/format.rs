//! Named formats of strings that are checked; others say nothing, as in Kubernetes.

/// Whether the text has the format, or the format is not one we check.
pub fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" => is_uuid(text),
        "byte" => {
            use base64::{Engine, engine::general_purpose::STANDARD};
            STANDARD.decode(text).is_ok()
        }
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| !rest.is_empty() && is_scheme(scheme)),
        "hostname" => !text.is_empty() && text.len() <= 255 && text.split('.').all(is_label),
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.split('.').all(is_label)),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max)
}

fn is_uuid(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    plain.len() == 32 && plain.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
