//! Values as bytes: a version byte, then postcard.

use serde::{Deserialize, Serialize};

/// Version of every value that is written now.
const VERSION: u8 = 1;

/// Writes a value. Cannot fail: the records hold no maps of unknown length and no foreign serialisers.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let out = vec![VERSION];
    // Proof: postcard into a growing vector fails only on sequences of unknown length, and every sequence of the
    // records is a slice, a vector or a string.
    postcard::to_extend(value, out).expect("records have sequences of known length only")
}

/// Reads a value back.
///
/// # Errors
/// Another version, or bytes that are none; in words.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    match take(bytes)? {
        (value, []) => Ok(value),
        (_, rest) => Err(format!("{} bytes follow the value", rest.len())),
    }
}

/// Reads a value whose fields are the first ones of what is stored.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_start<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    take(bytes).map(|(value, _)| value)
}

fn take<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), String> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => postcard::take_from_bytes(rest).map_err(|e| e.to_string()),
        Some((version, _)) => Err(format!("version {version} of a value is not known here")),
        None => Err("a value is empty".into()),
    }
}

/// Appends a row to a piece of a checkpoint.
pub(crate) fn push_row(piece: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    for part in [key, value] {
        // Keys and rows are far below 4 GiB: requests, texts and names all have limits.
        piece.extend_from_slice(&(part.len() as u32).to_le_bytes());
        piece.extend_from_slice(part);
    }
}

/// Takes the next row off a piece of a checkpoint: key and value; `None`: its bytes make no sense.
pub(crate) fn next_row<'a>(piece: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut part = || {
        let (length, rest) = piece.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        *piece = rest;
        Some(part)
    };
    Some((part()?, part()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_say_their_version_and_end_where_they_end() {
        let bytes = encode(&(7u64, "a\0'\"\n"));
        assert_eq!(decode::<(u64, String)>(&bytes), Ok((7, "a\0'\"\n".to_owned())));
        assert_eq!(decode_start::<u64>(&bytes), Ok(7));
        assert!(decode::<u64>(&bytes).unwrap_err().contains("follow"));
        assert!(decode::<u64>(&[9, 1]).unwrap_err().contains("version 9"));
        assert!(decode::<u64>(&[]).is_err());
    }

    #[test]
    fn rows_come_off_a_piece_as_they_went_on() {
        let mut piece = Vec::new();
        push_row(&mut piece, b"k", b"");
        push_row(&mut piece, b"", b"value");
        let mut rest = piece.as_slice();
        assert_eq!(next_row(&mut rest), Some((&b"k"[..], &b""[..])));
        assert_eq!(next_row(&mut rest), Some((&b""[..], &b"value"[..])));
        assert_eq!(next_row(&mut rest), None);
        assert_eq!(next_row(&mut &piece[..7]), None);
    }
}
