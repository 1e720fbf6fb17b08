//! The join token: one line with the controller's address, its authority and a single-use secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// What every token begins with; the number is the version of its form.
pub const PREFIX: &str = "EPHOR1.";

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Why a text is not a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a join token ({0}); ask for one with `ephor node token` and pass the whole line")]
pub struct TokenError(&'static str);

impl Token {
    /// Reads the line that `ephor node token` printed.
    ///
    /// # Errors
    /// Anything else, saying which part is wrong. The text itself is never repeated: it is a secret.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let body = text.trim().strip_prefix(PREFIX).ok_or(TokenError("it does not begin with EPHOR1."))?;
        let json = URL_SAFE_NO_PAD
            .decode(body.trim_end_matches('='))
            .map_err(|_| TokenError("a part of it is missing or was changed"))?;
        let token: Self =
            serde_json::from_slice(&json).map_err(|_| TokenError("it does not hold address, authority and secret"))?;
        if !token.authority.contains("BEGIN CERTIFICATE") {
            return Err(TokenError("its authority is not a certificate"));
        }
        Ok(token)
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| std::fmt::Error)?;
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_a_damaged_one_says_what_is_wrong() {
        let token = Token {
            address: "127.0.0.1:1".into(),
            authority: "-----BEGIN CERTIFICATE-----".into(),
            secret: "s".into(),
        };
        let text = token.to_string();
        assert_eq!(Token::parse(&format!("  {text}\n")), Ok(token));
        for (bad, why) in [("", "begin with"), (&text[..text.len() - 2], "not a join token"), ("EPHOR1.e30", "hold")] {
            assert!(Token::parse(bad).unwrap_err().to_string().contains(why), "{bad}");
        }
    }
}
