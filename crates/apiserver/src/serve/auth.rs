//! Who calls, and whether they may: certificates and tokens in, a yes or Kubernetes' no out.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::{HeaderMap, Method, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::{
    query,
    verifier::{Shown, Standing},
};
use crate::{
    reviews,
    route::{Route, Target},
    status::{Name, Result, Status},
};

pub(crate) const MASTERS: &str = "system:masters";
const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub name: String,
    /// What it is told apart by, if anything is said of it.
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    pub(crate) fn new(name: String, mut groups: Vec<String>) -> User {
        groups.push(AUTHENTICATED.to_owned());
        User::exactly(name, groups)
    }

    pub(crate) fn anonymous() -> User {
        User::exactly(ANONYMOUS.to_owned(), vec![UNAUTHENTICATED.to_owned()])
    }

    fn exactly(name: String, groups: Vec<String>) -> User {
        User { name, uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// A `UserInfo`: what is empty is left out.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name});
        let parts =
            [("uid", json!(self.uid)), ("groups", json!(self.groups)), ("extra", json!(self.extra))].into_iter();
        let is_empty = |value: &Value| [json!(""), json!([]), json!({})].contains(value);
        for (key, value) in parts.filter(|(_, value)| !is_empty(value)) {
            info[key] = value;
        }
        info
    }

    fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// What the connection says about its client.
#[derive(Clone)]
pub(crate) enum Peer {
    NoCertificate,
    Certificate(Arc<Shown>),
}

impl Peer {
    pub(crate) fn standing(&self) -> Standing {
        match self {
            Peer::NoCertificate => Standing::Nobody,
            Peer::Certificate(shown) => shown.standing(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("failed to read the token file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("line {line} of the token file {} should be token,user,uid,\"group1,group2\"", path.display())]
    Line { path: PathBuf, line: usize },
}

/// Bearer tokens from a file, as kube-apiserver's --token-auth-file has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    users: HashMap<String, User>,
}

impl Tokens {
    pub(crate) fn read(path: &Path) -> Result<Tokens, TokenError> {
        let text = fs::read_to_string(path).map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        let mut tokens = Tokens::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (token, user) =
                token_line(line).ok_or_else(|| TokenError::Line { path: path.to_owned(), line: index + 1 })?;
            if let Some(before) = tokens.users.insert(token, user) {
                tracing::warn!(
                    line = index + 1,
                    user = before.name,
                    "a token is in its file twice; the last line counts"
                );
            }
        }
        Ok(tokens)
    }

    /// The caller of a request, or 401 for credentials that are not good. One that is good is enough.
    pub(crate) fn authenticate(&self, standing: Standing, headers: &HeaderMap) -> Result<User> {
        match (standing, bearer(headers)) {
            (Standing::Good(user), _) => Ok(user),
            (_, Some(token)) => self.users.get(&*token).cloned().ok_or_else(Status::unauthorized),
            (Standing::Bad, None) => Err(Status::unauthorized()),
            (Standing::Nobody, None) => Ok(User::anonymous()),
        }
    }
}

/// A token, if there is one. Other ways to say who one is are not looked at, as in Kubernetes.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let text = String::from_utf8_lossy(headers.get(AUTHORIZATION)?.as_bytes());
    let (scheme, rest) = text.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// `token,user,uid` and then, quoted, the groups.
fn token_line(line: &str) -> Option<(String, User)> {
    let fields = record(line)?;
    let ([token, name, uid] | [token, name, uid, _]) = &fields[..] else { return None };
    if token.is_empty() || name.is_empty() {
        return None;
    }
    let groups = fields.get(3).map_or("", String::as_str).split(',').map(str::trim);
    let groups = groups.filter(|group| !group.is_empty()).map(str::to_owned).collect();
    Some((token.clone(), User { uid: uid.clone(), ..User::new(name.clone(), groups) }))
}

/// The fields of a line of comma-separated values, or nothing if its quotes are wrong.
fn record(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (field, after) = field(text.trim())?;
        fields.push(field);
        rest = after;
    }
    Some(fields)
}

/// The first field, and what follows its comma. Within quotes a comma is a character, and two quotes are one.
fn field(text: &str) -> Option<(String, Option<&str>)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (field, after) = text.split_once(',').map_or((text, None), |(field, after)| (field, Some(after)));
        return (!field.contains('"')).then(|| (field.trim().to_owned(), after));
    };
    let pairs = quoted.match_indices("\"\"").map(|(at, _)| at);
    let in_pair: Vec<usize> = pairs.flat_map(|at| [at, at + 1]).collect();
    let (end, _) = quoted.match_indices('"').find(|(at, _)| !in_pair.contains(at))?;
    let after = quoted[end + 1..].trim_start();
    let rest = if after.is_empty() { None } else { Some(after.strip_prefix(',')?) };
    Some((quoted[..end].replace("\"\"", "\""), rest))
}

