//! Where an upstream is: an address that the operator wrote, and which addresses of the network it may lead to.

use http::Uri;
use semel_core::address::{self, Invalid};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An upstream's address. Only an operator writes one; nothing that comes over the wire does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    uri: Uri,
    /// Whether a name may lead into the operator's own network.
    private: bool,
}

impl Target {
    pub fn parse(text: &str) -> Result<Target, Invalid> {
        Ok(Target { uri: address::parse(text)?, private: false })
    }

    /// Says that the name may lead to private addresses: a name server of the operator's own answers for it.
    pub fn with_private(mut self, private: bool) -> Target {
        self.private = private;
        self
    }

    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    pub fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// The name or the number, without brackets.
    pub fn host(&self) -> &str {
        address::host(&self.uri)
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    fn literal(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// Whether a connection to this address may be made, now that the name was resolved. Looking after resolving leaves
    /// nothing to a name server that answers differently the second time.
    pub fn allows(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        let refused = |why| Err(RefusedAddress { host: self.host().to_owned(), address, why });
        if self.literal() == Some(address) {
            return Ok(());
        }
        match AddressReach::of(address) {
            AddressReach::Public => Ok(()),
            AddressReach::Metadata => {
                refused("is where clouds keep credentials; only the number itself names it")
            }
            AddressReach::Private if self.private || is_own_network(self.host()) => Ok(()),
            AddressReach::Private => refused("is private; private = true allows it"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path may be a key, as those of webhooks are, and a query may carry one: neither is shown.
        write!(f, "{}://{}", self.uri.scheme_str().unwrap_or_default(), self.authority())
    }
}

/// A name leads where the operator did not say that it may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} leads to {address}, which {why}")]
pub struct RefusedAddress {
    host: String,
    address: IpAddr,
    why: &'static str,
}

/// Ordered by how far inside it leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AddressReach {
    Public,
    Private,
    Metadata,
}

impl AddressReach {
    fn of(address: IpAddr) -> AddressReach {
        match address {
            IpAddr::V4(address) => AddressReach::of_v4(address),
            IpAddr::V6(address) => {
                let inside = inside(address).into_iter().flatten().map(AddressReach::of_v4);
                inside.max().unwrap_or_else(|| AddressReach::of_v6(address))
            }
        }
    }

    fn of_v4(address: Ipv4Addr) -> AddressReach {
        /// Alibaba's; the others' lie in the link-local block.
        const METADATA: Ipv4Addr = Ipv4Addr::new(100, 100, 100, 200);
        let [first, second, ..] = address.octets();
        let shared = first == 100 && (64..128).contains(&second);
        let special = first == 0 || first >= 240 || address.is_multicast();
        if address.is_link_local() || address == METADATA {
            AddressReach::Metadata
        } else if address.is_private() || address.is_loopback() || shared || special {
            AddressReach::Private
        } else {
            AddressReach::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> AddressReach {
        /// Amazon's, inside the private block.
        const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
        // Where a network has translators of its own (RFC 8215), only it knows what lies behind them.
        let translated = address.segments()[..3] == [0x64, 0xff9b, 1];
        if address.is_unicast_link_local() || address == METADATA {
            AddressReach::Metadata
        } else if address.is_unique_local()
            || address.is_loopback()
            || address.is_unspecified()
            || address.is_multicast()
            || translated
        {
            AddressReach::Private
        } else {
            AddressReach::Public
        }
    }
}

/// The IPv4 addresses that an IPv6 address stands for: whoever carries it on unpacks them, and that is where it leads.
fn inside(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // Mapped, and compatible (deprecated) but for `::` and `::1`.
        [0, 0, 0, 0, 0, 0xffff, high, low] => [v4(high, low), None],
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        [0, 0, 0, 0, 0, 0, high, low] => [v4(high, low), None],
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [v4(high, low), None],
        // 6to4.
        [0x2002, high, low, ..] => [v4(high, low), None],
        // Teredo: its server, and the client with every bit turned.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            [v4(server_high, server_low), v4(!high, !low)]
        }
        _ => [None, None],
    }
}

/// Names that no public name server answers for: what they lead to is the operator's own.
fn is_own_network(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let own = ["localhost", "local", "internal", "lan", "home.arpa", "test", "intranet"];
    !host.contains('.') || own.iter().any(|suffix| host.ends_with(&format!(".{suffix}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_inside_only_where_the_operator_said_so() {
        let allows =
            |url: &str, address: &str| Target::parse(url).unwrap().allows(address.parse().unwrap()).is_ok();
        assert!(allows("https://mcp.example.com/", "93.184.216.34"));
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "::1",
            "fd12::1",
            "::ffff:10.0.0.1",
            "0.0.0.0",
            "100.64.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:1::1",
            "::10.0.0.1",
            "::127.0.0.1",
            // Teredo of the client 10.0.0.1, and of a server at 192.168.0.1.
            "2001:0:5db8:d822::f5ff:fffe",
            "2001:0:c0a8:1::a247:27dd",
        ] {
            assert!(!allows("https://mcp.example.com/", inside), "{inside}");
            assert!(allows("http://billing/", inside), "{inside}");
            assert!(allows("http://billing.internal/", inside), "{inside}");
            assert!(allows("http://localhost:1/", inside), "{inside}");
        }
        assert!(allows("http://127.0.0.1/", "127.0.0.1"));
        assert!(!allows("http://billing/", "169.254.169.254"));
        assert!(!allows("http://billing/", "fd00:ec2::254"));
        assert!(!allows("http://billing/", "100.100.100.200"));
        for metadata in ["64:ff9b::169.254.169.254", "2002:a9fe:a9fe::", "::169.254.169.254"] {
            assert!(!allows("http://billing/", metadata), "{metadata}");
        }
        for outside in
            ["64:ff9b::93.184.216.34", "2002:5db8:d822::1", "2001:0:5db8:d822::a247:27dd", "2600::1"]
        {
            assert!(allows("https://mcp.example.com/", outside), "{outside}");
        }
        assert!(allows("http://169.254.169.254/", "169.254.169.254"));
        let own = Target::parse("https://mcp.corp.example.com/").unwrap().with_private(true);
        assert!(own.allows("10.0.0.1".parse().unwrap()).is_ok());
        assert!(own.allows("169.254.169.254".parse().unwrap()).is_err());
    }

    #[test]
    fn what_is_shown_has_no_path_and_no_query() {
        assert_eq!(Target::parse("https://a.example/mcp?key=1").unwrap().to_string(), "https://a.example");
    }
}
