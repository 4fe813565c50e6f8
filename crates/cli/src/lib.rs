//! What `lockgatectl` and `lockgateutl` share: flags, errors and output as Go programs have them, because scripts know those
//! of etcdctl and etcdutl.

pub mod flag;
mod quote;
mod table;
pub mod value;

pub use self::{
    quote::{quote, unquote_prefix},
    table::Table,
};

/// A size with two significant digits and decimal units: `20 kB`, `2.1 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 10 {
        return format!("{bytes} B");
    }
    let exponent = bytes.ilog10() / 3;
    let value = (bytes as f64 / 1000f64.powi(exponent as i32) * 10.0 + 0.5).floor() / 10.0;
    let unit = UNITS[exponent as usize];
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case(0 => "0 B")]
    #[test_case(9 => "9 B")]
    #[test_case(999 => "999 B")]
    #[test_case(1000 => "1.0 kB")]
    #[test_case(20480 => "20 kB")]
    #[test_case(2147483648 => "2.1 GB")]
    #[test_case(u64::MAX => "18 EB")]
    fn sizes(bytes: u64) -> String {
        super::size(bytes)
    }
}