/// Masters may do all, anyone may ask for health and version, and who is known may read what is served and ask about itself.
/// There are no roles.
pub(crate) fn authorize(user: &User, method: &Method, path: &str, route: &Route, verb: &str) -> Result<()> {
    let word = method.as_str().to_lowercase();
    match route {
        Route::Resource(target) if may_touch(user, target, verb) => Ok(()),
        Route::Resource(target) => Err(resource_forbidden(user, target, verb)),
        route if may_read(user, &word, route) => Ok(()),
        _ => Err(Status::forbidden_path(format!("User \"{}\" cannot {word} path \"{path}\"", user.name))),
    }
}

/// Whether a user may do this with a resource.
pub(crate) fn may_touch(user: &User, target: &Target, verb: &str) -> bool {
    let asks = verb == "create"
        && reviews::ALL.iter().any(|review| target.group == review.group() && target.plural == review.plural());
    user.is_in(MASTERS) || (asks && user.is_in(AUTHENTICATED))
}

/// Whether a user may do this with what is no resource.
pub(crate) fn may_read(user: &User, verb: &str, route: &Route) -> bool {
    // Parts of health are for masters, as in Kubernetes.
    let open = match route {
        Route::Version => verb == "get",
        Route::Health(path) => verb == "get" && !path.contains('/'),
        _ => false,
    };
    let known = matches!(route, Route::Discovery(_) | Route::OpenApi(_));
    user.is_in(MASTERS) || open || (known && user.is_in(AUTHENTICATED))
}

/// All that a user may do, as a SelfSubjectRulesReview tells it, in the order of the roles that Kubernetes has for it.
pub(crate) fn rules(user: &User) -> Value {
    let (mut resources, mut others) = (Vec::new(), Vec::new());
    if user.is_in(MASTERS) {
        resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        others.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    if user.is_in(AUTHENTICATED) {
        for group in [reviews::AUTHENTICATION, reviews::AUTHORIZATION] {
            let asked = reviews::ALL.iter().filter(|review| review.group() == group).map(|review| review.plural());
            resources.push(json!({"verbs": ["create"], "apiGroups": [group], "resources": asked.collect::<Vec<_>>()}));
        }
        others.push(json!({"verbs": ["get"], "nonResourceURLs": DISCOVERY}));
    }
    others.push(json!({"verbs": ["get"], "nonResourceURLs": PUBLIC}));
    json!({"resourceRules": resources, "nonResourceRules": others, "incomplete": false})
}

/// What anyone may read.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// What everyone who is known may read.
const DISCOVERY: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

/// Who a request is to be made for: masters may act for others, as `kubectl --as` asks.
pub(crate) fn impersonate(user: User, headers: &HeaderMap) -> Result<User> {
    // Names are not ASCII alone, and one that was passed over would leave the caller with all its own might.
    let values = |name: &str| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        values.filter(|text| !text.is_empty()).collect::<Vec<_>>()
    };
    let (name, groups) = (values("impersonate-user").into_iter().next(), values("impersonate-group"));
    let uid = values("impersonate-uid").into_iter().next().unwrap_or_default();
    let keys = headers.keys().filter_map(|key| Some((key, key.as_str().strip_prefix("impersonate-extra-")?)));
    let extra: BTreeMap<String, Vec<String>> =
        keys.map(|(header, key)| (query::decode_path(key), values(header.as_str()))).collect();
    let others = !uid.is_empty() || !extra.is_empty();
    let Some(name) = name else {
        return if groups.is_empty() && !others {
            Ok(user)
        } else {
            Err(Status::bad_request("groups, uids or extra fields were to be impersonated without a user"))
        };
    };
    if !user.is_in(MASTERS) {
        let why = format!(
            "User \"{}\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
            user.name
        );
        return Err(Status::forbidden(&Name::new("", "users"), &name, why));
    }
    let user = match (name.as_str(), groups.iter().any(|group| group == UNAUTHENTICATED)) {
        (ANONYMOUS, _) => User::anonymous(),
        (_, true) => User::exactly(name, groups),
        (_, false) => User::new(name, groups.into_iter().filter(|group| group != AUTHENTICATED).collect()),
    };
    Ok(User { uid, extra, ..user })
}

