//! Node features that a job asks for.

/// Reads `a&b`.
pub fn parse(text: &str) -> Result<Vec<String>, String> {
    if let Some(operator) = text.chars().find(|c| "|[](),*!{}".contains(*c)) {
        return Err(format!(
            "'{text}' uses '{operator}', which constraints cannot do yet; only features that all nodes must have work, \
             such as a100&nvlink"
        ));
    }
    let features: Vec<String> = text.split('&').map(|f| f.trim().to_owned()).collect();
    if features.iter().any(String::is_empty) {
        return Err(format!("'{text}' is not a constraint; write features with & between them, such as a100&nvlink"));
    }
    Ok(features)
}
