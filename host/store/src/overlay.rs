//! A file that is read and never written: what is written stays in memory. Lets a check repair what it looks at.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;

/// The file with what was written over it.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: File,
    over: Mutex<Over>,
}

#[derive(Debug)]
struct Over {
    length: u64,
    /// Length of the part of the file that still shows.
    visible: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    /// Puts the layer over a file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, over: Mutex::new(Over { length, visible: length, pages: BTreeMap::new() }) })
    }

    fn over(&self) -> MutexGuard<'_, Over> {
        // Nothing under this lock can panic half-way through a change.
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page as it is now.
    fn page(&self, over: &Over, number: u64) -> io::Result<Box<[u8]>> {
        if let Some(page) = over.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE as usize];
        let start = number * PAGE;
        let shown = over.visible.saturating_sub(start).min(PAGE) as usize;
        self.file.read_exact_at(&mut page[..shown], start)?;
        Ok(page.into_boxed_slice())
    }
}

/// Page number, place in the page and length for each page that a range touches.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let (mut at, end) = (offset, offset + length as u64);
    std::iter::from_fn(move || {
        let place = at % PAGE;
        let piece = (PAGE - place).min(end - at);
        let number = at / PAGE;
        at += piece;
        (piece > 0).then_some((number, place as usize, piece as usize))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.over().length)
    }

    fn read(&self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        let over = self.over();
        if offset + out.len() as u64 > over.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, place, length) in pieces(offset, out.len()) {
            let (piece, rest) = out.split_at_mut(length);
            piece.copy_from_slice(&self.page(&over, number)?[place..place + length]);
            out = rest;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut over = self.over();
        if length < over.length {
            over.visible = over.visible.min(length);
            over.pages.split_off(&length.div_ceil(PAGE));
            // The rest of the last page reads as zeros if the file grows again.
            let place = (length % PAGE) as usize;
            if place > 0
                && let Some(page) = over.pages.get_mut(&(length / PAGE))
            {
                page[place..].fill(0);
            }
        }
        over.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        let mut over = self.over();
        over.length = over.length.max(offset + data.len() as u64);
        for (number, place, length) in pieces(offset, data.len()) {
            let mut page = self.page(&over, number)?;
            let (piece, rest) = data.split_at(length);
            page[place..place + length].copy_from_slice(piece);
            over.pages.insert(number, page);
            data = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_written_shows_and_the_file_stays() {
        let mut file = tempfile::tempfile().unwrap();
        let before: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        file.write_all(&before).unwrap();
        let overlay = Overlay::new(file.try_clone().unwrap()).unwrap();
        overlay.write(4000, &[255; 5000]).unwrap();
        overlay.set_len(8500).unwrap();
        overlay.set_len(20_000).unwrap();
        let mut expected = before.clone();
        expected[4000..9000].fill(255);
        expected.truncate(8500);
        expected.resize(20_000, 0);
        let mut seen = vec![1; 20_000];
        overlay.read(0, &mut seen).unwrap();
        assert_eq!(seen, expected);
        assert!(overlay.read(19_999, &mut [0; 2]).is_err());
        let mut kept = vec![0; 10_000];
        file.read_exact_at(&mut kept, 0).unwrap();
        assert_eq!((kept, file.metadata().unwrap().len()), (before, 10_000));
    }
}
