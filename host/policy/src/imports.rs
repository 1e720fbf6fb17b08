//! What policies of every role import: log, configuration, names, store and directory.

use crate::bindings::host::ephor::host::{config, directory, log, names, policy_store};
use crate::bounds;
use crate::call::{Base, Call};
use crate::check::printable;
use crate::fault::truncate;
use ephor_model::{AccountId, NodeId, QueueId, ResourceId, Uid};
use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker};

/// Bytes of the last error line that are kept for the message of a fault.
const LAST_ERROR_BYTES: usize = 400;

/// Bytes of a log line that are copied for one work unit.
const LOG_BYTES_PER_UNIT: u64 = 64;

/// Links those interfaces of `ephor:host`, and no others.
pub fn link<R: 'static>(linker: &mut Linker<Call<R>>, granted: &[String]) -> Result<()> {
    for interface in granted {
        match interface.as_str() {
            "ephor:host/log" => log::add_to_linker::<_, HasSelf<Base>>(linker, |c| &mut c.base)?,
            "ephor:host/config" => config::add_to_linker::<_, HasSelf<Base>>(linker, |c| &mut c.base)?,
            "ephor:host/names" => names::add_to_linker::<_, HasSelf<Base>>(linker, |c| &mut c.base)?,
            "ephor:host/policy-store" => policy_store::add_to_linker::<_, HasSelf<Base>>(linker, |c| &mut c.base)?,
            "ephor:host/directory" => directory::add_to_linker::<_, HasSelf<Base>>(linker, |c| &mut c.base)?,
            // A grant of what is not there links nothing; the component then fails to link, by name.
            _ => {}
        }
    }
    Ok(())
}

impl log::Host for Base {
    fn write(&mut self, level: log::Level, text: String) -> Result<()> {
        // Paid for as work and not counted as output: a policy that floods the log loses its lines and goes on.
        self.work(1 + text.len() as u64 / LOG_BYTES_PER_UNIT)?;
        if level == log::Level::Error {
            let mut last = printable(text.clone());
            truncate(&mut last, LAST_ERROR_BYTES);
            self.log.last_error = Some(last);
        }
        if self.log.lines_left == 0 || self.log.bytes_left < text.len() {
            self.log.dropped += 1;
            return Ok(());
        }
        self.log.lines_left -= 1;
        self.log.bytes_left -= text.len();
        let text = printable(text);
        let (role, policy, generation) = (self.about.role.name(), &self.about.name, self.about.generation);
        match level {
            log::Level::Error => tracing::error!(target: "policy", role, policy, generation, "{text}"),
            log::Level::Warn => tracing::warn!(target: "policy", role, policy, generation, "{text}"),
            log::Level::Info => tracing::info!(target: "policy", role, policy, generation, "{text}"),
            log::Level::Debug => tracing::debug!(target: "policy", role, policy, generation, "{text}"),
        }
        Ok(())
    }
}

impl config::Host for Base {
    fn json(&mut self) -> Result<String> {
        self.work(1 + self.about.config.len() as u64 / 1024)?;
        Ok(self.about.config.clone())
    }
}

impl names::Host for Base {
    fn names(&mut self, kind: names::Kind, ids: Vec<u32>) -> Result<Vec<String>> {
        self.handed_over(ids.len() * size_of::<u32>())?;
        self.work(ids.len() as u64)?;
        let mut bytes = 0;
        let mut found = Vec::new();
        for id in ids {
            let name = name_of(self, kind, id);
            // What a list of strings takes in the guest: the text, and pointer and length.
            bytes += name.len() as u64 + 8;
            self.hand_in(bytes)?;
            found.push(name);
        }
        Ok(found)
    }

    fn id(&mut self, kind: names::Kind, name: String) -> Result<Option<u32>> {
        self.handed_over(name.len())?;
        let state = self.state();
        // Queues, accounts and users have no index by name: looking for one looks at all.
        let looked = match kind {
            names::Kind::Queue => state.queues.len(),
            names::Kind::Account => state.accounts.len(),
            names::Kind::User => state.users.len(),
            names::Kind::Node | names::Kind::ResourceName => 0,
        };
        self.work(1 + looked as u64 / 16)?;
        let state = self.state();
        Ok(match kind {
            names::Kind::Queue => state.queue_by_name(&name).map(|(id, _)| id.0),
            names::Kind::Account => state.account_by_name(&name).map(|(id, _)| id.0),
            names::Kind::User => state.users.iter().find(|(_, u)| u.name == name).map(|(uid, _)| uid.0),
            names::Kind::Node => state.node_by_name(&name).map(|n| n.id.0),
            names::Kind::ResourceName => ResourceId::from_well_known_name(&name).map(|r| u32::from(r.0)),
        })
    }
}

