//! Certificates the server makes itself: one authority, kept in the data dir, that signs the server and its clients.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

const YEARS: i32 = 10;

#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("failed to {what} {}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    #[error("failed to make a certificate for {subject}")]
    Make { subject: String, source: rcgen::Error },
    #[error("{} or the key beside it is not a certificate authority; remove both to have them made again", path.display())]
    BadAuthority { path: PathBuf, source: rcgen::Error },
    #[error("{} {why}; remove it and the key beside it to have both made again, after which clients need the new kubeconfig", path.display())]
    Unfit { path: PathBuf, why: &'static str },
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub cert: String,
    pub key: String,
}

pub(crate) struct Authority {
    pub cert: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The authority in `dir`, made on first use.
    pub(crate) fn open(dir: &Path) -> Result<Authority, PkiError> {
        let (cert_path, key_path) = (dir.join("ca.crt"), dir.join("ca.key"));
        if !cert_path.exists() {
            let pair = make_authority()?;
            fs::create_dir_all(dir).map_err(|source| file("make", dir, source))?;
            // The key first: a certificate without its key would be taken for a whole authority at the next start.
            write_private(&key_path, &pair.key)?;
            write_whole(&cert_path, &pair.cert, 0o644)?;
        }
        let cert = fs::read_to_string(&cert_path).map_err(|source| file("read", &cert_path, source))?;
        let key = fs::read_to_string(&key_path).map_err(|source| file("read", &key_path, source))?;
        let bad = |source| PkiError::BadAuthority { path: cert_path.clone(), source };
        let key = KeyPair::from_pem(&key).map_err(bad)?;
        if let Some(why) = unfit(&cert, &key) {
            return Err(PkiError::Unfit { path: cert_path, why });
        }
        let issuer = Issuer::from_ca_cert_pem(&cert, key).map_err(bad)?;
        Ok(Authority { cert, issuer })
    }

    /// For a server that is reached under these names and addresses.
    pub(crate) fn server(&self, names: Vec<String>) -> Result<Pair, PkiError> {
        self.sign("lockgate-apiserver", None, names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// For a client that is this user, in this group.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<Pair, PkiError> {
        self.sign(user, Some(group), Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        name: &str,
        group: Option<&str>,
        names: Vec<String>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Pair, PkiError> {
        let failed = |source| PkiError::Make { subject: name.to_owned(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params(name, names).map_err(failed)?;
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![usage];
        let cert = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
    }
}

fn make_authority() -> Result<Pair, PkiError> {
    let failed = |source| PkiError::Make { subject: "the authority".to_owned(), source };
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = params("lockgate-ca", Vec::new()).map_err(failed)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let cert = params.self_signed(&key).map_err(failed)?;
    Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
}

fn params(name: &str, names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    // A day back, for clocks that are behind; the 28th, as not every year has each day.
    let (year, month, day) = (i32::from(today.year()), today.month() as u8, (today.day() as u8).min(28));
    let yesterday = today.yesterday().unwrap_or(today);
    params.not_before = date_time_ymd(i32::from(yesterday.year()), yesterday.month() as u8, yesterday.day() as u8);
    params.not_after = date_time_ymd(year + YEARS, month, day);
    Ok(params)
}

/// Why no client would believe what this certificate signs with that key.
fn unfit(cert: &str, key: &KeyPair) -> Option<&'static str> {
    let der = CertificateDer::from_pem_slice(cert.as_bytes()).ok();
    let Some((_, cert)) = der.as_ref().and_then(|der| X509Certificate::from_der(der).ok()) else {
        return Some("is not a certificate");
    };
    if cert.public_key().raw != key.subject_public_key_info() {
        Some("is not the certificate of the key beside it")
    } else if !cert.is_ca() {
        Some("is not the certificate of an authority")
    } else if !cert.validity().is_valid() {
        Some("is not valid at this time")
    } else {
        None
    }
}

/// Written so that only the owner can read it.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    write_whole(path, text, 0o600)
}

fn write_whole(path: &Path, text: &str, mode: u32) -> Result<(), PkiError> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    // Others wait for these files, and one that is half there is none: they come whole.
    let new = path.with_extension("new");
    let open = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&new, path)).map_err(|source| file("write", path, source))
}

fn file(what: &'static str, path: &Path, source: io::Error) -> PkiError {
    PkiError::File { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of opening an authority with these files.
    fn opened(cert: &str, key: &KeyPair) -> String {
        let dir = harness::tempdir();
        fs::write(dir.path().join("ca.crt"), cert).unwrap();
        fs::write(dir.path().join("ca.key"), key.serialize_pem()).unwrap();
        Authority::open(dir.path()).map_or_else(|error| error.to_string(), |_| "good".to_owned())
    }

    fn cert(key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut params = params("x", Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        params.self_signed(key).unwrap().pem()
    }

    /// Found by attack: the server reported that it was ready, and no client could connect.
    #[test]
    fn rejects_an_authority_that_clients_would_not_trust() {
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert_eq!(opened(&cert(&key, |_| {}), &key), "good");
        let gone = |params: &mut CertificateParams| params.not_after = params.not_before;
        for (cert, why) in [
            (cert(&other, |_| {}), "is not the certificate of the key beside it"),
            (cert(&key, |params| params.is_ca = IsCa::ExplicitNoCa), "is not the certificate of an authority"),
            (cert(&key, gone), "is not valid at this time"),
            (String::new(), "is not a certificate"),
        ] {
            let said = opened(&cert, &key);
            assert!(said.contains(why) && said.contains("ca.crt") && said.contains("remove it"), "{said}");
        }
    }

    #[test]
    fn an_authority_is_kept() {
        let dir = harness::tempdir();
        let made = Authority::open(&dir.path().join("pki")).unwrap();
        assert_eq!(Authority::open(&dir.path().join("pki")).unwrap().cert, made.cert);
    }
}
