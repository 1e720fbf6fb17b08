//! HMAC-SHA256 (RFC 2104) over cached files. By hand on `sha2`: the `hmac` crate would change the features that
//! wasmtime's own dependencies are built with.

use sha2::{Digest, Sha256};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
const BLOCK: usize = 64;
const MAC_BYTES: usize = 32;

/// A secret key.
pub struct Key([u8; KEY_BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A key.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// What stands before the content in a file of that name.
    pub fn seal(&self, name: &str, content: &[u8]) -> [u8; MAC_BYTES] {
        mac(&self.0, &[name.as_bytes(), b"\0", content])
    }

    /// The content of a file of that name, if it was sealed with this key.
    pub fn open<'a>(&self, name: &str, file: &'a [u8]) -> Option<&'a [u8]> {
        let (found, content) = file.split_at_checked(MAC_BYTES)?;
        let wanted = self.seal(name, content);
        // Without an early end, so that time tells nothing of how much was right.
        let difference = found.iter().zip(&wanted).fold(0, |all, (a, b)| all | (a ^ b));
        (difference == 0).then_some(content)
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    let mut block = [0; BLOCK];
    match key.len() {
        0..=BLOCK => block[..key.len()].copy_from_slice(key),
        _ => block[..MAC_BYTES].copy_from_slice(&Sha256::digest(key)),
    }
    let mut inner = Sha256::new_with_prefix(block.map(|b| b ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    Sha256::new_with_prefix(block.map(|b| b ^ 0x5c)).chain_update(inner.finalize()).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ephor_model::Digest as Hex;

    #[test]
    fn the_test_cases_of_rfc_4231() {
        let hex = |bytes| Hex(bytes).to_string();
        assert_eq!(
            hex(mac(&[0x0b; 20], &[b"Hi ", b"There"])),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hex(mac(b"Jefe", &[b"what do ya want for nothing?"])),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(mac(&[0xaa; 131], &[b"Test Using Larger Than Block-Size Key - Hash Key First"])),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_file_opens_under_its_own_name_and_key_only() {
        let key = Key::new([7; KEY_BYTES]);
        let file = [&key.seal("a", b"code")[..], b"code"].concat();
        assert_eq!(key.open("a", &file), Some(&b"code"[..]));
        assert_eq!(key.open("b", &file), None);
        assert_eq!(Key::new([8; KEY_BYTES]).open("a", &file), None);
        assert_eq!(key.open("a", &file[..20]), None);
    }
}