fn resource_forbidden(user: &User, target: &Target, verb: &str) -> Box<Status> {
    let resource = match &target.subresource {
        Some(subresource) => format!("{}/{subresource}", target.plural),
        None => target.plural.clone(),
    };
    // A namespace is in itself.
    let own = target.name.as_ref().filter(|_| target.group.is_empty() && target.plural == "namespaces");
    let place = match target.namespace.as_ref().or(own) {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {place}",
        user.name, target.group
    );
    Status::forbidden(&Name::new(&target.group, &target.plural), target.name.as_deref().unwrap_or_default(), why)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use test_case::test_case;

    use super::*;
    use crate::route;

    #[test]
    fn a_token_line_names_user_and_groups() {
        let (token, user) = token_line(r#"s3cret,ann,u1,"dev,system:masters""#).unwrap();
        assert_eq!((token.as_str(), user.name.as_str(), user.uid.as_str()), ("s3cret", "ann", "u1"));
        assert_eq!(user.groups, ["dev", MASTERS, AUTHENTICATED]);
    }

    #[test_case("t,ann,u,dev" => Some(("t".into(), "dev".into())); "one group needs no quotes")]
    #[test_case("t,ann," => Some(("t".into(), "".into())); "neither uid nor groups")]
    #[test_case(r#""a,b", ann, u, "one, two""# => Some(("a,b".into(), "one two".into())); "commas within quotes")]
    #[test_case(r#""a""b",ann,u"# => Some(("a\"b".into(), "".into())); "quotes within quotes")]
    #[test_case("only-a-token" => None)]
    #[test_case(",ann,u" => None; "no token")]
    #[test_case("t,,u" => None; "no user")]
    #[test_case("t,ann,u,one,two" => None; "groups without quotes")]
    #[test_case(r#"t,ann,u,"one"# => None; "quotes that do not end")]
    #[test_case(r#"t,ann,u,"one"two"# => None; "text after quotes")]
    #[test_case(r#"t"t,ann,u"# => None; "a quote in the middle")]
    fn token_lines(line: &str) -> Option<(String, String)> {
        let (token, user) = token_line(line)?;
        let own: Vec<String> = user.groups.into_iter().filter(|group| group != AUTHENTICATED).collect();
        Some((token, own.join(" ")))
    }

    #[test]
    fn forbidden_reads_as_in_kubernetes() {
        let path = "/apis/example.com/v1/namespaces/d/crontabs";
        let route = route::parse(path);
        let refused = authorize(&User::new("u".into(), vec![]), &Method::GET, path, &route, "list").unwrap_err();
        assert_eq!(
            refused.message,
            "crontabs.example.com is forbidden: User \"u\" cannot list resource \"crontabs\" in API group \
             \"example.com\" in the namespace \"d\""
        );
        let refused = authorize(&User::anonymous(), &Method::GET, "/apis", &route::parse("/apis"), "get").unwrap_err();
        assert_eq!(refused.message, "forbidden: User \"system:anonymous\" cannot get path \"/apis\"");
    }

    #[test]
    fn masters_may_act_for_others_and_nobody_else_may() {
        let header = |name: &'static str, value: &str| (http::HeaderName::from_static(name), value.parse().unwrap());
        let as_ann = || {
            HeaderMap::from_iter([
                header("impersonate-user", "ann"),
                header("impersonate-group", "dev"),
                header("impersonate-uid", "7"),
                header("impersonate-extra-a.io%2fscopes", "b"),
            ])
        };
        let master = || User::new("root".into(), vec![MASTERS.into()]);
        let ann = impersonate(master(), &as_ann()).unwrap();
        assert_eq!(
            ann.info(),
            json!({"username": "ann", "uid": "7", "groups": ["dev", AUTHENTICATED], "extra": {"a.io/scopes": ["b"]}})
        );
        let refused = impersonate(User::new("bob".into(), vec![]), &as_ann()).unwrap_err();
        assert_eq!(
            refused.message,
            "users \"ann\" is forbidden: User \"bob\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
        );
        let named = HeaderValue::from_bytes("jörg".as_bytes()).unwrap();
        let joerg = HeaderMap::from_iter([(http::HeaderName::from_static("impersonate-user"), named)]);
        let found = impersonate(master(), &joerg).unwrap();
        assert_eq!((found.name.as_str(), &found.groups[..]), ("jörg", &[AUTHENTICATED.to_owned()][..]));
        let groups = HeaderMap::from_iter([header("impersonate-group", "dev")]);
        assert_eq!(impersonate(master(), &groups).unwrap_err().code, 400);
        assert_eq!(impersonate(master(), &HeaderMap::new()).unwrap(), master());
    }

    #[test_case("Bearer good", Standing::Nobody => "ann"; "a token")]
    #[test_case("bearer good more", Standing::Bad => "ann"; "a token beside a bad certificate")]
    #[test_case("Bearer bad", Standing::Nobody => "401"; "a bad token")]
    #[test_case("Bearer bad", Standing::Good(User::new("bob".into(), vec![])) => "bob"; "a bad token beside a good certificate")]
    #[test_case("Bearer schlüssel", Standing::Nobody => "401"; "a bad token that is not ASCII")]
    #[test_case("Basic Zm9v", Standing::Bad => "401"; "a bad certificate")]
    #[test_case("Basic Zm9v", Standing::Nobody => ANONYMOUS; "no token")]
    #[test_case("Bearer  good", Standing::Nobody => ANONYMOUS; "an empty token")]
    #[test_case("Bearer", Standing::Nobody => ANONYMOUS; "a token forgotten")]
    fn who_calls(header: &str, standing: Standing) -> String {
        let tokens = Tokens { users: HashMap::from([("good".to_owned(), User::new("ann".into(), vec![]))]) };
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_bytes(header.as_bytes()).unwrap())]);
        let user = tokens.authenticate(standing, &headers);
        user.map_or_else(|status| status.code.to_string(), |user| user.name)
    }
}
