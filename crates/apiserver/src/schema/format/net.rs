//! Names and addresses of hosts.

use std::{net::Ipv6Addr, sync::LazyLock};

use regex::Regex;

/// One label, or several of which the last has only letters. Signs and letters of all scripts are let pass.
pub(super) fn is_hostname(text: &str) -> bool {
    static HOST: LazyLock<Regex> = LazyLock::new(|| {
        let letter = r"a-zA-Z0-9\p{S}\p{L}";
        // Alone, a label has its hyphen after the first letter or nowhere.
        let alone = format!("[{letter}](-?[{letter}]{{0,62}})?");
        let label = format!(r"[{letter}]([{letter}-]{{0,61}}[{letter}])?\.");
        Regex::new(&format!(r"^({alone}|({label})+[a-zA-Z\p{{L}}]{{2,63}})$")).expect("a sound pattern")
    });
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOST.is_match(text)
}

/// Four numbers, with zeros before them or not; also at the end of an address of version 6.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && (is_dotted(text) || is_v6_sloppy(text))
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = match address {
        _ if is_dotted(address) => 32,
        _ if is_v6_sloppy(address) => 128,
        _ => return false,
    };
    !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= bits_max)
}

fn is_dotted(text: &str) -> bool {
    let byte = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u32>().is_ok_and(|n| n <= 255)
    };
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4 && parts.into_iter().all(byte)
}

fn is_v6_sloppy(text: &str) -> bool {
    if !text.contains(':') {
        return false;
    }
    match text.rsplit_once(':').filter(|(_, last)| last.contains('.')) {
        Some((before, last)) => is_dotted(last) && format!("{before}:0.0.0.0").parse::<Ipv6Addr>().is_ok(),
        None => text.parse::<Ipv6Addr>().is_ok(),
    }
}

/// 6, 8 or 20 bytes: pairs of digits with `:` or `-` between them, groups of four with dots, or digits alone.
pub(super) fn is_mac(text: &str) -> bool {
    let hex = |part: &&str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
    let separated = |by: char, length: usize| {
        let parts: Vec<&str> = text.split(by).collect();
        matches!(parts.len() * length / 2, 6 | 8 | 20) && parts.iter().all(|part| hex(part, length))
    };
    let plain = matches!(text.len(), 12 | 16 | 40) && hex(&text, text.len());
    plain || separated(':', 2) || separated('-', 2) || separated('.', 4)
}
