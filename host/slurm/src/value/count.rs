//! Counts: whole numbers, and numbers of nodes.

/// Reads a number of at least 1. `None`: it is not one.
pub fn positive(text: &str) -> Option<u32> {
    number(text).filter(|n| *n > 0)
}

/// Reads a whole number, with `k` or `m` for 1024 or 1024 times 1024 of it. `None`: it is not one.
pub fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let n: u32 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "" => Some(n),
        "k" | "K" => n.checked_mul(1 << 10),
        "m" | "M" => n.checked_mul(1 << 20),
        _ => None,
    }
}

/// Reads `MIN` or `MIN-MAX`; 0 is one node.
///
/// # Errors
/// Every other text, in Slurm's words.
pub fn nodes(text: &str) -> Result<(u32, u32), String> {
    let count =
        |part: &str| number(part).map(|n| n.max(1)).ok_or_else(|| format!("\"{part}\" is not a valid node count"));
    match text.split_once('-') {
        None => count(text).map(|n| (n, n)),
        Some((min, max)) => {
            let (min, max) = (count(min)?, count(max)?);
            match min <= max {
                true => Ok((min, max)),
                false => Err(format!("Maximum node count {max} is less than minimum node count {min}")),
            }
        }
    }
}

/// A number for each node, equal neighbours together: `4(x2),3`.
pub fn by_node(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|a, b| a == b).map(|run| match run {
        [only] => only.to_string(),
        run => format!("{}(x{})", run[0], run.len()),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_node() {
        assert_eq!(by_node(&[4, 4, 3, 4]), "4(x2),3,4");
    }

    #[test]
    fn numbers_of_nodes() {
        assert_eq!(nodes("2-4"), Ok((2, 4)));
        assert_eq!(nodes("1k"), Ok((1024, 1024)));
        assert_eq!(nodes("x").unwrap_err(), "\"x\" is not a valid node count");
        assert_eq!(nodes("1-15:4").unwrap_err(), "\"15:4\" is not a valid node count");
        assert_eq!(nodes("4-2").unwrap_err(), "Maximum node count 2 is less than minimum node count 4");
        assert_eq!(
            [positive("0"), positive("-1"), positive(""), positive("99999999999"), positive("3")],
            [None, None, None, None, Some(3)]
        );
    }
}
