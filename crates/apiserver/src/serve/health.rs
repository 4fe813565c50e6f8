//! Whether all is well: `/healthz`, `/livez`, `/readyz`, and each of the checks they are made of alone, in Kubernetes' words.

use std::time::Duration;

use http::{Response, header::X_CONTENT_TYPE_OPTIONS};

use super::{
    answer::{self, Body},
    query::Query,
};
use crate::gotext;

/// A store that does not answer for so long is away.
pub(crate) const STORE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Whether this server answers at all, which it does.
const PING: &str = "ping";
/// Whether it reaches the store.
const ETCD: &str = "etcd";
/// Whether it can serve requests that need the store.
const ETCD_READINESS: &str = "etcd-readiness";
/// Whether it has read what it serves: it listens only then.
const INFORMER_SYNC: &str = "informer-sync";

/// What is checked under which name. Alive is who answers: starting again would not bring a store back.
const CHECKS: [(&str, &[&str]); 3] =
    [("healthz", &[PING, ETCD]), ("livez", &[PING]), ("readyz", &[PING, ETCD, ETCD_READINESS, INFORMER_SYNC])];
/// What can be asked alone beside them.
const ALONE: [(&str, &str); 1] = [("livez", ETCD)];

/// A question about health.
pub(crate) enum Asked<'a> {
    One(&'a str),
    All { kind: &'a str, checks: &'static [&'static str], excluded: Vec<&'a str>, verbose: bool },
}

/// Every path that can be asked.
pub(crate) fn paths() -> Vec<String> {
    let all = CHECKS.iter().flat_map(|(kind, checks)| {
        checks.iter().map(move |check| format!("/{kind}/{check}")).chain([format!("/{kind}")])
    });
    all.chain(ALONE.map(|(kind, check)| format!("/{kind}/{check}"))).collect()
}

pub(crate) fn parse<'a>(path: &'a str, query: &'a Query) -> Option<Asked<'a>> {
    if let Some((_, checks)) = CHECKS.iter().find(|(kind, _)| *kind == path) {
        let excluded = query.all("exclude").collect();
        return Some(Asked::All { kind: path, checks, excluded, verbose: query.given("verbose").is_some() });
    }
    let (kind, check) = path.split_once('/')?;
    let known = CHECKS.iter().any(|(own, checks)| *own == kind && checks.contains(&check));
    (known || ALONE.contains(&(kind, check))).then_some(Asked::One(check))
}

impl Asked<'_> {
    /// Whether the answer depends on the store.
    pub(crate) fn asks_store(&self) -> bool {
        match self {
            Asked::One(check) => is_of_store(check),
            Asked::All { checks, excluded, .. } => {
                checks.iter().any(|check| is_of_store(check) && !excluded.contains(check))
            }
        }
    }

    pub(crate) fn answer(&self, store: Result<(), String>) -> Response<Body> {
        match (self, store) {
            (Asked::One(check), Err(why)) if is_of_store(check) => {
                answer::text(500, format!("internal server error: {why}\n"))
            }
            (Asked::One(_), _) => {
                let mut response = answer::text(200, "ok");
                response.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
                response
            }
            (all, store) => {
                let (code, text) = all.report(store.is_ok());
                answer::text(code, text)
            }
        }
    }

    /// Why is told to those alone who ask about one check: everyone may ask about all.
    fn report(&self, store: bool) -> (u16, String) {
        let Asked::All { kind, checks, excluded, verbose } = self else { return (200, "ok".to_owned()) };
        let mut detail = String::new();
        for check in *checks {
            detail.push_str(&match (excluded.contains(check), store || !is_of_store(check)) {
                (true, _) => format!("[+]{check} excluded: ok\n"),
                (false, true) => format!("[+]{check} ok\n"),
                (false, false) => format!("[-]{check} failed: reason withheld\n"),
            });
        }
        let failed = detail.contains("[-]");
        detail.push_str(&unknown(checks, excluded));
        match (failed, verbose) {
            (true, _) => (500, format!("{detail}{kind} check failed\n")),
            (false, false) => (200, "ok".to_owned()),
            (false, true) => (200, format!("{detail}{kind} check passed\n")),
        }
    }
}

fn is_of_store(check: &str) -> bool {
    matches!(check, ETCD | ETCD_READINESS)
}

/// What is said of excluded checks that there are none of.
fn unknown(checks: &[&str], excluded: &[&str]) -> String {
    let mut unknown: Vec<String> =
        excluded.iter().filter(|name| !checks.contains(name)).map(|name| gotext::quote(name)).collect();
    unknown.sort();
    unknown.dedup();
    if unknown.is_empty() {
        String::new()
    } else {
        format!("warn: some health checks cannot be excluded: no matches for {}\n", unknown.join(","))
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    const READY: &str = "[+]ping ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\nreadyz check passed\n";
    const AWAY: &str = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n\
        [+]informer-sync ok\nreadyz check failed\n";
    const EXCLUDED: &str = "[+]ping ok\n[+]etcd excluded: ok\n[+]etcd-readiness excluded: ok\n[+]informer-sync ok\n\
        warn: some health checks cannot be excluded: no matches for \"a\",\"x\"\nreadyz check passed\n";

    #[test_case("readyz", "", true => (200, "ok".to_owned()); "all well")]
    #[test_case("readyz", "verbose", true => (200, READY.to_owned()); "all well in full")]
    #[test_case("readyz", "verbose=false", true => (200, READY.to_owned()); "any word will do")]
    #[test_case("readyz", "", false => (500, AWAY.to_owned()); "away")]
    #[test_case("readyz", "exclude=etcd&exclude=etcd-readiness", false => (200, "ok".to_owned()); "away and nobody minds")]
    #[test_case("readyz", "exclude=etcd&exclude=x&exclude=etcd-readiness&exclude=a&verbose", false => (200, EXCLUDED.to_owned()); "excluded")]
    #[test_case("livez", "verbose", false => (200, "[+]ping ok\nlivez check passed\n".to_owned()); "alive")]
    #[test_case("healthz", "", false => (500, "[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n".to_owned()); "not healthy")]
    fn reports(path: &str, query: &str, store: bool) -> (u16, String) {
        parse(path, &Query::parse(query)).unwrap().report(store)
    }

    #[test_case("readyz/etcd" => Some(true))]
    #[test_case("livez/etcd" => Some(true))]
    #[test_case("healthz/ping" => Some(false))]
    #[test_case("livez" => Some(false))]
    #[test_case("healthz" => Some(true))]
    #[test_case("livez/informer-sync" => None)]
    #[test_case("readyz/" => None)]
    fn single(path: &str) -> Option<bool> {
        parse(path, &Query::parse("")).map(|asked| asked.asks_store())
    }

    #[test]
    fn who_asks_about_one_check_is_told_why() {
        let asked = Asked::One(ETCD);
        assert_eq!(asked.answer(Err("context deadline exceeded".to_owned())).status(), 500);
        let good = asked.answer(Ok(()));
        assert!(good.status() == 200 && !good.headers().contains_key(X_CONTENT_TYPE_OPTIONS));
    }
}
