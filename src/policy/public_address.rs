//! Which addresses are out on the Internet, where nothing of ours answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public: IANA's special-purpose registry (RFC 6890 and its
/// successors), multicast and reserved space, and the address at which Azure's hosts serve the
/// machines on them.
const V4: [(Ipv4Addr, u32); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The only unicast space of IPv6 that is handed out. Loopback, unique local, link-local,
/// IPv4-mapped, IPv4-compatible, NAT64 and multicast addresses are outside of it.
const V6_GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What within that is not public: protocol assignments with Teredo, documentation, 6to4.
const V6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address is one of the public Internet's: not private, loopback, link-local (where
/// clouds serve metadata), shared, for documentation or multicast, in no notation that carries an
/// IPv4 address within an IPv6 one.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let bits = u32::from(v4);
            !V4.iter().any(|(network, length)| {
                let mask = u32::MAX << (32 - length);
                bits & mask == u32::from(*network)
            })
        }
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            let within = |(network, length): &(Ipv6Addr, u32)| {
                let mask = u128::MAX << (128 - length);
                bits & mask == u128::from(*network)
            };
            within(&V6_GLOBAL) && !V6.iter().any(within)
        }
    }
}

/// Networks that belong to whoever runs them: RFC 1918, RFC 6598, and unique local IPv6.
const PRIVATE_V4: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// Addresses within those at which clouds serve credentials to the machines on them.
const METADATA: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Whether an address is one of a private network, and not where a cloud serves metadata.
/// Loopback, link-local, multicast and unspecified addresses are neither public nor private.
pub fn is_private(address: IpAddr) -> bool {
    let within = match address {
        IpAddr::V4(v4) => PRIVATE_V4.iter().any(|(network, length)| {
            u32::from(v4) & (u32::MAX << (32 - length)) == u32::from(*network)
        }),
        IpAddr::V6(v6) => v6.is_unique_local(),
    };
    within && !METADATA.contains(&address)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The first and last address of every network, and their neighbors outside of it.
    #[test]
    fn networks_end_where_they_end() {
        for (network, length) in V4 {
            let first = u32::from(network);
            let last = first | u32::MAX.checked_shr(length).unwrap_or(0);
            assert_eq!(
                first & !(u32::MAX << (32 - length)),
                0,
                "{network}/{length}"
            );
            for inside in [first, last] {
                assert!(
                    !is_public(Ipv4Addr::from(inside).into()),
                    "{network}/{length}"
                );
            }
        }
        for (network, length) in V6 {
            let first = u128::from(network);
            let last = first | u128::MAX.checked_shr(length).unwrap_or(0);
            for inside in [first, last] {
                assert!(
                    !is_public(Ipv6Addr::from(inside).into()),
                    "{network}/{length}"
                );
            }
        }
    }

    #[test]
    fn private_is_neither_this_machine_nor_the_clouds() {
        for (text, private) in [
            ("10.0.0.5", true),
            ("172.16.0.1", true),
            ("172.31.255.255", true),
            ("192.168.1.1", true),
            ("100.64.0.1", true),
            ("fd00::1", true),
            ("1.1.1.1", false),
            ("172.32.0.1", false),
            ("100.100.100.200", false),
            ("fd00:ec2::254", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("::1", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("::", false),
            ("::ffff:10.0.0.5", false),
        ] {
            assert_eq!(is_private(text.parse().unwrap()), private, "{text}");
        }
    }

    #[test]
    fn every_class_of_address_has_an_answer() {
        for (text, public) in [
            ("1.1.1.1", true),
            ("8.8.8.8", true),
            ("9.255.255.255", true),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("126.255.255.255", true),
            ("128.0.0.0", true),
            ("168.63.129.15", true),
            ("169.253.255.255", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("192.0.1.0", true),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("10.0.0.5", false),
            ("100.100.100.200", false),
            ("127.0.0.1", false),
            ("168.63.129.16", false),
            ("169.254.169.254", false),
            ("172.31.255.255", false),
            ("192.0.0.192", false),
            ("192.0.2.1", false),
            ("192.168.1.1", false),
            ("198.19.255.255", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("224.0.0.1", false),
            ("239.255.255.255", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2001:4860:4860::8888", true),
            ("2001:200::1", true),
            ("3ffe::1", true),
            ("::", false),
            ("::1", false),
            ("::7f00:1", false),
            ("::ffff:1.1.1.1", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::101:101", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("1fff::1", false),
            ("2001::1", false),
            ("2001:2::1", false),
            ("2001:10::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::1", false),
            ("3fff::1", false),
            ("4000::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
        }
    }
}
