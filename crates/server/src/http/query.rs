//! The query part of a URL, read as Go reads it.

/// Pairs in order; a key without `=` has an empty value. Badly encoded pairs are dropped.
pub(super) fn parse(query: Option<&str>) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(key)?, decode(value)?))
    };
    let pairs = query.unwrap_or_default().split('&');
    pairs.filter(|text| !text.is_empty() && !text.contains(';')).filter_map(pair).collect()
}

/// All values of `key` that are not empty.
pub(super) fn values<'a>(pairs: &'a [(String, String)], key: &'a str) -> Vec<&'a str> {
    pairs.iter().filter(|(k, v)| k == key && !v.is_empty()).map(|(_, v)| v.as_str()).collect()
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok()?;
                rest = &after[2..];
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => *byte,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        let pairs = parse(Some("verbose&exclude=a%20b&exclude=c+d&exclude=&x=%zz&y=1;z=2&&k=v=w"));
        assert_eq!(values(&pairs, "exclude"), ["a b", "c d"]);
        assert_eq!(pairs[0], ("verbose".to_owned(), String::new()));
        assert_eq!(values(&pairs, "k"), ["v=w"]);
        assert_eq!(pairs.len(), 5);
        assert!(parse(None).is_empty());
        assert!(parse(Some("a=%")).is_empty());
    }
}
