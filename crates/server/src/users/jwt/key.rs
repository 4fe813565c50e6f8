//! Methods of signing, and their keys.

use std::{fs, path::Path};

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    signature::{
        self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, ParsedPublicKey, RsaEncoding, RsaKeyPair,
        VerificationAlgorithm,
    },
};
use rustls_pki_types::pem::{self, SectionKind};

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("failed to read the key {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path} holds no {what} for {method} in PEM form")]
    Bad { path: String, what: &'static str, method: &'static str },
    #[error("auth: missing key data: {method} needs priv-key{or_public}")]
    Missing { method: &'static str, or_public: &'static str },
    #[error("auth: public and private keys don't match")]
    Mismatch,
}

/// A way of signing, by its name in `sign-method`.
#[derive(Debug, Clone, Copy)]
pub struct Method(&'static Row);

#[derive(Debug)]
struct Row {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Hmac(hmac::Algorithm),
    Rsa(&'static dyn RsaEncoding, &'static dyn VerificationAlgorithm),
    Ec(&'static EcdsaSigningAlgorithm, &'static dyn VerificationAlgorithm),
    Ed,
}

#[rustfmt::skip]
static METHODS: &[Row] = &[
    Row { name: "HS256", kind: Kind::Hmac(hmac::HMAC_SHA256) },
    Row { name: "HS384", kind: Kind::Hmac(hmac::HMAC_SHA384) },
    Row { name: "HS512", kind: Kind::Hmac(hmac::HMAC_SHA512) },
    Row { name: "RS256", kind: Kind::Rsa(&signature::RSA_PKCS1_SHA256, &signature::RSA_PKCS1_2048_8192_SHA256) },
    Row { name: "RS384", kind: Kind::Rsa(&signature::RSA_PKCS1_SHA384, &signature::RSA_PKCS1_2048_8192_SHA384) },
    Row { name: "RS512", kind: Kind::Rsa(&signature::RSA_PKCS1_SHA512, &signature::RSA_PKCS1_2048_8192_SHA512) },
    Row { name: "PS256", kind: Kind::Rsa(&signature::RSA_PSS_SHA256, &signature::RSA_PSS_2048_8192_SHA256) },
    Row { name: "PS384", kind: Kind::Rsa(&signature::RSA_PSS_SHA384, &signature::RSA_PSS_2048_8192_SHA384) },
    Row { name: "PS512", kind: Kind::Rsa(&signature::RSA_PSS_SHA512, &signature::RSA_PSS_2048_8192_SHA512) },
    Row { name: "ES256", kind: Kind::Ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &signature::ECDSA_P256_SHA256_FIXED) },
    Row { name: "ES384", kind: Kind::Ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, &signature::ECDSA_P384_SHA384_FIXED) },
    Row { name: "ES512", kind: Kind::Ec(&signature::ECDSA_P521_SHA512_FIXED_SIGNING, &signature::ECDSA_P521_SHA512_FIXED) },
    Row { name: "EdDSA", kind: Kind::Ed },
];

impl Method {
    pub fn named(name: &str) -> Option<Method> {
        METHODS.iter().find(|row| row.name == name).map(Method)
    }

    pub fn names() -> String {
        METHODS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Method) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Method {}

pub(super) enum Signer {
    Hmac(Box<hmac::Key>),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

pub(super) enum Verifier {
    Hmac(Box<hmac::Key>),
    Public(ParsedPublicKey),
}

impl Signer {
    pub(super) fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Signer::Hmac(key) => Some(hmac::sign(key, text).as_ref().to_vec()),
            Signer::Rsa(pair, encoding) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(*encoding, &SystemRandom::new(), text, &mut out).ok().map(|()| out)
            }
            Signer::Ec(pair) => pair.sign(&SystemRandom::new(), text).ok().map(|signed| signed.as_ref().to_vec()),
            Signer::Ed(pair) => pair.try_sign(text).ok().map(|signed| signed.as_ref().to_vec()),
        }
    }

    /// What verifies what this signs. `None` if the library cannot use its own key.
    fn verifier(&self, kind: &Kind) -> Option<Verifier> {
        let public = |algorithm, key: &[u8]| ParsedPublicKey::new(algorithm, key).ok().map(Verifier::Public);
        match (self, kind) {
            (Signer::Hmac(key), _) => Some(Verifier::Hmac(key.clone())),
            (Signer::Rsa(pair, _), Kind::Rsa(_, algorithm)) => public(*algorithm, pair.public_key().as_ref()),
            (Signer::Ec(pair), Kind::Ec(_, algorithm)) => public(*algorithm, pair.public_key().as_ref()),
            (Signer::Ed(pair), _) => public(&signature::ED25519, pair.public_key().as_ref()),
            _ => None,
        }
    }
}

