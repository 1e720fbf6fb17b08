//! Numbers and texts as a page shows them.

/// The text with what HTML would read otherwise written as entities.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// A number with as many places as it needs, thousands set apart by a thin space.
pub(super) fn number(value: f64) -> String {
    let text = match value.abs() {
        0.0 => "0".to_owned(),
        n if n >= 100.0 || (n >= 1.0 && n.fract() < 1e-9) => format!("{value:.0}"),
        n if n >= 10.0 => trim(&format!("{value:.1}")),
        n if n >= 0.01 => trim(&format!("{value:.2}")),
        _ => trim(&format!("{value:.4}")),
    };
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(w, r)| (w, r));
    let digits: Vec<char> = whole.chars().collect();
    let mut out = String::new();
    for (index, digit) in digits.iter().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 && digits[index - 1] != '-' && digits.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(*digit);
    }
    if rest.is_empty() { out } else { format!("{out}.{rest}") }
}

fn trim(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time as people say it: `35 s`, `12 min`, `3.4 h`, `2.1 d`.
pub(super) fn seconds(value: f64) -> String {
    match value {
        s if s < 120.0 => format!("{} s", number(s)),
        s if s < 2.0 * 3600.0 => format!("{} min", number(s / 60.0)),
        s if s < 2.0 * 86_400.0 => format!("{} h", number(s / 3600.0)),
        s => format!("{} d", number(s / 86_400.0)),
    }
}

/// A part of one in percent.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown: Vec<_> = [0.0, 1.0, 12.34, 0.126, 0.0004, 1234.0, 12_345.6].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "1", "12.3", "0.13", "0.0004", "1234", "12\u{202f}346"]);
        assert_eq!([30.0, 300.0, 9000.0, 300_000.0].map(seconds), ["30 s", "5 min", "2.5 h", "3.47 d"]);
        assert_eq!(escape("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
