//! Problems of a server's certificate, in plain words.

use rustls::{CertificateError, Error};

/// Describes an error about a certificate; `None` for other errors.
pub fn complaint(error: &sqlx::Error) -> Option<String> {
    let inner: &(dyn std::error::Error + 'static) = match error {
        sqlx::Error::Io(io) => io.get_ref()?,
        sqlx::Error::Tls(inner) => inner.as_ref(),
        _ => return None,
    };
    let Error::InvalidCertificate(reason) = inner.downcast_ref::<Error>()? else { return None };
    Some(match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet: is the clock of this machine correct?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host: connect by the name that it was issued for".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "its issuer is unknown: name the issuer's certificate with sslrootcert=FILE".to_owned()
        }
        CertificateError::Revoked => "it was revoked".to_owned(),
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority, which issues certificates, not that of a server".to_owned()
        }
        other => other.to_string(),
    })
}
