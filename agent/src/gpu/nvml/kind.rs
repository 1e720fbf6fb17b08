//! From the name of a product to the type that requests ask for.

/// Words that say who made it or for whom, not what it is.
const BRANDS: [&str; 5] = ["nvidia", "tesla", "quadro", "geforce", "graphics"];
/// Families whose models are numbers: both belong to the type.
const FAMILIES: [&str; 4] = ["rtx", "gtx", "titan", "gt"];

/// The type of a product: its model in small letters, such as `h100` for `NVIDIA H100 80GB HBM3` or `rtx4090` for
/// `NVIDIA GeForce RTX 4090`; of a MIG instance with its profile, such as `h100-1g.10gb`.
pub fn kind(name: &str) -> String {
    let name = name.to_lowercase();
    let (product, profile) = name.split_once(" mig ").map_or((name.as_str(), None), |(p, mig)| (p, Some(mig.trim())));
    let mut words = product.split_whitespace().filter(|word| !BRANDS.contains(word));
    let mut kind = words.next().unwrap_or("gpu").split('-').next().unwrap_or("gpu").to_owned();
    if FAMILIES.contains(&kind.as_str()) {
        kind.push_str(words.next().unwrap_or_default());
    }
    let mut kind = match profile {
        Some(profile) => format!("{kind}-{profile}"),
        None => kind,
    };
    kind.retain(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c));
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_the_model_without_brand_form_and_memory() {
        for (name, expected) in [
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("Tesla V100-SXM2-16GB", "v100"),
            ("NVIDIA GeForce RTX 4090", "rtx4090"),
            ("NVIDIA RTX A6000", "rtxa6000"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA GH200 480GB", "gh200"),
            ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "a100-1g.10gb"),
            ("", "gpu"),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