impl Verifier {
    pub(super) fn verify(&self, text: &[u8], signature: &[u8]) -> bool {
        match self {
            Verifier::Hmac(key) => hmac::verify(key, text, signature).is_ok(),
            Verifier::Public(key) => key.verify_sig(text, signature).is_ok(),
        }
    }
}

/// The keys of a method. With both given, tokens are verified with the public one.
pub(super) fn load(
    method: Method,
    private: Option<&Path>,
    public: Option<&Path>,
) -> Result<(Option<Signer>, Verifier), KeyError> {
    let kind = &method.0.kind;
    let is_secret = matches!(kind, Kind::Hmac(_));
    let signer = private.map(|path| read_private(method, path)).transpose()?;
    let given = public.filter(|_| !is_secret).map(|path| read_public(method, path)).transpose()?;
    let own = signer.as_ref().and_then(|signer| signer.verifier(kind));
    let or_public = if is_secret { "" } else { " or pub-key" };
    let verifier = given.or(own).ok_or(KeyError::Missing { method: method.name(), or_public })?;
    Ok((signer, verifier))
}

fn read_private(method: Method, path: &Path) -> Result<Signer, KeyError> {
    let bytes = read(path)?;
    let kinds = [SectionKind::PrivateKey, SectionKind::RsaPrivateKey, SectionKind::EcPrivateKey];
    let signer = match &method.0.kind {
        // The whole file is the secret, as in etcd.
        Kind::Hmac(algorithm) => {
            (!bytes.is_empty()).then(|| Signer::Hmac(Box::new(hmac::Key::new(*algorithm, &bytes))))
        }
        Kind::Rsa(encoding, _) => section(&bytes, &kinds).and_then(|der| {
            let pair = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der));
            pair.ok().map(|pair| Signer::Rsa(pair, *encoding))
        }),
        Kind::Ec(algorithm, _) => section(&bytes, &kinds)
            .and_then(|der| EcdsaKeyPair::from_private_key_der(algorithm, &der).ok())
            .map(Signer::Ec),
        Kind::Ed => section(&bytes, &kinds)
            .and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok())
            .map(Signer::Ed),
    };
    signer.ok_or_else(|| bad(method, path, "private key"))
}

fn read_public(method: Method, path: &Path) -> Result<Verifier, KeyError> {
    let algorithm: &'static dyn VerificationAlgorithm = match &method.0.kind {
        Kind::Rsa(_, algorithm) | Kind::Ec(_, algorithm) => *algorithm,
        Kind::Ed | Kind::Hmac(_) => &signature::ED25519,
    };
    let der = section(&read(path)?, &[SectionKind::PublicKey]);
    let key = der.and_then(|der| ParsedPublicKey::new(algorithm, der).ok());
    key.map(Verifier::Public).ok_or_else(|| bad(method, path, "public key"))
}

fn read(path: &Path) -> Result<Vec<u8>, KeyError> {
    fs::read(path).map_err(|source| KeyError::Read { path: path.display().to_string(), source })
}

fn bad(method: Method, path: &Path, what: &'static str) -> KeyError {
    KeyError::Bad { path: path.display().to_string(), what, method: method.name() }
}

/// The first section of one of these kinds.
fn section(mut pem: &[u8], kinds: &[SectionKind]) -> Option<Vec<u8>> {
    while let Ok(Some((kind, der))) = pem::from_buf(&mut pem) {
        if kinds.contains(&kind) {
            return Some(der);
        }
    }
    None
}
