//! The time by which a call has to end, as its client set it with `grpc-timeout`.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName};
use tokio::time::Sleep;
use tonic::{Code, Status};

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// By the protocol: at most eight digits and a unit.
const TEXT_BYTES: std::ops::RangeInclusive<usize> = 2..=9;

pub(super) struct Deadline {
    at: Instant,
    /// Made when the call first has to wait.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// The deadline of a call that began at `start`, if it has one.
    pub(super) fn of(headers: &HeaderMap, start: Instant) -> Result<Option<Deadline>, Status> {
        let Some(value) = headers.get(GRPC_TIMEOUT) else { return Ok(None) };
        let timeout = parse(value.as_bytes())
            .map_err(|why| Status::new(Code::Internal, format!("malformed grpc-timeout: {why}")))?;
        Ok(start.checked_add(timeout).map(|at| Deadline { at, sleep: None }))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.at.into())));
        sleep.as_mut().poll(cx)
    }
}

/// The status of a call whose deadline has passed.
pub(super) fn exceeded() -> Status {
    Status::new(Code::DeadlineExceeded, "context deadline exceeded")
}

/// Refusals are in the words of grpc-go.
fn parse(text: &[u8]) -> Result<Duration, String> {
    let shown = String::from_utf8_lossy(text);
    match text.len() {
        len if len < *TEXT_BYTES.start() => return Err(format!("transport: timeout string is too short: {shown:?}")),
        len if len > *TEXT_BYTES.end() => return Err(format!("transport: timeout string is too long: {shown:?}")),
        _ => {}
    }
    let unit_nanos: u64 = match text[text.len() - 1] {
        b'H' => 3_600_000_000_000,
        b'M' => 60_000_000_000,
        b'S' => 1_000_000_000,
        b'm' => 1_000_000,
        b'u' => 1_000,
        b'n' => 1,
        _ => return Err(format!("transport: timeout unit is not recognized: {shown:?}")),
    };
    let digits = &text[..text.len() - 1];
    let count =
        digits.iter().try_fold(0_u64, |n, digit| digit.is_ascii_digit().then(|| n * 10 + u64::from(digit - b'0')));
    let count = count.ok_or_else(|| {
        let digits = String::from_utf8_lossy(digits);
        format!("strconv.ParseUint: parsing {digits:?}: invalid syntax")
    })?;
    Ok(Duration::from_nanos(count.saturating_mul(unit_nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test_case::test_case("1n" => Ok(Duration::from_nanos(1)))]
    #[test_case::test_case("20u" => Ok(Duration::from_micros(20)))]
    #[test_case::test_case("300m" => Ok(Duration::from_millis(300)))]
    #[test_case::test_case("0S" => Ok(Duration::ZERO))]
    #[test_case::test_case("2M" => Ok(Duration::from_secs(120)))]
    #[test_case::test_case("3H" => Ok(Duration::from_secs(3 * 3600)))]
    #[test_case::test_case("99999999H" => Ok(Duration::from_nanos(u64::MAX)); "beyond 64 bits")]
    #[test_case::test_case("S" => Err("transport: timeout string is too short: \"S\"".to_owned()))]
    #[test_case::test_case("123456789S" => Err("transport: timeout string is too long: \"123456789S\"".to_owned()))]
    #[test_case::test_case("12s" => Err("transport: timeout unit is not recognized: \"12s\"".to_owned()))]
    #[test_case::test_case("-1S" => Err("strconv.ParseUint: parsing \"-1\": invalid syntax".to_owned()))]
    fn timeouts(text: &str) -> Result<Duration, String> {
        parse(text.as_bytes())
    }
}
