//! The thread that looks after the GPUs, and what it makes of what it sees: which of them can no longer be relied on.

use super::Gpus;
use super::driver::{Driver, Incident, Reading};
use super::inventory::Known;
use super::wire;
use crate::facts::now_ms;
use crate::limits::{GPU_EVENTS, GPU_POLL_LEAST};
use anyhow::Context;
use ephor_model::{Span, Timestamp};
use ephor_proto::v1;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tokio::sync::watch::{Receiver, Sender, channel};

/// What is known of one GPU beside what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    pub reading: Reading,
    /// The last fatal thing that happened to it, with its time. It stays until the agent starts anew: what the GPU says
    /// of itself afterwards is no proof that it is well.
    pub struck: Option<String>,
    /// That it fell off the bus, with when it did so last. It stays, likewise.
    pub fell: Option<String>,
    /// What happened to it, newest last, with when.
    pub events: VecDeque<(i64, String)>,
}

impl Health {
    /// Why it can no longer be relied on; none: it can. The texts stay the same as long as the facts do.
    pub fn faults(&self, known: &Known) -> Vec<String> {
        let mut all: Vec<String> = known.absent.iter().chain(&self.struck).chain(&self.fell).cloned().collect();
        if let Some(rows) = self.reading.rows {
            if rows.failed {
                all.push("a bad row of its memory could not be replaced".into());
            }
            if rows.pending {
                all.push("a bad row of its memory is replaced at its next reset, which it waits for".into());
            }
        }
        match self.reading.ecc {
            Some((1, _)) => all.push("1 memory error could not be corrected since the driver was loaded".into()),
            Some((n @ 2.., _)) => {
                all.push(format!("{n} memory errors could not be corrected since the driver was loaded"));
            }
            _ => {}
        }
        all
    }

    fn note(&mut self, at: i64, what: String) {
        if self.events.len() == GPU_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((at, what));
    }
}

/// All that is known, by index.
#[derive(Debug)]
struct Book {
    node: String,
    source: String,
    notes: Vec<String>,
    known: Vec<Known>,
    health: Vec<Health>,
}

impl Book {
    fn read(&mut self, mut readings: BTreeMap<String, Reading>, at: i64) {
        for (known, health) in self.known.iter().zip(&mut self.health) {
            let Some(reading) = readings.remove(&known.found.uuid) else { continue };
            if reading.lost {
                if !health.reading.lost {
                    health.note(at, "fell off the bus".into());
                    health.fell = Some(format!("it fell off the bus ({})", when(at)));
                }
                // What it said before is all that is known of it.
                health.reading.lost = true;
                health.reading.processes.clear();
                continue;
            }
            if health.reading.slowed != reading.slowed && !reading.slowed.is_empty() {
                health.note(at, format!("slowed down by: {}", reading.slowed.join(", ")));
            }
            health.reading = reading;
        }
    }

    /// Parts of a GPU share what happens to it.
    fn strike(&mut self, incident: &Incident, at: i64) {
        for (known, health) in self.known.iter().zip(&mut self.health) {
            if known.found.uuid == incident.uuid || known.found.part_of.as_deref() == Some(&incident.uuid) {
                health.note(at, incident.what.clone());
                if incident.fatal {
                    health.struck = Some(format!("{} ({})", incident.what, when(at)));
                }
            }
        }
    }

    fn report(&self, at: i64, lacks: &[String]) -> v1::GpuReport {
        let mut notes = self.notes.clone();
        if !lacks.is_empty() {
            notes.push(format!("this driver does not tell: {}", lacks.join(", ")));
        }
        v1::GpuReport {
            node: self.node.clone(),
            at,
            source: self.source.clone(),
            notes,
            devices: self.known.iter().zip(&self.health).map(|(k, h)| wire::state(k, h)).collect(),
        }
    }
}

fn when(at: i64) -> String {
    format!("{} UTC", Timestamp(at).to_iso(Span(0)))
}