fn name_of(base: &mut Base, kind: names::Kind, id: u32) -> String {
    let state = base.state();
    let name = match kind {
        names::Kind::Queue => state.queues.get(&QueueId(id)).map(|q| q.name.clone()),
        names::Kind::Account => state.accounts.get(&AccountId(id)).map(|a| a.name.clone()),
        names::Kind::User => state.users.get(&Uid(id)).map(|u| u.name.clone()),
        names::Kind::Node => state.nodes.get(&NodeId(id)).map(|n| n.spec.name.clone()),
        names::Kind::ResourceName => {
            u16::try_from(id).ok().and_then(|id| ResourceId(id).well_known_name()).map(str::to_owned)
        }
    };
    name.unwrap_or_default()
}

impl policy_store::Host for Base {
    fn get(&mut self, key: String) -> Result<Option<Vec<u8>>> {
        self.handed_over(key.len())?;
        Ok(None)
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<std::result::Result<(), policy_store::StoreError>> {
        self.handed_over(key.len() + value.len())?;
        Ok(Err(policy_store::StoreError::Other("not yet".into())))
    }
}

impl directory::Host for Base {
    fn user_by_id(&mut self, uid: u32) -> Result<Option<directory::User>> {
        self.work(100)?;
        Ok(self.directory.user_by_id(uid).map(user))
    }

    fn user_by_name(&mut self, name: String) -> Result<Option<directory::User>> {
        self.handed_over(name.len())?;
        self.work(100)?;
        if name.len() > ephor_model::limits::NAME_BYTES {
            return Ok(None);
        }
        Ok(self.directory.user_by_name(&name).map(user))
    }
}

fn user(user: crate::host::DirectoryUser) -> directory::User {
    let crate::host::DirectoryUser { uid, gid, name, mut groups } = user;
    groups.truncate(bounds::GROUPS);
    directory::User { uid, gid, name, groups }
}

#[cfg(test)]
mod tests {
    use super::log::Host as _;
    use super::names::{Host as _, Kind};
    use super::policy_store::Host as _;
    use super::*;
    use crate::call::testing::{base, cluster};
    use ephor_core::FaultKind;
    use ephor_model::PolicyLimits;

    #[test]
    fn names_and_ids_of_every_kind() {
        let state = cluster(0);
        let queue = state.queue_by_name("main").unwrap().0.0;
        let node = state.node_by_name("n2").unwrap().id.0;
        let mut base = base(PolicyLimits::default(), state);
        for (kind, id, name) in [
            (Kind::Queue, queue, "main"),
            (Kind::User, 1000, "alice"),
            (Kind::Node, node, "n2"),
            (Kind::ResourceName, 2, "gpu"),
        ] {
            assert_eq!(base.names(kind, vec![id, 77_777]).unwrap(), [name, ""]);
            assert_eq!(base.id(kind, name.into()).unwrap(), Some(id));
            assert_eq!(base.id(kind, "nobody".into()).unwrap(), None);
        }
        assert_eq!(base.verdict(), None);
    }

    #[test]
    fn a_batch_of_names_is_bounded_by_work_and_by_what_fits_the_guest() {
        let mut poor = base(PolicyLimits { work_units: 10, ..PolicyLimits::default() }, cluster(0));
        assert!(poor.names(Kind::User, vec![1000; 11]).is_err());
        assert_eq!(poor.verdict().unwrap().0, FaultKind::Fuel);
        let mut small = base(PolicyLimits { memory_bytes: 100, ..PolicyLimits::default() }, cluster(0));
        assert!(small.names(Kind::User, vec![1000; 9]).is_err());
        assert_eq!(small.verdict().unwrap().0, FaultKind::Memory);
        let mut mute = base(PolicyLimits { output_bytes: 10, ..PolicyLimits::default() }, cluster(0));
        assert!(mute.names(Kind::User, vec![1000; 3]).is_err());
        assert_eq!(mute.verdict().unwrap().0, FaultKind::Output);
    }

    #[test]
    fn the_log_takes_so_many_lines_and_bytes() {
        let mut lines = base(PolicyLimits::default(), cluster(0));
        (0..100).for_each(|_| lines.write(log::Level::Info, "x".into()).unwrap());
        assert_eq!(lines.log.dropped, 36);
        let mut bytes = base(PolicyLimits::default(), cluster(0));
        (0..5).for_each(|_| bytes.write(log::Level::Error, "\u{1b}[2J".repeat(1_000)).unwrap());
        assert_eq!(bytes.log.dropped, 1);
        let last = bytes.log.last_error.unwrap();
        assert!(last.len() <= LAST_ERROR_BYTES && !last.contains('\u{1b}'), "{last}");
    }

    #[test]
    fn the_store_says_not_yet() {
        let mut base = base(PolicyLimits::default(), cluster(0));
        assert_eq!(base.get("key".into()).unwrap(), None);
        let answer = base.set("key".into(), vec![1]).unwrap();
        assert!(matches!(answer, Err(policy_store::StoreError::Other(text)) if text == "not yet"));
    }
}
