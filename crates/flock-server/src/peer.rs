//! Who is at the other end of a connection, as far as the system tells.
//!
//! A proxy on this machine connects from loopback like any local program, and need not add a header that says so. On Linux the table
//! of connections names the user of each socket, and proxies have a user of their own.

use std::net::{IpAddr, SocketAddr};

/// The two ends of a connection.
#[derive(Copy, Clone, Debug)]
pub struct Peer {
    /// The client's.
    pub client: SocketAddr,
    /// Ours.
    pub server: SocketAddr,
}

/// One client, for counting: its address, of IPv6 the network of 64 bits, which belongs to one subscriber.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client(IpAddr);

impl Client {
    /// The client with this address.
    pub fn at(address: IpAddr) -> Client {
        Client(match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
            v4 => v4,
        })
    }
}

impl Peer {
    /// Whether the program at the other end of a loopback connection belongs to the user of this server; `None` where the system
    /// does not tell. A program that has hung up belongs to nobody.
    pub fn is_same_user(&self) -> Option<bool> {
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::MetadataExt;
            let table = if self.client.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
            let table = std::fs::read_to_string(table).ok()?;
            let own = std::fs::metadata("/proc/self").ok()?.uid();
            Some(user_of(&table, self.client, self.server) == Some(own))
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// The user of the socket that is at `local` and connected to `remote`, in a table of `/proc/net`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn user_of(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (local, remote) = (in_table(local), in_table(remote));
    table.lines().skip(1).find_map(|line| {
        // Number, local address, remote address, state, queues, timer, retransmits, user.
        let fields: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
        (fields.len() == 8 && fields[1] == local && fields[2] == remote).then(|| fields[7].parse().ok())?
    })
}

/// An address as the table has it: words of four bytes in the machine's order, in hexadecimal.
fn in_table(address: SocketAddr) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let words = bytes.chunks(4).map(|b| format!("{:08X}", u32::from_ne_bytes([b[0], b[1], b[2], b[3]])));
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn reads_the_table_of_connections() {
        // Lines of /proc/net/tcp: a listener of user 0, and both ends of a connection from user 33 to it.
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1EC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1664 1 0 100 0 0 10 0\n   \
             1: 0100007F:D9A4 0100007F:1EC6 01 00000000:00000000 00:00000000 00000000    33        0 5202 1 0 20 4 0 150 -1\n   \
             2: 0100007F:1EC6 0100007F:D9A4 01 00000000:00000000 00:00000000 00000000     0        0 5203 1 0 20 4 0 150 -1\n";
        let (client, server) = ("127.0.0.1:55716".parse().unwrap(), "127.0.0.1:7878".parse().unwrap());
        assert_eq!(user_of(table, client, server), Some(33));
        assert_eq!(user_of(table, server, client), Some(0));
        assert_eq!(user_of(table, "127.0.0.1:55717".parse().unwrap(), server), None);
        assert_eq!(in_table("[::1]:7878".parse().unwrap()), "00000000000000000000000001000000:1EC6");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_the_same_user() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(loopback) else { continue }; // no IPv6 here
            let server = listener.local_addr().unwrap();
            let stream = std::net::TcpStream::connect(server).unwrap();
            let client = stream.local_addr().unwrap();
            assert_eq!(Peer { client, server }.is_same_user(), Some(true));
            drop(stream);
        }
    }

    #[test]
    fn clients_by_address_and_by_network() {
        let client = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_ne!(client("10.0.0.2"), client("10.0.0.1"));
        assert_eq!(client("2001:db8:1:2::1"), client("2001:db8:1:2:ffff::"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
    }
}
