//! Addresses and networks.

use std::{fmt, net::IpAddr};

use super::{GLOBAL, MEMBER, Row, mismatch};
use crate::cel::{Error, Meter, value::Value};

type Result<'a> = std::result::Result<Value<'a>, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Cidr {
    fn parse(text: &str) -> std::result::Result<Cidr, Error> {
        let failed = |why: &str| {
            Error::other(format!(
                "network address parse error during conversion from string: netip.ParsePrefix({text:?}): {why}"
            ))
        };
        let (address, bits) = text.split_once('/').ok_or_else(|| failed("no '/'"))?;
        let address = parse_ip(address).map_err(|_| failed("ParseAddr: unable to parse IP"))?;
        let plain =
            !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
        let bits = bits.parse::<u8>().ok().filter(|bits| plain && *bits <= width(&address));
        Ok(Cidr { address, bits: bits.ok_or_else(|| failed("prefix length out of range"))? })
    }

    fn masked(&self) -> Cidr {
        let shift = u32::from(width(&self.address) - self.bits);
        let address = match self.address {
            IpAddr::V4(address) => IpAddr::V4((u32::from(address) & u32::MAX.checked_shl(shift).unwrap_or(0)).into()),
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) & u128::MAX.checked_shl(shift).unwrap_or(0)).into()),
        };
        Cidr { address, bits: self.bits }
    }

    fn has(&self, other: &Cidr) -> bool {
        let same_family = self.address.is_ipv4() == other.address.is_ipv4();
        same_family && self.bits <= other.bits && Cidr { bits: self.bits, ..*other }.masked() == self.masked()
    }
}

pub(super) const ROWS: &[Row] = &[
    ("ip", GLOBAL, "string", "net.IP", |args, _| match args {
        [Value::String(text)] => Ok(Value::Ip(parse_ip(text)?)),
        _ => mismatch(),
    }),
    ("isIP", GLOBAL, "string", "bool", |args, _| match args {
        [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
        _ => mismatch(),
    }),
    ("ip.isCanonical", GLOBAL, "string", "bool", |args, _| match args {
        [Value::String(text)] => Ok(Value::Bool(parse_ip(text)?.to_string() == **text)),
        _ => mismatch(),
    }),
    ("family", MEMBER, "net.IP", "int", |args, _| match args {
        [Value::Ip(address)] => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        _ => mismatch(),
    }),
    ("isUnspecified", MEMBER, "net.IP", "bool", |args, _| test(args, IpAddr::is_unspecified)),
    ("isLoopback", MEMBER, "net.IP", "bool", |args, _| test(args, IpAddr::is_loopback)),
    ("isLinkLocalMulticast", MEMBER, "net.IP", "bool", |args, _| test(args, is_link_local_multicast)),
    ("isLinkLocalUnicast", MEMBER, "net.IP", "bool", |args, _| test(args, is_link_local)),
    ("isGlobalUnicast", MEMBER, "net.IP", "bool", |args, _| test(args, is_global)),
    ("cidr", GLOBAL, "string", "net.CIDR", |args, _| match args {
        [Value::String(text)] => Ok(Value::Cidr(Cidr::parse(text)?)),
        _ => mismatch(),
    }),
    ("isCIDR", GLOBAL, "string", "bool", |args, _| match args {
        [Value::String(text)] => Ok(Value::Bool(Cidr::parse(text).is_ok())),
        _ => mismatch(),
    }),
    ("containsIP", MEMBER, "net.CIDR string", "bool", contains_ip),
    ("containsIP", MEMBER, "net.CIDR net.IP", "bool", contains_ip),
    ("containsCIDR", MEMBER, "net.CIDR string", "bool", contains_cidr),
    ("containsCIDR", MEMBER, "net.CIDR net.CIDR", "bool", contains_cidr),
    ("ip", MEMBER, "net.CIDR", "net.IP", |args, _| match args {
        [Value::Cidr(cidr)] => Ok(Value::Ip(cidr.address)),
        _ => mismatch(),
    }),
    ("prefixLength", MEMBER, "net.CIDR", "int", |args, _| match args {
        [Value::Cidr(cidr)] => Ok(Value::Int(cidr.bits.into())),
        _ => mismatch(),
    }),
    ("masked", MEMBER, "net.CIDR", "net.CIDR", |args, _| match args {
        [Value::Cidr(cidr)] => Ok(Value::Cidr(cidr.masked())),
        _ => mismatch(),
    }),
];

fn width(address: &IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Without zones and without IPv4 in IPv6's clothes, as in Kubernetes.
fn parse_ip(text: &str) -> std::result::Result<IpAddr, Error> {
    let failed = |why: &str| Error::other(why.to_owned());
    let address = text.parse::<IpAddr>().map_err(|_| {
        failed(&format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
        ))
    })?;
    match address {
        IpAddr::V6(inner) if inner.to_ipv4_mapped().is_some() => {
            Err(failed(&format!("IPv4-mapped IPv6 address {text:?} is not allowed")))
        }
        _ => Ok(address),
    }
}

fn test<'a>(args: &[Value<'a>], fits: fn(&IpAddr) -> bool) -> Result<'a> {
    match args {
        [Value::Ip(address)] => Ok(Value::Bool(fits(address))),
        _ => mismatch(),
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

/// As Go means it: private addresses too.
fn is_global(address: &IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local(address)
}

fn contains_ip<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    let (cidr, address) = match args {
        [Value::Cidr(cidr), Value::String(text)] => (cidr, parse_ip(text)?),
        [Value::Cidr(cidr), Value::Ip(address)] => (cidr, *address),
        _ => return mismatch(),
    };
    Ok(Value::Bool(cidr.has(&Cidr { address, bits: width(&address) })))
}

fn contains_cidr<'a>(args: &[Value<'a>], _: &mut Meter) -> Result<'a> {
    let (cidr, other) = match args {
        [Value::Cidr(cidr), Value::String(text)] => (cidr, Cidr::parse(text)?),
        [Value::Cidr(cidr), Value::Cidr(other)] => (cidr, *other),
        _ => return mismatch(),
    };
    Ok(Value::Bool(cidr.has(&other)))
}
