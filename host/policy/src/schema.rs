//! Holds a configuration against the JSON Schema in a policy's manifest.

use crate::error::LoadError;
use crate::manifest::Manifest;
use ephor_model::limits;
use jsonschema::PatternOptions;
use serde_json::Value;

/// Violations that one message lists.
const LISTED: usize = 20;
/// Bytes of a compiled pattern of a schema.
const PATTERN_BYTES: usize = 1 << 20;

/// Checks a configuration and gives it back as compact JSON text. An empty text is an empty object.
///
/// # Errors
/// It is too long, no JSON, or does not fit; the error lists each violation with its path. Or the schema is none.
pub fn check(manifest: &Manifest, config: &str) -> Result<String, LoadError> {
    if config.len() > limits::POLICY_CONFIG_BYTES {
        let text = format!("it has {} bytes; at most {} are taken", config.len(), limits::POLICY_CONFIG_BYTES);
        return Err(LoadError::ConfigText(text));
    }
    let config = if config.trim().is_empty() { "{}" } else { config };
    let config: Value =
        serde_json::from_str(config).map_err(|e| LoadError::ConfigText(format!("it is no JSON: {e}")))?;
    // The linear engine: a schema comes with a component, and a pattern must not be able to run for ever.
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let validator = jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .build(&Value::Object(manifest.schema.clone()))
        .map_err(|e| LoadError::Manifest(format!("schema: at '{}': {e}", e.instance_path())))?;
    let mut violations: Vec<String> = validator
        .iter_errors(&config)
        .take(LISTED + 1)
        .map(|e| match e.instance_path().as_str() {
            "" => short(&e.to_string()),
            path => format!("at {path}: {}", short(&e.to_string())),
        })
        .collect();
    if violations.is_empty() {
        return Ok(config.to_string());
    }
    if violations.len() > LISTED {
        violations.truncate(LISTED);
        violations.push("and more".to_owned());
    }
    Err(LoadError::Config { name: manifest.name.clone(), violations })
}

fn short(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(schema: Value) -> Manifest {
        let json = json!({
            "name": "a", "version": "1", "role": "scheduling", "summary": "Does it.", "packages": [], "imports": [],
            "schema": schema, "fuel": {"base": 1, "per_job": 0, "per_node": 0}, "memory_bytes": 65_536
        });
        Manifest::parse(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn each_violation_is_listed_with_its_path() {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {"window": {"type": "integer", "minimum": 1}, "deep": {"properties": {"x": {"type": "string"}}}}
        });
        let manifest = manifest(schema);
        assert_eq!(check(&manifest, " { \"window\" : 3 } ").unwrap(), "{\"window\":3}");
        assert_eq!(check(&manifest, "").unwrap(), "{}");
        let text = check(&manifest, r#"{"window": 0, "deep": {"x": 1}, "other": 2}"#).unwrap_err().to_string();
        for part in ["at /window: ", "at /deep/x: ", "other"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(check(&manifest, "{").unwrap_err().to_string().contains("no JSON"));
        assert!(check(&manifest, &" ".repeat(limits::POLICY_CONFIG_BYTES + 1)).is_err());
    }

    #[test]
    fn hostile_schemas_are_refused_or_harmless() {
        let remote = json!({"$ref": "http://example.com/schema.json"});
        assert!(check(&manifest(remote), "{}").unwrap_err().to_string().contains("schema"));
        let file = json!({"$ref": "file:///etc/passwd"});
        assert!(check(&manifest(file), "{}").is_err());
        let endless = json!({"$ref": "#"});
        let _ = check(&manifest(endless), "{}");
        let slow = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let config = format!("{{\"a\": \"{}b\"}}", "a".repeat(50_000));
        assert!(check(&manifest(slow), &config).is_err());
        let huge = json!({"properties": {"a": {"pattern": "(((a{1000}){1000}){1000})"}}});
        assert!(check(&manifest(huge), "{\"a\": \"a\"}").is_err());
    }
}
