//! Where a server is found.

use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted; the system may allow fewer. Whoever finds no room is not told, and tries
/// again after a second: a fleet of agents that starts at once must find some.
const WAITING_MAX: u32 = 4_096;

/// Must be called within a runtime.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that is started again finds connections of the one before in their last minute.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Duration;

    /// Nobody accepts meanwhile, so a connection that found no room would wait in vain, however long.
    #[tokio::test]
    async fn a_fleet_that_comes_at_once_finds_room() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let connects = |_| TcpStream::connect_timeout(&address, Duration::from_secs(20));
        let fleet: Vec<_> = (0..300).map(connects).collect::<Result<_, _>>().unwrap();
        for _ in &fleet {
            listener.accept().await.unwrap();
        }
    }
}
