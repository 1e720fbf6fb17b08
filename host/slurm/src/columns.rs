//! Columns of lists: format strings like `%.18i %t` and `Field:width`, headings, cutting and filling.

use crate::show::Shown;
use std::cmp::Ordering;

/// A column that a list can have.
#[derive(Clone, Copy)]
pub struct Column<R: 'static> {
    /// Its letter in a format string.
    pub code: Option<char>,
    /// Its name in a long format, in lower case.
    pub long: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// Its text in a row.
    pub value: fn(&R, &Shown) -> String,
}

/// How wide a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Characters to cut and fill to; `None`: as wide as its text.
    pub chars: Option<usize>,
    /// Filled on the left.
    pub right: bool,
}

/// One piece of a line.
#[derive(Clone)]
pub enum Piece<R: 'static> {
    /// It stands as it is in every line.
    Text(String),
    /// A column.
    Column(&'static Column<R>, Width),
}

/// A line's format, and what of it could not be understood.
pub struct Format<R: 'static> {
    /// The pieces.
    pub pieces: Vec<Piece<R>>,
    /// Letters and names that are no column.
    pub unknown: Vec<String>,
}

/// Widest column: a bound on what a format can make of a list.
const WIDEST: usize = 65_536;
/// How wide a column of a long format is that says nothing.
const LONG_WIDTH: usize = 20;

/// Reads `%[.][width]letter`, with text between.
pub fn short<R>(table: &'static [Column<R>], format: &str) -> Format<R> {
    let mut read = Format { pieces: Vec::new(), unknown: Vec::new() };
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let (right, sized) = after.strip_prefix('.').map_or((false, after), |sized| (true, sized));
        let digits = sized.bytes().take_while(u8::is_ascii_digit).count();
        let chars = sized[..digits].parse().ok().map(|n: usize| n.min(WIDEST));
        let mut letters = sized[digits..].chars();
        let letter = letters.next();
        match (letter, table.iter().find(|column| letter.is_some() && column.code == letter)) {
            (_, Some(column)) => {
                if !text.is_empty() {
                    read.pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                read.pieces.push(Piece::Column(column, Width { chars, right }));
                rest = letters.as_str();
            }
            (Some('%'), None) if digits == 0 && !right => {
                text.push('%');
                rest = letters.as_str();
            }
            (letter, None) => {
                read.unknown.extend(letter.map(String::from));
                text.push('%');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        read.pieces.push(Piece::Text(text));
    }
    read
}

/// Reads `Field[:[.][width][suffix]],...`: after a `:` without a width a column is as wide as its text.
pub fn long<R>(table: &'static [Column<R>], format: &str) -> Format<R> {
    let mut read = Format { pieces: Vec::new(), unknown: Vec::new() };
    for item in format.split(',').filter(|item| !item.is_empty()) {
        let (name, how) = item.split_once(':').map_or((item, None), |(name, how)| (name, Some(how)));
        let name = name.trim().to_ascii_lowercase();
        let Some(column) = table.iter().find(|column| column.long == name) else {
            read.unknown.push(item.split(':').next().unwrap_or_default().to_owned());
            continue;
        };
        let Some(how) = how else {
            read.pieces.push(Piece::Column(column, Width { chars: Some(LONG_WIDTH), right: false }));
            continue;
        };
        let (right, sized) = how.strip_prefix('.').map_or((false, how), |sized| (true, sized));
        let digits = sized.bytes().take_while(u8::is_ascii_digit).count();
        let chars = sized[..digits].parse().ok().map(|n: usize| n.min(WIDEST));
        read.pieces.push(Piece::Column(column, Width { chars, right }));
        if digits < sized.len() {
            read.pieces.push(Piece::Text(sized[digits..].to_owned()));
        }
    }
    read
}

/// The heading of a format.
pub fn heading<R>(pieces: &[Piece<R>]) -> String {
    line(pieces, |column| column.heading.to_owned())
}

/// One row in a format.
pub fn row<R>(pieces: &[Piece<R>], row: &R, shown: &Shown) -> String {
    line(pieces, |column| (column.value)(row, shown))
}

fn line<R>(pieces: &[Piece<R>], text: impl Fn(&Column<R>) -> String) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Column(column, width) => fit(&mut out, &text(column), *width),
        }
    }
    out
}

