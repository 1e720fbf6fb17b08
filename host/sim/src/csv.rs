//! Tables of comma-separated values with a header line: columns by name, errors by line.

use crate::line::BadLine;

/// Bytes of a bad field that an error shows.
const SHOWN: usize = 40;

/// One row: the fields of the columns that were asked for, in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its line in the file, from 1.
    pub line: u32,
    columns: &'a [&'a str],
    fields: Vec<&'a str>,
}

/// The rows of a table. Blank lines are passed over; other columns than those asked for are ignored.
///
/// # Errors
/// A column is missing, a row has another number of fields than the header, or something is quoted.
pub fn rows<'a>(text: &'a [u8], columns: &'a [&'a str]) -> Result<Vec<Row<'a>>, BadLine> {
    let mut places: Option<(Vec<usize>, usize)> = None;
    let mut rows = Vec::new();
    for (index, bytes) in text.split(|b| *b == b'\n').enumerate() {
        let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            continue;
        }
        let text = std::str::from_utf8(bytes).map_err(|_| BadLine::new(line, "it is not text"))?;
        if text.contains('"') {
            return Err(BadLine::new(line, "fields in quotes are not read; write them without"));
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let Some((places, width)) = &places else {
            places = Some((header(line, &fields, columns)?, fields.len()));
            continue;
        };
        if fields.len() != *width {
            let what = format!("it has {} fields where the header has {width}", fields.len());
            return Err(BadLine::new(line, what));
        }
        rows.push(Row { line, columns, fields: places.iter().map(|place| fields[*place]).collect() });
    }
    match (places, rows.is_empty()) {
        (None, _) => Err(BadLine::new(1, "the file is empty; a header line and one line for each entry belong here")),
        (Some(_), true) => Err(BadLine::new(1, "there is no line behind the header")),
        (Some(_), false) => Ok(rows),
    }
}

fn header(line: u32, fields: &[&str], columns: &[&str]) -> Result<Vec<usize>, BadLine> {
    let find = |column: &&str| {
        fields.iter().position(|field| field == column).ok_or_else(|| {
            let what = format!("the header has no column '{column}'; needed are {}", columns.join(", "));
            BadLine::new(line, what)
        })
    };
    columns.iter().map(find).collect()
}

impl<'a> Row<'a> {
    /// The text of the column with that place among those asked for.
    pub fn text(&self, column: usize) -> &'a str {
        self.fields[column]
    }

    /// The number of that column, within 0 and `most`. A fraction is rounded to a whole number.
    ///
    /// # Errors
    /// It is no such number.
    pub fn number(&self, column: usize, most: i64) -> Result<i64, BadLine> {
        let (name, text) = (self.columns[column], self.fields[column]);
        let shown = || text.chars().take(SHOWN).collect::<String>();
        let number = match text.parse::<i64>() {
            Ok(whole) => whole,
            Err(_) => match text.parse::<f64>() {
                // Saturates: what is too large is refused below.
                Ok(n) if n.is_finite() => n.round() as i64,
                _ => return Err(BadLine::new(self.line, format!("{name} is '{}', which is not a number", shown()))),
            },
        };
        if (0..=most).contains(&number) {
            return Ok(number);
        }
        Err(BadLine::new(self.line, format!("{name} is '{}'; it must be within 0 and {most}", shown())))
    }

    /// The same where the column may be empty.
    ///
    /// # Errors
    /// It is neither empty nor such a number.
    pub fn number_or_none(&self, column: usize, most: i64) -> Result<Option<i64>, BadLine> {
        if self.fields[column].is_empty() { Ok(None) } else { self.number(column, most).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        rows(text.as_bytes(), &["b", "a"]).and_then(|rows| rows[0].number(0, 9)).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_found_by_name() {
        let rows = rows(b"a,c,b\r\n\nx , y, 4.6\n", &["b", "a"]).unwrap();
        assert_eq!((rows.len(), rows[0].line, rows[0].text(1)), (1, 3, "x"));
        assert_eq!((rows[0].number(0, 9), rows[0].number_or_none(0, 9)), (Ok(5), Ok(Some(5))));
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, part) in [
            ("", "line 1: the file is empty"),
            ("a,b", "line 1: there is no line behind the header"),
            ("a,c\n1,2", "line 1: the header has no column 'b'"),
            ("a,b\n1,2\n1,2,3", "line 3: it has 3 fields where the header has 2"),
            ("a,b\n1,x", "line 2: b is 'x', which is not a number"),
            ("a,b\n1,nan", "line 2: b is 'nan', which is not a number"),
            ("a,b\n1,", "line 2: b is '', which is not a number"),
            ("a,b\n1,-1", "line 2: b is '-1'; it must be within 0 and 9"),
            ("a,b\n1,1e99", "line 2: b is '1e99'; it must be within 0 and 9"),
            ("a,b\n\"1\",2", "line 2: fields in quotes"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
        assert!(rows(b"a\n\xff", &["a"]).unwrap_err().to_string().contains("line 2: it is not text"));
    }
}
