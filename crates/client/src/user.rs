//! A name and a password.

use std::{fmt, fs, io, path::Path};

/// The credentials for a login. The debug format hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The password. If it is empty there is no login.
    pub password: String,
}

impl User {
    /// Returns the credentials of a user.
    pub fn new(name: impl Into<String>, password: impl Into<String>) -> User {
        User { name: name.into(), password: password.into() }
    }

    /// Reads the password from the first line of a file, so that it does not appear in the list of
    /// processes. An empty first line is an error.
    pub fn with_password_file(name: impl Into<String>, path: &Path) -> io::Result<User> {
        let text = fs::read_to_string(path)?;
        match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
            Some(password) => Ok(User::new(name, password)),
            None => Err(io::Error::other("its first line must be the password, and is empty")),
        }
    }
}

/// Secrets do not get into logs by way of their owner.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).field("password", &"…").finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let dir = harness::tempdir();
        let path = dir.path().join("password");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            User::with_password_file("alice", &path)
        };
        assert_eq!(read("secret\nmore\n").unwrap(), User::new("alice", "secret"));
        assert_eq!(read("secret").unwrap(), User::new("alice", "secret"));
        assert!(read("").is_err() && read("\nsecret\n").is_err());
        assert!(!format!("{:?}", User::new("alice", "secret")).contains("secret"));
    }
}
