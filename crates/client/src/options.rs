//! How a client connects: time limits, keep-alive, message sizes, and as whom.

use std::time::Duration;

use crate::{User, login::Credentials};

/// Settings for [`Client::connect`](crate::Client::connect). The defaults are those of etcd's Go client.
///
/// ```
/// use std::time::Duration;
/// let options = client::ConnectOptions::new().request_timeout(Duration::from_secs(5)).keep_alive(Duration::from_secs(10), Duration::from_secs(3));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Time limit for one connection attempt to one endpoint.
    pub dial_timeout: Duration,
    /// Time limit for a call with all its retries; `None` waits without limit.
    pub request_timeout: Option<Duration>,
    /// A ping is sent after this time without traffic while calls are in progress. At least 10 s
    /// are used, because servers disconnect clients that ping more often than every 5 s. `None`
    /// sends no pings.
    pub keep_alive_time: Option<Duration>,
    /// Time to wait for the response to a ping before the connection is closed.
    pub keep_alive_timeout: Duration,
    /// The largest request in bytes. A larger one fails with [`crate::Code::ResourceExhausted`] and
    /// is not sent.
    pub send_bytes_max: usize,
    /// The largest response in bytes. A larger one fails with [`crate::Code::ResourceExhausted`].
    pub recv_bytes_max: usize,
    /// The most attempts of a call that may be repeated. While no connection can be made, a call is
    /// retried beyond this limit, until its timeout.
    pub attempts_max: u32,
    pub(crate) credentials: Option<Credentials>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            dial_timeout: Duration::from_secs(2),
            request_timeout: None,
            keep_alive_time: None,
            keep_alive_timeout: Duration::from_secs(6),
            send_bytes_max: 2 * 1024 * 1024,
            recv_bytes_max: i32::MAX as usize,
            attempts_max: 100,
            credentials: None,
        }
    }
}

impl ConnectOptions {
    /// Returns the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`ConnectOptions::dial_timeout`].
    pub fn dial_timeout(mut self, timeout: Duration) -> Self {
        self.dial_timeout = timeout;
        self
    }

    /// Sets [`ConnectOptions::request_timeout`].
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Turns pings on: sets [`ConnectOptions::keep_alive_time`] and
    /// [`ConnectOptions::keep_alive_timeout`].
    pub fn keep_alive(mut self, time: Duration, timeout: Duration) -> Self {
        self.keep_alive_time = Some(time);
        self.keep_alive_timeout = timeout;
        self
    }

    /// Sets the user to log in as. The client logs in before the first call, and again when the
    /// servers reject its token. If authentication is off, calls go without a token. With an empty
    /// name or password there is no login.
    pub fn user(mut self, user: User) -> Self {
        self.credentials = Some(Credentials::Password(user));
        self
    }

    /// Sets a token from another source, such as a JWT, to send instead of logging in.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.credentials = Some(Credentials::Token(token.into()));
        self
    }

    /// Sets [`ConnectOptions::send_bytes_max`].
    pub fn send_bytes_max(mut self, bytes: usize) -> Self {
        self.send_bytes_max = bytes;
        self
    }

    /// Sets [`ConnectOptions::recv_bytes_max`].
    pub fn recv_bytes_max(mut self, bytes: usize) -> Self {
        self.recv_bytes_max = bytes;
        self
    }
}
