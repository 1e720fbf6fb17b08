//! A disk in memory that remembers what was asked of it, can fail, and can lose power.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// One thing that was asked of the disk.
#[derive(Clone, Debug)]
pub enum Op {
    Write { offset: usize, data: Vec<u8> },
    Length(usize),
    Sync,
}

#[derive(Debug, Default)]
struct Inner {
    content: Vec<u8>,
    log: Vec<Op>,
    /// How many more changes succeed before all fail in this way.
    fault: Option<(u64, i32)>,
    fail_reads: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    pub fn with(content: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Inner { content, ..Inner::default() })))
    }

    pub fn content(&self) -> Vec<u8> {
        self.0.lock().unwrap().content.clone()
    }

    pub fn log(&self) -> Vec<Op> {
        self.0.lock().unwrap().log.clone()
    }

    /// How many changes were asked for.
    pub fn changes(&self) -> usize {
        self.0.lock().unwrap().log.len()
    }

    /// After `changes` more changes, every change fails with the error of that number.
    pub fn fail_after(&self, changes: u64, errno: i32) {
        self.0.lock().unwrap().fault = Some((changes, errno));
    }

    pub fn fail_reads(&self) {
        self.0.lock().unwrap().fail_reads = true;
    }

    fn change(&self, op: Op) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        if let Some((left, errno)) = &mut inner.fault {
            if *left == 0 {
                return Err(io::Error::from_raw_os_error(*errno));
            }
            *left -= 1;
        }
        match &op {
            Op::Write { offset, data } => {
                let end = offset + data.len();
                if inner.content.len() < end {
                    inner.content.resize(end, 0);
                }
                inner.content[*offset..end].copy_from_slice(data);
            }
            Op::Length(length) => inner.content.resize(*length, 0),
            Op::Sync => {}
        }
        inner.log.push(op);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().content.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.0.lock().unwrap();
        if inner.fail_reads {
            return Err(io::Error::from_raw_os_error(5));
        }
        let offset = offset as usize;
        let found = inner.content.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(Op::Length(length as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(Op::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Op::Write { offset: offset as usize, data: data.to_vec() })
    }
}

/// Numbers that look like chance and are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }
}

/// What is on the disk after the first changes of a log, and what may or may not be.
pub struct PowerCut {
    durable: Vec<u8>,
    pending: Vec<Op>,
}

impl PowerCut {
    pub fn new(content: Vec<u8>) -> Self {
        Self { durable: content, pending: Vec::new() }
    }

    /// Goes one change on.
    pub fn go_on(&mut self, op: &Op) {
        match op {
            Op::Sync => {
                for op in std::mem::take(&mut self.pending) {
                    apply(&mut self.durable, &op);
                }
            }
            op => self.pending.push(op.clone()),
        }
    }

    /// The disk as it may be when the power goes now: of each sector any version since the last sync, each
    /// independent of the others; about one in `keep` of them not the last one.
    pub fn cut(&self, dice: &mut Dice, keep: usize) -> Vec<u8> {
        let mut current = self.durable.clone();
        let mut lengths = vec![self.durable.len()];
        let mut sectors: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
        for op in &self.pending {
            apply(&mut current, op);
            match op {
                Op::Write { offset, data } => {
                    for sector in offset / SECTOR..(offset + data.len()).div_ceil(SECTOR) {
                        let end = ((sector + 1) * SECTOR).min(current.len());
                        sectors.entry(sector).or_default().push(current[sector * SECTOR..end].to_vec());
                    }
                }
                Op::Length(length) => lengths.push(*length),
                Op::Sync => {}
            }
        }
        let mut image = self.durable.clone();
        image.resize(lengths[dice.roll(lengths.len())], 0);
        for (sector, versions) in sectors {
            let version = match dice.roll(keep) {
                0 => dice.roll(versions.len() + 1),
                _ => versions.len(),
            };
            if let Some(data) = version.checked_sub(1).map(|v| &versions[v]) {
                let start = (sector * SECTOR).min(image.len());
                let end = (start + data.len()).min(image.len());
                image[start..end].copy_from_slice(&data[..end - start]);
            }
        }
        image
    }
}

fn apply(content: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write { offset, data } => {
            let end = offset + data.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset..end].copy_from_slice(data);
        }
        Op::Length(length) => content.resize(*length, 0),
        Op::Sync => {}
    }
}