/// See [`Gpus::watch`].
pub(super) fn start(gpus: Gpus, node: &str) -> anyhow::Result<Option<Receiver<v1::GpuReport>>> {
    let Gpus { inventory, driver, source, poll_ms, .. } = gpus;
    if inventory.known.is_empty() && inventory.notes.is_empty() {
        return Ok(None);
    }
    let health = vec![Health::default(); inventory.known.len()];
    let mut book = Book { node: node.to_owned(), source, notes: inventory.notes, known: inventory.known, health };
    let mut lacks = Vec::new();
    let mut driver = driver;
    if let Some(driver) = &mut driver {
        book.read(driver.look(), now_ms());
        lacks = driver.lacks();
        if !lacks.is_empty() {
            tracing::warn!("GPUs: this driver does not tell: {}", lacks.join(", "));
        }
    }
    let (sender, receiver) = channel(book.report(now_ms(), &lacks));
    if let Some(driver) = driver {
        let poll = Duration::from_millis(poll_ms).max(GPU_POLL_LEAST);
        std::thread::Builder::new()
            .name("gpus".into())
            .spawn(move || serve(driver, book, &sender, poll))
            .context("cannot start the thread that looks after the GPUs")?;
    }
    Ok(Some(receiver))
}

/// Looks and waits by turns, until nobody wants to know any more.
fn serve(mut driver: Box<dyn Driver>, mut book: Book, sender: &Sender<v1::GpuReport>, poll: Duration) {
    while !sender.is_closed() {
        let before: Vec<Vec<String>> = faults(&book);
        let mut next = Instant::now() + poll;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            if let Some(incident) = driver.wait(left) {
                tracing::warn!("GPU {}: {}", incident.uuid, incident.what);
                book.strike(&incident, now_ms());
                // Told at once, but not once for each of a storm.
                if incident.fatal {
                    next = next.min(Instant::now() + GPU_POLL_LEAST);
                }
            }
        }
        book.read(driver.look(), now_ms());
        for ((known, before), now) in book.known.iter().zip(before).zip(faults(&book)) {
            for fault in now.iter().filter(|fault| !before.contains(fault)) {
                tracing::error!("GPU {} can no longer be relied on: {fault}", known.found.uuid);
            }
        }
        sender.send_replace(book.report(now_ms(), &driver.lacks()));
    }
}

fn faults(book: &Book) -> Vec<Vec<String>> {
    book.known.iter().zip(&book.health).map(|(known, health)| health.faults(known)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::driver::{Found, Rows};
    use super::*;

    fn book() -> Book {
        let known = |uuid: &str, whole: Option<&str>| Known {
            found: Found { uuid: uuid.into(), part_of: whole.map(str::to_owned), ..Found::default() },
            absent: None,
        };
        let known = vec![known("a", None), known("m1", Some("b")), known("m2", Some("b"))];
        let health = vec![Health::default(); 3];
        Book { node: "n".into(), source: String::new(), notes: Vec::new(), known, health }
    }

    fn counts(book: &Book) -> Vec<usize> {
        faults(book).iter().map(Vec::len).collect()
    }

    #[test]
    fn what_happens_to_a_gpu_happens_to_its_parts() {
        let mut book = book();
        let incident = |uuid: &str, fatal| Incident { uuid: uuid.into(), what: "XID 1: bad".into(), fatal };
        book.strike(&incident("a", false), 1000);
        assert_eq!(counts(&book), [0, 0, 0], "what is not fatal is only noted");
        book.strike(&incident("b", true), 61_000);
        assert_eq!(counts(&book), [0, 1, 1]);
        assert_eq!(faults(&book)[1], ["XID 1: bad (1970-01-01T00:01:01 UTC)"]);
        assert_eq!(book.health[0].events, [(1000, "XID 1: bad".to_owned())]);
    }

    #[test]
    fn lost_is_lost_until_the_next_start_and_bad_memory_is_told_in_numbers() {
        let mut book = book();
        let reading = |lost, ecc| Reading { lost, ecc: Some((ecc, 5)), power_mw: Some(7), ..Reading::default() };
        book.read(BTreeMap::from([("a".into(), reading(false, 0))]), 1);
        assert_eq!(counts(&book), [0, 0, 0]);
        book.read(BTreeMap::from([("a".into(), reading(true, 0))]), 2);
        book.read(BTreeMap::from([("a".into(), reading(false, 2))]), 3);
        let now = &faults(&book)[0];
        assert!(now[0].contains("fell off the bus") && now[1].starts_with("2 memory errors"), "{now:?}");
        let rows = Some(Rows { pending: true, failed: true, ..Rows::default() });
        book.read(BTreeMap::from([("m2".into(), Reading { rows, ..Reading::default() })]), 4);
        assert_eq!(counts(&book), [2, 0, 2]);
        for n in 0..100 {
            book.health[0].note(n, n.to_string());
        }
        assert_eq!((book.health[0].events.len(), book.health[0].events.back()), (GPU_EVENTS, Some(&(99, "99".into()))));
    }
}
