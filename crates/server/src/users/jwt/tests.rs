//! Keys as operators make them with openssl, in `testdata/jwt`; they guard nothing.

use std::path::Path;

use test_case::test_case;

use super::*;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/jwt").join(name)
}

fn options(method: &str, private: Option<&str>, public: Option<&str>) -> JwtOptions {
    JwtOptions {
        method: Method::named(method).expect("a method"),
        private_key: private.map(data),
        public_key: public.map(data),
        ttl: Duration::from_secs(300),
    }
}

fn load(method: &str, private: Option<&str>, public: Option<&str>) -> Result<Jwt, String> {
    Jwt::load(&options(method, private, public)).map_err(|e| e.to_string())
}

const NOW: Duration = Duration::from_secs(1_800_000_000);

#[test_case("HS256", "secret", None; "HS256")]
#[test_case("HS384", "secret", None; "HS384")]
#[test_case("HS512", "secret", None; "HS512")]
#[test_case("RS256", "rsa.pem", Some("rsa.pub"); "RS256")]
#[test_case("RS384", "rsa.pem", None; "RS384")]
#[test_case("RS512", "rsa-pkcs1.pem", Some("rsa.pub"); "RS512, in the older form")]
#[test_case("PS256", "rsa.pem", Some("rsa.pub"); "PS256")]
#[test_case("PS384", "rsa.pem", Some("rsa.pub"); "PS384")]
#[test_case("PS512", "rsa.pem", Some("rsa.pub"); "PS512")]
#[test_case("ES256", "p256.pem", Some("p256.pub"); "ES256")]
#[test_case("ES256", "p256-sec1.pem", None; "ES256, in the older form")]
#[test_case("ES384", "p384.pem", Some("p384.pub"); "ES384")]
#[test_case("ES512", "p521.pem", Some("p521.pub"); "ES512")]
#[test_case("EdDSA", "ed25519.pem", Some("ed25519.pub"); "EdDSA")]
fn signs_and_verifies(method: &str, private: &str, public: Option<&str>) {
    let jwt = load(method, Some(private), public).unwrap();
    let token = jwt.sign("alice", 7, NOW).unwrap();
    let alice = Caller { user: "alice".into(), revision: 7 };
    assert_eq!(jwt.verify(&token, NOW), Ok(alice.clone()));
    assert_eq!(jwt.verify(&token, NOW + Duration::from_secs(299)), Ok(alice.clone()));
    assert_eq!(jwt.verify(&token, NOW + Duration::from_secs(300)), Err(Refusal::Time));
    // Whoever has the public key alone can tell, and not give out.
    if let Some(public) = public {
        let reader = load(method, None, Some(public)).unwrap();
        assert_eq!(reader.verify(&token, NOW), Ok(alice));
        assert_eq!(reader.sign("alice", 7, NOW).unwrap_err().to_string(), SignError::VerifyOnly.to_string());
    }
    // No part of it can be another.
    for part in 0..3 {
        let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
        let flipped = if parts[part].as_bytes()[1] == b'A' { 'B' } else { 'A' };
        parts[part].replace_range(1..2, &flipped.to_string());
        assert!(jwt.verify(&parts.join("."), NOW).is_err(), "part {part}");
    }
}

#[test]
fn another_method_is_refused_whatever_it_says() {
    let jwt = load("RS256", Some("rsa.pem"), Some("rsa.pub")).unwrap();
    let claims = BASE64.encode(r#"{"username":"root","revision":1}"#);
    for alg in ["none", "None", "HS256", ""] {
        let header = BASE64.encode(format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#));
        assert_eq!(jwt.verify(&format!("{header}.{claims}."), NOW), Err(Refusal::Method("RS256")), "{alg}");
    }
    // The public key taken for a secret.
    let forged = load("HS256", Some("rsa.pub"), None).unwrap().sign("root", 1, NOW).unwrap();
    assert_eq!(jwt.verify(&forged, NOW), Err(Refusal::Method("RS256")));
}

#[test_case(r#"{"username":"a","revision":3}"# => Ok(3); "without times")]
#[test_case(r#"{"username":"a","revision":3.0,"exp":1800000001}"# => Ok(3); "a number is a number")]
#[test_case(r#"{"username":"a","revision":3,"exp":1800000000}"# => Err(Refusal::Time); "expired")]
#[test_case(r#"{"username":"a","revision":3,"nbf":1800000001}"# => Err(Refusal::Time); "not yet")]
#[test_case(r#"{"username":"a","revision":3,"exp":"soon"}"# => Err(Refusal::Claims); "no time")]
#[test_case(r#"{"username":"a"}"# => Err(Refusal::Claims); "no revision")]
#[test_case(r#"{"revision":3}"# => Err(Refusal::Claims); "no user")]
#[test_case(r#"{"username":7,"revision":3}"# => Err(Refusal::Claims); "a user that is no text")]
#[test_case(r#"[]"# => Err(Refusal::Claims); "no claims")]
#[test_case(r#"{"# => Err(Refusal::Malformed); "no JSON")]
fn claims(claims: &str) -> Result<u64, Refusal> {
    let jwt = load("HS256", Some("secret"), None).unwrap();
    let text = format!("{}.{}", BASE64.encode(r#"{"alg":"HS256"}"#), BASE64.encode(claims));
    let signature = jwt.signer.as_ref().unwrap().sign(text.as_bytes()).unwrap();
    jwt.verify(&format!("{text}.{}", BASE64.encode(signature)), NOW).map(|caller| caller.revision)
}

#[test_case("RS256", None, None => "auth: missing key data: RS256 needs priv-key or pub-key"; "no key")]
#[test_case("HS256", None, None => "auth: missing key data: HS256 needs priv-key"; "no secret")]
#[test_case("RS256", Some("rsa.pem"), Some("other.pub") => "auth: public and private keys don't match"; "two pairs")]
fn refused(method: &str, private: Option<&str>, public: Option<&str>) -> String {
    load(method, private, public).map(|_| ()).unwrap_err()
}

#[test_case("RS256", Some("p256.pem"), None, "private key for RS256"; "a key of another kind")]
#[test_case("ES384", Some("p256.pem"), None, "private key for ES384"; "a key on another curve")]
#[test_case("RS256", None, Some("p256.pub"), "public key for RS256"; "a public key of another kind")]
#[test_case("RS256", Some("rsa.pub"), None, "private key for RS256"; "a public key for a private one")]
#[test_case("RS256", Some("nowhere"), None, "failed to read the key"; "no file")]
fn refused_by_name(method: &str, private: Option<&str>, public: Option<&str>, expected: &str) {
    let error = load(method, private, public).map(|_| ()).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_no_token() {
    let jwt = load("HS256", Some("secret"), None).unwrap();
    for token in ["", ".", "..", "a.b", "a.b.c", "....", "wörter.7", "abcdefghijklmnop.12"] {
        assert!(jwt.verify(token, NOW).is_err(), "{token:?}");
    }
}
