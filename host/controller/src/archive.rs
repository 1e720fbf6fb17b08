//! The form of a backup: the files of a data folder one after the other, each behind a line with its name and length.
//!
//! `EPHOR-BACKUP-1`, then for each file `NAME LENGTH` and its bytes, then `end 0`, each line ended by a line feed. A
//! copy without its last line is not whole.

use std::io::{self, BufRead, BufReader, Read, Write};

/// First line.
pub(crate) const MAGIC: &str = "EPHOR-BACKUP-1\n";
/// Last line.
pub(crate) const END: &str = "end 0\n";
/// Files that a backup may hold, as paths in the data folder. The first two always are there.
pub(crate) const FILES: [&str; 4] = ["live.redb", "history.redb", "trust/authority.pem", "trust/authority.key"];
/// Bytes of a line: a name, a blank and a number.
const LINE_BYTES: u64 = 64;

/// The line before a file.
pub(crate) fn heading(name: &str, length: u64) -> String {
    format!("{name} {length}\n")
}

/// Reads a backup: `place` gives a writer for each file by its name.
///
/// # Errors
/// It is no backup, is cut off, names other files, or cannot be read or written.
pub(crate) fn unpack<W: Write>(
    from: impl Read,
    mut place: impl FnMut(&'static str) -> io::Result<W>,
) -> io::Result<Vec<&'static str>> {
    let bad = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let mut from = BufReader::new(from);
    if line(&mut from)? != MAGIC {
        return Err(bad("it does not begin as a backup does"));
    }
    let mut found = Vec::new();
    loop {
        let heading = line(&mut from)?;
        if heading == END {
            break;
        }
        let (name, length) = heading.trim_end().split_once(' ').ok_or_else(|| bad("it is cut off"))?;
        let name = FILES.into_iter().find(|known| *known == name).ok_or_else(|| bad("it names a file of no backup"))?;
        let length: u64 = length.parse().map_err(|_| bad("the length of a file is no number"))?;
        if found.contains(&name) {
            return Err(bad("it holds a file twice"));
        }
        let mut to = place(name)?;
        if io::copy(&mut from.by_ref().take(length), &mut to)? != length {
            return Err(bad("it is cut off"));
        }
        to.flush()?;
        found.push(name);
    }
    match FILES[..2].iter().all(|needed| found.contains(needed)) {
        true => Ok(found),
        false => Err(bad("it does not hold state and history")),
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut text = String::new();
    from.take(LINE_BYTES).read_line(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<(&'static str, usize)>> {
        let mut sizes = Vec::new();
        unpack(bytes, |name| {
            sizes.push((name, 0));
            Ok(Vec::new())
        })
        .map(|found| found.into_iter().map(|name| (name, 0)).collect())
    }

    #[test]
    fn only_whole_backups_are_taken() {
        let whole = format!("{MAGIC}live.redb 3\nabchistory.redb 0\n{END}");
        assert_eq!(read(whole.as_bytes()).unwrap(), [("live.redb", 0), ("history.redb", 0)]);
        for cut in 0..whole.len() {
            assert!(read(&whole.as_bytes()[..cut]).is_err(), "{cut}");
        }
        let evil = format!("{MAGIC}../x 1\na{END}");
        assert!(read(evil.as_bytes()).unwrap_err().to_string().contains("no backup"));
        let twice = format!("{MAGIC}live.redb 1\nalive.redb 1\nb{END}");
        assert!(read(twice.as_bytes()).unwrap_err().to_string().contains("twice"));
    }
}
