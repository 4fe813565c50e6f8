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
    /// How long one attempt to reach one endpoint may take.
    pub dial_timeout: Duration,
    /// How long a call may take with all its retries; `None` waits for ever.
    pub request_timeout: Option<Duration>,
    /// A ping goes out after this long without traffic while calls are under way; at least 10 s, because servers
    /// hang up on clients that ping more often than every 5 s.
    pub keep_alive_time: Option<Duration>,
    pub keep_alive_timeout: Duration,
    pub send_bytes_max: usize,
    pub recv_bytes_max: usize,
    /// Attempts for calls that may be repeated.
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
    pub fn new() -> Self {
        Self::default()
    }

    pub fn dial_timeout(mut self, timeout: Duration) -> Self {
        self.dial_timeout = timeout;
        self
    }

    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    pub fn keep_alive(mut self, time: Duration, timeout: Duration) -> Self {
        self.keep_alive_time = Some(time);
        self.keep_alive_timeout = timeout;
        self
    }

    /// Who to log in as. It happens before the first call, and again whenever the servers do not take the token any more;
    /// if they do not ask for users at all, calls go without. With an empty name or password there is no login.
    pub fn user(mut self, user: User) -> Self {
        self.credentials = Some(Credentials::Password(user));
        self
    }

    /// A token that was made elsewhere, such as a JWT, to send in place of logging in.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.credentials = Some(Credentials::Token(token.into()));
        self
    }

    pub fn send_bytes_max(mut self, bytes: usize) -> Self {
        self.send_bytes_max = bytes;
        self
    }

    pub fn recv_bytes_max(mut self, bytes: usize) -> Self {
        self.recv_bytes_max = bytes;
        self
    }
}
