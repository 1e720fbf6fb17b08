//! The cluster's certificate authority: made once, signs agents and the controller.

use super::role::MachineRole;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// Name in the controller's certificate; agents connect to it under this name, wherever it runs.
pub const CONTROLLER_NAME: &str = "controller.ephor";
/// Life of the authority.
const AUTHORITY_YEARS: i64 = 30;
/// Life of the controller's certificate; a start renews it.
const CONTROLLER_YEARS: i64 = 10;
/// Life of an agent's certificate.
const AGENT_YEARS: i64 = 1;
/// Certificates begin a little in the past, for clocks that are behind.
const SKEW: Duration = Duration::hours(1);
/// Bytes of a signing request: several times what any agent sends.
const REQUEST_BYTES: usize = 16 << 10;

/// Why there is no trust.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others may read the key.
    #[error("{} can be read by others (mode {mode:03o}); make it private with: chmod 600", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// One of the two files is missing.
    #[error("{} is missing beside its counterpart; restore both from a backup of the trust folder", path.display())]
    Half {
        /// The missing file.
        path: PathBuf,
    },
    /// Keys or certificates make no sense.
    #[error("{}: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rcgen::Error,
    },
    /// A signing request that is none.
    #[error("the certificate signing request is not one: {0}")]
    Request(String),
    /// A certificate could not be made.
    #[error("no certificate could be made: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// The authority with its key.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What a TLS server needs, as PEM.
pub struct ServerIdentity {
    /// Certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// Reads the authority of that folder, and makes it at the first start.
    ///
    /// # Errors
    /// See [`TrustError`]. An authority that is there is never replaced: its agents would be locked out.
    pub fn load_or_create(folder: &Path) -> Result<Self, TrustError> {
        let (certificate_file, key_file) = (folder.join("authority.pem"), folder.join("authority.key"));
        match (certificate_file.exists(), key_file.exists()) {
            (true, true) => Self::load(&certificate_file, &key_file),
            (false, false) => Self::create(folder, &certificate_file, &key_file),
            (true, false) => Err(TrustError::Half { path: key_file }),
            (false, true) => Err(TrustError::Half { path: certificate_file }),
        }
    }

    fn load(certificate_file: &Path, key_file: &Path) -> Result<Self, TrustError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| TrustError::Io { path, source }
        };
        let damaged = |path: &Path| {
            let path = path.to_owned();
            move |source| TrustError::Damaged { path, source }
        };
        let mode = fs::metadata(key_file).map_err(fail(key_file))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TrustError::Exposed { path: key_file.to_owned(), mode });
        }
        let certificate = fs::read_to_string(certificate_file).map_err(fail(certificate_file))?;
        let key = fs::read_to_string(key_file).map_err(fail(key_file))?;
        let key = KeyPair::from_pem(&key).map_err(damaged(key_file))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).map_err(damaged(certificate_file))?;
        Ok(Self { certificate, issuer })
    }

    fn create(folder: &Path, certificate_file: &Path, key_file: &Path) -> Result<Self, TrustError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name("Ephor cluster authority", "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_life(&mut params, AUTHORITY_YEARS);
        let certificate = params.self_signed(&key)?.pem();
        let io = |path: &Path, source| TrustError::Io { path: path.to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| io(folder, e))?;
        write_new(key_file, 0o600, key.serialize_pem().as_bytes()).map_err(|e| io(key_file, e))?;
        write_new(certificate_file, 0o644, certificate.as_bytes()).map_err(|e| io(certificate_file, e))?;
        fs::File::open(folder).and_then(|f| f.sync_all()).map_err(|e| io(folder, e))?;
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Its certificate as PEM: what agents trust, and nothing else.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A fresh certificate for the controller.
    ///
    /// # Errors
    /// The key could not be made.
    pub fn controller_identity(&self) -> Result<ServerIdentity, TrustError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(vec![CONTROLLER_NAME.to_owned()])?;
        params.distinguished_name = distinguished_name(CONTROLLER_NAME, MachineRole::Controller.unit());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_life(&mut params, CONTROLLER_YEARS);
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(ServerIdentity { certificate, key: key.serialize_pem() })
    }

    /// Signs the key of a request under that name and role. Whatever else the request asks for is ignored.
    ///
    /// # Errors
    /// It is no signing request, or its signature does not fit its key.
    pub fn sign(&self, request: &str, name: &str, role: MachineRole) -> Result<String, TrustError> {
        let request = read_request(request)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name(name, role.unit());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        set_life(&mut params, AGENT_YEARS);
        Ok(params.signed_by(&request.public_key, &self.issuer)?.pem())
    }
}

/// Reads a signing request and checks that its sender holds the key.
///
/// # Errors
/// In words.
pub(super) fn read_request(request: &str) -> Result<CertificateSigningRequestParams, TrustError> {
    if request.len() > REQUEST_BYTES {
        return Err(TrustError::Request(format!("it has {} bytes, more than {REQUEST_BYTES}", request.len())));
    }
    CertificateSigningRequestParams::from_pem(request).map_err(|e| TrustError::Request(e.to_string()))
}

fn distinguished_name(name: &str, unit: &str) -> DistinguishedName {
    let mut dn = DistinguishedName::new();
    dn.push(DnType::CommonName, name);
    dn.push(DnType::OrganizationalUnitName, unit);
    dn
}

fn set_life(params: &mut CertificateParams, years: i64) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - SKEW;
    params.not_after = now + Duration::days(366 * years);
}

fn write_new(path: &Path, mode: u32, content: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::super::role::read_machine;
    use super::*;

    fn request(params: &CertificateParams) -> String {
        params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
    }

    #[test]
    fn an_authority_is_made_once_and_kept_private() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("trust");
        let first = Authority::load_or_create(&folder).unwrap();
        let again = Authority::load_or_create(&folder).unwrap();
        assert_eq!(first.certificate(), again.certificate());
        let key = folder.join("authority.key");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Authority::load_or_create(&folder), Err(TrustError::Exposed { .. })));
        fs::remove_file(&key).unwrap();
        assert!(matches!(Authority::load_or_create(&folder), Err(TrustError::Half { .. })));
    }

    #[test]
    fn name_and_role_come_from_the_authority_alone() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::load_or_create(dir.path()).unwrap();
        // Asks to be the controller, and an authority of its own.
        let mut params = CertificateParams::new(vec![CONTROLLER_NAME.to_owned()]).unwrap();
        params.distinguished_name = distinguished_name(CONTROLLER_NAME, "controller");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = authority.sign(&request(&params), "n1", MachineRole::Agent).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let machine = read_machine(&pem.contents).unwrap();
        assert_eq!((machine.name.as_str(), machine.role), ("n1", MachineRole::Agent));
        let certificate = pem.parse_x509().unwrap();
        assert!(!certificate.is_ca());
        assert!(certificate.subject_alternative_name().unwrap().is_none());
        assert!(!certificate.extended_key_usage().unwrap().unwrap().value.server_auth);
    }

    #[test]
    fn requests_that_are_none_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::load_or_create(dir.path()).unwrap();
        let good = request(&CertificateParams::default());
        let half = &good[..good.len() / 2];
        for bad in ["", "x", half, &"A".repeat(20_000)] {
            let error = authority.sign(bad, "n1", MachineRole::Agent).unwrap_err();
            assert!(matches!(error, TrustError::Request(_)), "{error}");
        }
    }
}
