//! The join token: one line with the controller's address, its authority and a single-use secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ephor_model::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// What every token begins with; the number is the version of its form.
const PREFIX: &str = "EPHOR1.";

/// What a token says. It does not show in debug output: it is a secret.
#[derive(Serialize, Deserialize)]
pub struct Token {
    /// `host:port` of the controller.
    #[serde(rename = "a")]
    pub address: String,
    /// PEM of the only certificate authority to trust.
    #[serde(rename = "ca")]
    pub authority: String,
    /// Good for one join.
    #[serde(rename = "s")]
    pub secret: String,
}

impl Token {
    /// As `ephor node token` prints it. Empty where JSON cannot hold it: never, its fields are texts.
    pub fn to_line(&self) -> String {
        serde_json::to_vec(self).map(|json| format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))).unwrap_or_default()
    }

    /// Reads a token; `None`: it is none.
    pub fn parse(line: &str) -> Option<Self> {
        let body = line.trim().strip_prefix(PREFIX)?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A secret that nobody guesses: 256 random bits.
pub fn fresh_secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// What the state keeps of a secret.
pub fn secret_digest(secret: &str) -> Digest {
    Digest(Sha256::digest(secret.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_does_not_show() {
        let token = Token { address: "h:1".into(), authority: "PEM".into(), secret: fresh_secret() };
        let again = Token::parse(&token.to_line()).unwrap();
        assert_eq!(again.secret, token.secret);
        assert!(!format!("{again:?}").contains(&token.secret));
        assert_ne!(fresh_secret(), fresh_secret());
        assert!(Token::parse("EPHOR1.x").is_none() && Token::parse("").is_none());
    }
}
