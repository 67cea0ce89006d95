//! Questions to the kernel about a socket. A runtime hears of its peer only when it has nothing else to do.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::time::Duration;

/// Whether the peer has hung up. Bytes that nobody has read yet do not hide it on Linux.
pub fn has_hung_up(socket: impl AsFd) -> bool {
    #[cfg(target_os = "linux")]
    let hung_up = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let hung_up = PollFlags::HUP;
    let mut asked = [PollFd::new(&socket, hung_up)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok_and(|found| found > 0)
}

/// Whether there are bytes, an end or an error that nobody has read yet.
pub fn has_bytes(socket: impl AsFd) -> bool {
    let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(recv(socket, &mut [0; 1], look), Err(Errno::AGAIN))
}

/// Makes the socket end with a reset, so that its peer does not take a part for the whole.
pub fn reset_on_close(socket: impl AsFd) {
    let _else_it_closes = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}
