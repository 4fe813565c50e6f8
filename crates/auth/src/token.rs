//! Simple tokens: a random word and a number. Every member keeps them in memory, from the entry on that gave one out, so that a
//! user who has logged in at one member is known to all, real etcd among them. The number is that of the entry before it:
//! etcd asks for the index of what it has applied, and has not yet.
//!
//! **Invariant:** a token is known if and only if its user has used it within the time to live, and has neither been
//! deleted nor got another password since, and authentication has been on since.

use std::{collections::BTreeMap, time::Duration};

/// How often tokens that nobody uses any more are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

pub struct SimpleTokens {
    ttl: Duration,
    tokens: BTreeMap<String, Token>,
    swept: Duration,
}

struct Token {
    user: String,
    ends: Duration,
}

impl SimpleTokens {
    pub fn new(ttl: Duration) -> SimpleTokens {
        SimpleTokens { ttl, tokens: BTreeMap::new(), swept: Duration::ZERO }
    }

    /// The token that the entry at `index` gives out.
    pub fn assign(&mut self, now: Duration, user: &str, word: &str, index: u64) -> String {
        self.sweep(now);
        let token = format!("{word}.{}", index.saturating_sub(1));
        self.tokens.insert(token.clone(), Token { user: user.to_owned(), ends: now + self.ttl });
        token
    }

    /// Whose token it is, which lives longer by being used.
    pub fn user_of(&mut self, now: Duration, token: &str) -> Option<String> {
        let found = self.tokens.get_mut(token).filter(|found| now <= found.ends)?;
        found.ends = now + self.ttl;
        Some(found.user.clone())
    }

    /// All tokens of a user are void.
    pub fn forget_user(&mut self, user: &str) {
        self.tokens.retain(|_, token| token.user != user);
    }

    pub fn clear(&mut self) {
        self.tokens.clear();
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept) >= SWEEP_INTERVAL {
            self.tokens.retain(|_, token| now <= token.ends);
            self.swept = now;
        }
    }
}

/// The entry that gave out a token. `None` if it is no simple token.
pub fn index_of(token: &str) -> Option<u64> {
    let (word, index) = token.split_once('.')?;
    // As Go reads a number: digits alone.
    let is_number = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
    let before: u64 = (is_number && !word.contains('.')).then(|| index.parse().ok()).flatten()?;
    before.checked_add(1)
}

const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A word of 16 letters from random bytes; each letter as likely as any other. `None` if too many of the bytes are of no use.
pub fn word(random: &[u8]) -> Option<String> {
    let useful = random.iter().map(|byte| usize::from(byte & 63)).filter(|at| *at < LETTERS.len());
    let word: String = useful.take(16).map(|at| char::from(LETTERS[at])).collect();
    (word.len() == 16).then_some(word)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    const TTL: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_lives_as_long_as_it_is_used() {
        let mut tokens = SimpleTokens::new(TTL);
        let token = tokens.assign(at(0), "alice", "word", 8);
        assert_eq!((token.as_str(), index_of(&token)), ("word.7", Some(8)));
        for time in [0, 300, 600, 900] {
            assert_eq!(tokens.user_of(at(time), &token).as_deref(), Some("alice"), "at {time}");
        }
        assert_eq!(tokens.user_of(at(1201), &token), None);
        assert_eq!(tokens.user_of(at(1201), "word.8"), None);
        tokens.assign(at(1201), "bob", "other", 9);
        assert_eq!(tokens.len(), 1, "what has ended is not kept");
    }

    #[test]
    fn a_users_tokens_go_together() {
        let mut tokens = SimpleTokens::new(TTL);
        let of_alice = [tokens.assign(at(0), "alice", "a", 1), tokens.assign(at(0), "alice", "b", 2)];
        let of_bob = tokens.assign(at(0), "bob", "c", 3);
        tokens.forget_user("alice");
        assert!(of_alice.iter().all(|token| tokens.user_of(at(1), token).is_none()));
        assert_eq!(tokens.user_of(at(1), &of_bob).as_deref(), Some("bob"));
        tokens.clear();
        assert!(tokens.is_empty());
    }

    #[test_case("word.7" => Some(8); "a token")]
    #[test_case("word" => None; "no index")]
    #[test_case("word." => None; "an empty index")]
    #[test_case("word.+7" => None; "a sign")]
    #[test_case("word.7.8" => None; "two dots")]
    #[test_case("a.b.7" => None; "three parts")]
    #[test_case("word.18446744073709551615" => None; "the last number")]
    #[test_case("word.99999999999999999999" => None; "too large")]
    #[test_case("" => None; "nothing")]
    fn indexes(token: &str) -> Option<u64> {
        index_of(token)
    }

    #[test]
    fn words() {
        let all: Vec<u8> = (0..64).collect();
        assert_eq!(word(&all).as_deref(), Some("abcdefghijklmnop"));
        assert_eq!(word(&[255; 64]), None, "no letter is made of what would make some likelier");
        assert_eq!(word(&all[..15]), None);
    }
}
