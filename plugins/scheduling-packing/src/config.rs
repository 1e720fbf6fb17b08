//! The configuration: promises, and what a place is judged by.

use serde::Deserialize;

/// What a site may set; the manifest says what each means and its bounds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "Written")]
pub struct Config {
    /// How many waiting jobs are promised a start in each cycle.
    pub promises: u32,
    /// How many typical requests fragmentation is measured with.
    pub typical: usize,
    /// How many times its cost what is scarce counts.
    pub scarcity: i64,
    /// Worth of balance in thousandths of a GPU.
    pub balance: i64,
}

impl Default for Config {
    fn default() -> Self {
        Self { promises: 1, typical: 32, scarcity: 8, balance: 500 }
    }
}

/// The configuration as written, before its bounds are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    promises: u32,
    typical: u32,
    scarcity: u32,
    balance: u32,
}

impl Default for Written {
    fn default() -> Self {
        Self { promises: 1, typical: 32, scarcity: 8, balance: 500 }
    }
}

impl TryFrom<Written> for Config {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { promises, typical, scarcity, balance } = written;
        let bounds = [
            ("promises", promises, 0, 1000),
            ("typical", typical, 1, 256),
            ("scarcity", scarcity, 0, 1000),
            ("balance", balance, 0, 100_000),
        ];
        if let Some((name, n, least, most)) = bounds.into_iter().find(|(_, n, least, most)| n < least || n > most) {
            return Err(format!("{name} must be {least} to {most}, not {n}"));
        }
        Ok(Self { promises, typical: typical as usize, scarcity: scarcity.into(), balance: balance.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_defaults() {
        let parse = ephor_sdk::config::parse::<Config>;
        assert_eq!(parse(""), Ok(Config::default()));
        assert_eq!(parse(r#"{"promises": 0}"#).map(|c| c.promises), Ok(0));
        assert!(parse(r#"{"typical": 0}"#).unwrap_err().contains("typical must be 1 to 256"));
        assert!(parse(r#"{"typicals": 1}"#).unwrap_err().contains("typicals"));
    }

    #[test]
    fn the_schema_and_the_code_have_the_same_defaults() {
        let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
        assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
    }
}
