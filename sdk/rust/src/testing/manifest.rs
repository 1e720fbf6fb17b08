//! What a manifest says, for tests that hold it against the code.

use serde_json::{Map, Value};

/// The configuration that the schema in a manifest describes as the default, as JSON text.
///
/// # Panics
/// Where the manifest is no JSON object with a `schema`, or a property has no default.
pub fn schema_defaults(manifest: &str) -> String {
    let manifest: Value = match serde_json::from_str(manifest) {
        Ok(manifest) => manifest,
        Err(why) => panic!("the manifest is no JSON: {why}"),
    };
    let Some(properties) = manifest["schema"]["properties"].as_object() else {
        panic!("the manifest has no schema with properties")
    };
    let default = |(name, property): (&String, &Value)| match property.get("default") {
        Some(value) => (name.clone(), value.clone()),
        None => panic!("the schema has no default for {name}"),
    };
    Value::Object(properties.iter().map(default).collect::<Map<_, _>>()).to_string()
}
