//! The configuration of a policy: one serde struct, read once for each instance.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The configuration of a policy that has none: the empty object.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// Reads a configuration. An empty text is the default.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn parse<C: DeserializeOwned + Default>(json: &str) -> Result<C, String> {
    if json.trim().is_empty() {
        return Ok(C::default());
    }
    serde_json::from_str(json).map_err(|why| format!("the configuration does not fit this policy: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_is_the_default_and_an_unknown_field_an_error() {
        assert_eq!(parse::<NoConfig>(" \n"), Ok(NoConfig {}));
        assert_eq!(parse::<NoConfig>("{}"), Ok(NoConfig {}));
        let why = parse::<NoConfig>(r#"{"a": 1}"#).unwrap_err();
        assert!(why.contains("unknown field `a`"), "{why}");
    }
}
