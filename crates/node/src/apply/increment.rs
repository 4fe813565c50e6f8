//! Applying an addition to the number in a key.

use proto::etcdserverpb::{IncrementRequest, IncrementResponse, PutRequest};
use storage::Batch;

use super::{State, kv::Links, quota};
use crate::error::ApplyError;

/// Why a number stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncrementError {
    #[error("the value of the key is {0}, which is not a decimal number of 64 bits")]
    NotANumber(String),
    #[error("{value} plus {delta} is not a number of 64 bits")]
    Overflow { value: i64, delta: i64 },
    #[error("{sum} would be below the minimum {min}")]
    BelowMin { sum: i64, min: i64 },
    #[error("{sum} would be above the maximum {max}")]
    AboveMax { sum: i64, max: i64 },
}

impl State {
    /// A put of the sum: watchers, history, leases and quota see nothing but a put.
    pub(super) fn increment(
        &mut self,
        batch: &mut Batch<'_>,
        request: &IncrementRequest,
    ) -> Result<IncrementResponse, ApplyError> {
        if self.alarms.no_space() {
            return Err(ApplyError::NoSpace);
        }
        let fits = self.quota.fits(&self.backend, quota::increment_cost(request));
        let mut lessor = self.lessor.lock();
        let mut links = Links(&mut lessor);
        let mut txn = self.store.begin(batch, &mut links);
        let found = txn.get(&request.key)?;
        let value = sum(found.as_ref().map(|kv| &kv.value[..]), request).map_err(ApplyError::Increment)?;
        let created = found.is_none();
        let put = PutRequest {
            key: request.key.clone(),
            value: value.to_string().into(),
            // A key keeps the lease it has.
            ignore_lease: !created,
            ..Default::default()
        };
        let response = txn.put(&put)?;
        txn.end();
        // As with a put: the one that first goes over the quota is kept, and its sender is told.
        if fits { Ok(IncrementResponse { header: response.header, value, created }) } else { Err(ApplyError::NoSpace) }
    }
}

fn sum(found: Option<&[u8]>, request: &IncrementRequest) -> Result<i64, IncrementError> {
    let value = match found {
        None => request.initial,
        Some(bytes) => parse(bytes)?,
    };
    let delta = request.delta;
    let sum = value.checked_add(delta).ok_or(IncrementError::Overflow { value, delta })?;
    match (request.min, request.max) {
        (Some(min), _) if sum < min => Err(IncrementError::BelowMin { sum, min }),
        (_, Some(max)) if sum > max => Err(IncrementError::AboveMax { sum, max }),
        _ => Ok(sum),
    }
}

fn parse(value: &[u8]) -> Result<i64, IncrementError> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let shown: String = String::from_utf8_lossy(value).chars().take(32).collect();
        IncrementError::NotANumber(format!("{shown:?}"))
    })
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn request(delta: i64, min: Option<i64>, max: Option<i64>) -> IncrementRequest {
        IncrementRequest { key: "k".into(), delta, initial: 100, min, max }
    }

    #[test_case(None, request(1, None, None) => Ok(101); "a new key begins with the initial value")]
    #[test_case(Some("7"), request(-9, None, None) => Ok(-2); "a negative sum")]
    #[test_case(Some("-7"), request(0, None, None) => Ok(-7); "nothing is added")]
    #[test_case(Some("9223372036854775807"), request(1, None, None) => Err(IncrementError::Overflow { value: i64::MAX, delta: 1 }); "too large")]
    #[test_case(Some("9223372036854775808"), request(1, None, None) => Err(IncrementError::NotANumber("\"9223372036854775808\"".into())); "too large a value")]
    #[test_case(Some(""), request(1, None, None) => Err(IncrementError::NotANumber("\"\"".into())); "empty")]
    #[test_case(Some("1 "), request(1, None, None) => Err(IncrementError::NotANumber("\"1 \"".into())); "a space")]
    #[test_case(Some("3"), request(-4, Some(0), None) => Err(IncrementError::BelowMin { sum: -1, min: 0 }); "below the minimum")]
    #[test_case(Some("3"), request(-3, Some(0), None) => Ok(0); "at the minimum")]
    #[test_case(Some("3"), request(4, None, Some(6)) => Err(IncrementError::AboveMax { sum: 7, max: 6 }); "above the maximum")]
    #[test_case(None, request(1, None, Some(6)) => Err(IncrementError::AboveMax { sum: 101, max: 6 }); "a new key too")]
    fn adds(found: Option<&str>, request: IncrementRequest) -> Result<i64, IncrementError> {
        sum(found.map(str::as_bytes), &request)
    }
}
