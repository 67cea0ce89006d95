//! Where a server is, and the token that opens it.

use crate::http::client::Client;
use crate::http::target::Target;
use http::HeaderValue;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A server on another machine: its address, and a token that no message of ours shows.
#[derive(Clone)]
pub struct ServerAccess {
    pub(super) client: Client,
    pub(super) authorization: HeaderValue,
}

/// A setting that cannot be used. Nothing was asked.
#[derive(Debug, thiserror::Error)]
pub enum BadAccess {
    #[error("SEMEL_SERVER is not the address of a server: {0}")]
    Address(String),
    #[error(
        "SEMEL_SERVER is {0}: http would expose the token. Use https; http is allowed for this machine only."
    )]
    Plain(String),
    #[error("the token for SEMEL_SERVER is not one line of plain characters")]
    Token,
    #[error("SEMEL_SERVER_CA: {} cannot be read: {why}", file.display())]
    Unreadable { file: PathBuf, why: std::io::Error },
    #[error("SEMEL_SERVER_CA: {} has no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    #[error("{0}")]
    Client(#[from] crate::http::client::ClientError),
}

impl ServerAccess {
    /// `roots`: a file of the certificates that vouch for the server, instead of the machine's own.
    pub fn new(address: &str, token: &str, roots: Option<&Path>) -> Result<ServerAccess, BadAccess> {
        let bad = |why: &dyn fmt::Display| BadAccess::Address(why.to_string());
        // The operator wrote the address, so its name may lead into a network of their own.
        let target = Target::parse(address).map_err(|invalid| bad(&invalid))?.with_private(true);
        if target.uri().query().is_some() {
            return Err(bad(&"it has a query"));
        }
        if !target.is_tls() && !is_this_machine(target.host()) {
            return Err(BadAccess::Plain(target.to_string()));
        }
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| BadAccess::Token)?;
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadAccess::Token);
        }
        authorization.set_sensitive(true);
        let client = match roots.filter(|_| target.is_tls()) {
            None => Client::to(target)?,
            Some(file) => Client::trusting_only(target, read_roots(file)?)?,
        };
        Ok(ServerAccess { client, authorization })
    }
}

impl fmt::Display for ServerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.target().fmt(f)
    }
}

impl fmt::Debug for ServerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerAccess({self})")
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn read_roots(file: &Path) -> Result<RootCertStore, BadAccess> {
    let pem = std::fs::read(file).map_err(|why| BadAccess::Unreadable { file: file.to_owned(), why })?;
    let mut roots = RootCertStore::empty();
    let found: Vec<CertificateDer<'_>> =
        CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    roots.add_parsable_certificates(found);
    match roots.is_empty() {
        true => Err(BadAccess::NoCertificate(file.to_owned())),
        false => Ok(roots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_a_server_over_tls_or_on_this_machine_alone() {
        for good in [
            "http://127.0.0.1:7777",
            "http://[::1]:7777/",
            "http://localhost:1",
            "https://semel.example.com/a",
        ] {
            assert!(ServerAccess::new(good, "semel_1", None).is_ok(), "{good}");
        }
        for bad in [
            "http://semel.example.com",
            "http://10.0.0.1",
            "semel.example.com",
            "https://a?b=c",
            "https://u:p@a",
            "",
        ] {
            let refused = ServerAccess::new(bad, "semel_1", None).expect_err("it is refused").to_string();
            assert!(refused.contains("SEMEL_SERVER") && !refused.contains("semel_1"), "{bad}: {refused}");
        }
        for token in ["", "a b", "a\nb", "ä"] {
            let refused = ServerAccess::new("http://127.0.0.1", token, None);
            assert!(matches!(refused, Err(BadAccess::Token)), "{token:?}");
        }
        let access = ServerAccess::new("http://127.0.0.1:1/x", "semel_secret", None).expect("it is good");
        assert_eq!(format!("{access:?} {access}"), "ServerAccess(http://127.0.0.1:1) http://127.0.0.1:1");
    }
}
