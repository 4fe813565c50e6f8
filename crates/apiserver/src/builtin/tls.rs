//! Whether a certificate and a key belong together, in the words of Go's crypto/tls.

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    SignatureAlgorithm,
    pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer},
    sign::SigningKey,
};
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, parse_x509_certificate};

const KEY: &str = "PRIVATE KEY";

pub(super) fn check(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let certificate = find_certificate(&blocks(certificate))?;
    let key = find_key(&blocks(key))?;
    let (rest, certificate) = parse_x509_certificate(&certificate).map_err(|_| "x509: malformed certificate")?;
    if !rest.is_empty() {
        return Err("x509: trailing data".to_owned());
    }
    let public = certificate.public_key();
    let wanted = match public.algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.1" => SignatureAlgorithm::RSA,
        "1.2.840.10045.2.1" => SignatureAlgorithm::ECDSA,
        "1.3.101.112" => SignatureAlgorithm::ED25519,
        _ => return Err("tls: unknown public key algorithm".to_owned()),
    };
    match load(&key) {
        // One of a form that is not known here may be sound.
        None if is_sequence(&key) => Ok(()),
        None => Err("tls: failed to parse private key".to_owned()),
        Some(key) if key.algorithm() != wanted => {
            Err("tls: private key type does not match public key type".to_owned())
        }
        Some(key) if !matches(key.as_ref(), public) => Err("tls: private key does not match public key".to_owned()),
        Some(_) => Ok(()),
    }
}

/// A block of PEM: its type and its bytes.
type Block = (String, Vec<u8>);

fn find_certificate(blocks: &[Block]) -> Result<Vec<u8>, String> {
    if let Some((_, bytes)) = blocks.iter().find(|(kind, _)| kind == "CERTIFICATE") {
        return Ok(bytes.clone());
    }
    Err(match blocks {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [(kind, _)] if kind.ends_with(KEY) => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have \
             been switched"
                .to_owned()
        }
        _ => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following \
             types: {}",
            kinds(blocks)
        ),
    })
}

fn find_key(blocks: &[Block]) -> Result<Vec<u8>, String> {
    let is_key = |kind: &str| kind == KEY || kind.ends_with(" PRIVATE KEY");
    if let Some((_, bytes)) = blocks.iter().find(|(kind, _)| is_key(kind)) {
        return Ok(bytes.clone());
    }
    Err(match blocks {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [(kind, _)] if kind == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        _ => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the \
             following types: {}",
            kinds(blocks)
        ),
    })
}

fn kinds(blocks: &[Block]) -> String {
    let kinds: Vec<&str> = blocks.iter().map(|(kind, _)| kind.as_str()).collect();
    format!("[{}]", kinds.join(" "))
}

/// All whole blocks; what is none is passed over.
fn blocks(text: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(text);
    let (mut found, mut open) = (Vec::new(), None::<(String, String)>);
    for line in text.lines().map(str::trim_end) {
        let mark = |start: &str| line.strip_prefix(start).and_then(|rest| rest.strip_suffix("-----"));
        if let Some(kind) = mark("-----BEGIN ") {
            open = Some((kind.to_owned(), String::new()));
        } else if let Some(end) = mark("-----END ") {
            let whole = open.take().filter(|(kind, _)| kind == end);
            let read = |(kind, body): (String, String)| STANDARD.decode(body).ok().map(|bytes| (kind, bytes));
            found.extend(whole.and_then(read));
        } else if let Some((_, body)) = &mut open
            && !line.contains(':')
        {
            body.extend(line.chars().filter(|c| !c.is_whitespace()));
        }
    }
    found
}

/// A key in whichever form it is.
fn load(der: &[u8]) -> Option<std::sync::Arc<dyn SigningKey>> {
    let forms = [
        PrivateKeyDer::from(PrivatePkcs1KeyDer::from(der.to_vec())),
        PrivatePkcs8KeyDer::from(der.to_vec()).into(),
        PrivateSec1KeyDer::from(der.to_vec()).into(),
    ];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    forms.into_iter().find_map(|form| provider.key_provider.load_private_key(form).ok())
}

fn matches(key: &dyn SigningKey, public: &SubjectPublicKeyInfo<'_>) -> bool {
    let Some(own) = key.public_key() else { return true };
    SubjectPublicKeyInfo::from_der(&own).is_ok_and(|(_, own)| own.subject_public_key == public.subject_public_key)
}

/// Whether bytes are one sequence of ASN.1, as keys of every form are.
fn is_sequence(der: &[u8]) -> bool {
    let length = match der {
        [0x30, short, ..] if *short < 0x80 => 2 + usize::from(*short),
        [0x30, 0x81, length, ..] => 3 + usize::from(*length),
        [0x30, 0x82, high, low, ..] => 4 + usize::from(u16::from_be_bytes([*high, *low])),
        _ => return false,
    };
    der.len() == length
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn pair() -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["a.io".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    fn block(kind: &str, bytes: &[u8]) -> String {
        format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(bytes))
    }

    fn told(certificate: &str, key: &str) -> String {
        check(certificate.as_bytes(), key.as_bytes()).err().unwrap_or_default()
    }

    /// Texts of Go 1.26.
    #[test]
    fn a_certificate_and_its_key() {
        let ((certificate, key), (other, _)) = (pair(), pair());
        assert_eq!(told(&certificate, &key), "");
        assert_eq!(told(&format!("a line before\n{certificate}{other}"), &key), "", "the first counts");
        assert_eq!(told(&other, &key), "tls: private key does not match public key");
        assert_eq!(
            told(&key, &certificate),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have \
             been switched"
        );
        assert_eq!(
            told(&certificate, &other),
            "tls: found a certificate rather than a key in the PEM for the private key"
        );
        assert_eq!(told(&certificate, ""), "tls: failed to find any PEM data in key input");
        assert_eq!(told(&certificate, &block(KEY, b"x")), "tls: failed to parse private key");
        assert_eq!(told(&block("CERTIFICATE", b"x"), &key), "x509: malformed certificate");
    }

    #[test_case("" => "tls: failed to find any PEM data in certificate input"; "nothing")]
    #[test_case("x" => "tls: failed to find any PEM data in certificate input"; "no PEM")]
    #[test_case("-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN B-----\nYQ==\n-----END B-----" => "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [A B]"; "others")]
    fn no_certificate(text: &str) -> String {
        told(text, "")
    }
}
