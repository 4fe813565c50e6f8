//! Named formats of strings, as Kubernetes checks them in definitions; others say nothing.

mod code;
mod mail;
mod net;
mod time;
mod uri;

use crate::name;

type Check = fn(&str) -> bool;

/// By name, without hyphens: `date-time` and `datetime` are one.
const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())),
    ("byte", code::is_base64),
    ("cidr", net::is_cidr),
    ("creditcard", code::is_credit_card),
    ("date", time::is_date),
    ("datetime", time::is_date_time),
    ("duration", time::is_duration),
    ("email", mail::is_address),
    ("hexcolor", code::is_hex_color),
    ("hostname", net::is_hostname),
    ("ipv4", net::is_ipv4),
    ("ipv6", net::is_ipv6),
    ("isbn", |text| code::is_isbn10(text) || code::is_isbn13(text)),
    ("isbn10", code::is_isbn10),
    ("isbn13", code::is_isbn13),
    ("k8slongname", |text| text.len() <= 253 && text.split('.').all(name::is_label)),
    ("k8sshortname", |text| text.len() <= 63 && name::is_label(text)),
    ("mac", net::is_mac),
    ("password", |_| true),
    ("rgbcolor", code::is_rgb_color),
    ("ssn", code::is_ssn),
    ("uri", uri::is_request_uri),
    ("uuid", |text| code::is_uuid(text, None)),
    ("uuid3", |text| code::is_uuid(text, Some('3'))),
    ("uuid4", |text| code::is_uuid(text, Some('4'))),
    ("uuid5", |text| code::is_uuid(text, Some('5'))),
];

fn check_of(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// Whether the text has the format, or the format is not one we check.
pub(crate) fn fits(format: &str, text: &str) -> bool {
    check_of(format).is_none_or(|check| check(text))
}

pub(super) fn is_known(format: &str) -> bool {
    check_of(format).is_some()
}

/// Whether a format says anything about values of a type (`""` where none is named).
pub(super) fn is_for(format: &str, kind: &str) -> bool {
    match kind {
        "" | "string" => is_known(format),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Kubernetes' own code says of each text, in `testdata/formats.txt`: the format, `+` or `-`, and the text as JSON.
    #[test]
    fn texts_fit_as_in_kubernetes() {
        let mut wrong = Vec::new();
        for line in include_str!("testdata/formats.txt").lines() {
            let [format, sign, text] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().expect("three words");
            let text: String = serde_json::from_str(text).expect("a JSON string");
            if fits(format, &text) != (sign == "+") {
                wrong.push(line);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