/// Cuts and fills a text.
fn fit(out: &mut String, text: &str, width: Width) {
    let Some(chars) = width.chars else { return out.push_str(text) };
    let cut: String = text.chars().take(chars).collect();
    let fill = " ".repeat(chars - cut.chars().count());
    match width.right {
        true => out.extend([fill, cut]),
        false => out.extend([cut, fill]),
    }
}

/// One key of an order: a column, and whether the largest comes first.
pub type SortKey<R> = (&'static Column<R>, bool);

/// Reads `-t,i,+P`: letters with a sign, commas or not between them.
///
/// # Errors
/// The letter that is no column.
pub fn order<R>(table: &'static [Column<R>], text: &str) -> Result<Vec<SortKey<R>>, char> {
    let mut keys = Vec::new();
    let mut descending = false;
    for c in text.chars() {
        match c {
            '-' => descending = true,
            '+' => descending = false,
            ',' | '#' | ' ' => {}
            _ => {
                let column = table.iter().find(|column| column.code == Some(c)).ok_or(c)?;
                keys.push((column, descending));
                descending = false;
            }
        }
    }
    Ok(keys)
}

/// Compares texts as people do: runs of digits by their number.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let number = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (in_a, in_b) = (number(a), number(b));
        if in_a > 0 && in_b > 0 {
            let (x, y) = (a[..in_a].trim_start_matches('0'), b[..in_b].trim_start_matches('0'));
            let by_number = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if by_number != Ordering::Equal {
                return by_number;
            }
            (a, b) = (&a[in_a..], &b[in_b..]);
            continue;
        }
        match (a.chars().next(), b.chars().next()) {
            (Some(x), Some(y)) if x == y => (a, b) = (&a[x.len_utf8()..], &b[y.len_utf8()..]),
            (x, y) => return x.cmp(&y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::TimeFormat;
    use ephor_model::{Span, Timestamp};

    const TABLE: &[Column<(u32, &'static str)>] = &[
        Column { code: Some('i'), long: "jobid", heading: "JOBID", value: |row, _| row.0.to_string() },
        Column { code: Some('j'), long: "name", heading: "NAME", value: |row, _| row.1.to_owned() },
    ];

    fn lines(format: Format<(u32, &'static str)>) -> String {
        let shown = Shown { now: Timestamp(0), offset: Span(0), times: TimeFormat::Iso };
        format!(
            "{}/{}/{}",
            heading(&format.pieces),
            row(&format.pieces, &(12, "größer"), &shown),
            format.unknown.join(" ")
        )
    }

    #[test]
    fn formats_cut_and_fill() {
        assert_eq!(lines(short(TABLE, "%.6i|%3j|%j%%")), " JOBID|NAM|NAME%/    12|grö|größer%/");
        assert_eq!(lines(short(TABLE, "a%zb%")), "a%zb%/a%zb%/z");
        assert_eq!(lines(long(TABLE, "JobID:.6,Name:,foo:3")), " JOBIDNAME/    12größer/foo");
        assert_eq!(lines(long(TABLE, "JobID:|,name:2x")), "JOBID|NAx/12|grx/");
        assert_eq!(lines(long(TABLE, "jobid")), format!("{:20}/{:20}/", "JOBID", "12"));
    }

    #[test]
    fn orders_and_numbers() {
        let keys = order(TABLE, "-i,+j").unwrap();
        assert_eq!(
            keys.iter().map(|(c, down)| (c.code, *down)).collect::<Vec<_>>(),
            [(Some('i'), true), (Some('j'), false)]
        );
        assert_eq!(order(TABLE, "x").err(), Some('x'));
        let mut ids = vec!["10", "9", "9_11", "9_2", "n010", "n9"];
        ids.sort_by(|a, b| natural(a, b));
        assert_eq!(ids, ["9", "9_2", "9_11", "10", "n9", "n010"]);
    }

    proptest::proptest! {
        #[test]
        fn no_format_makes_it_panic(text in "[%.0-9ijé:,z]{0,20}") {
            let _ = lines(short(TABLE, &text));
            let _ = lines(long(TABLE, &text));
        }
    }
}
