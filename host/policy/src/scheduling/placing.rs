//! Where to place, and slots that were found: resources that a policy holds during its call.

use super::{CycleCall, words};
use crate::bindings::scheduling::ephor::scheduling::cycles::{HostPlacing, HostSlot, Refusal};
use crate::bounds;
use crate::call::Call;
use ephor_core::FaultKind;
use ephor_core::cycle::{CycleRefusal, CycleSlot};
use ephor_model::{NodeId, ResourceId, Topology};
use ephor_placement::Placing;
use wasmtime::Result;
use wasmtime::component::Resource;

type Set = std::result::Result<(), Refusal>;
type How = Resource<Placing>;

/// Resources that a placing may name at most, as wishes of each kind.
const WISHES: usize = 64;

impl Call<CycleCall> {
    /// Puts a resource into the call's table, which is bounded: a guest could make them for ever.
    fn keep<T: Send + 'static>(&mut self, value: T) -> Result<Resource<T>> {
        self.base.table.push(value).map_err(|_| {
            let text = format!("it holds more than {} placings and slots at a time", bounds::RESOURCES);
            self.base.end(FaultKind::Output, text)
        })
    }

    /// Keeps a slot, and counts its nodes.
    pub(super) fn keep_slot(&mut self, slot: CycleSlot) -> Result<Resource<CycleSlot>> {
        self.role.nodes_in_slots += slot.slot.allocation.parts.len();
        if self.role.nodes_in_slots > bounds::NODES_IN_SLOTS {
            let text = format!("it holds slots with more than {} nodes at a time", bounds::NODES_IN_SLOTS);
            return Err(self.base.end(FaultKind::Output, text));
        }
        self.keep(slot)
    }

    /// The nodes behind rows; the bytes count, since a placing keeps them.
    fn nodes(&mut self, rows: &[u32]) -> Result<std::result::Result<Vec<NodeId>, Refusal>> {
        self.base.handed_over(size_of_val(rows))?;
        let cycle = &self.role.cycle;
        let nodes = rows.iter().map(|row| {
            let unknown = || CycleRefusal::Other(format!("row {row} of table nodes is not there"));
            cycle.node_id(*row).ok_or_else(unknown)
        });
        Ok(nodes.collect::<std::result::Result<_, _>>().map_err(words::refusal))
    }
}

impl HostPlacing for Call<CycleCall> {
    fn new(&mut self) -> Result<How> {
        self.keep(Placing::default())
    }

    fn pack(&mut self, how: How, id: u16) -> Result<()> {
        wish(&mut self.base.table.get_mut(&how)?.pack, id);
        Ok(())
    }

    fn spread(&mut self, how: How, id: u16) -> Result<()> {
        wish(&mut self.base.table.get_mut(&how)?.spread, id);
        Ok(())
    }

    fn require_level(&mut self, how: How, level: String) -> Result<Set> {
        self.base.handed_over(level.len())?;
        let read = Topology::read(&level, true).map_err(Refusal::Other);
        let placing = self.base.table.get_mut(&how)?;
        Ok(read.map(|topology| placing.require_level = Some(topology.level)))
    }

    fn prefer_level(&mut self, how: How, level: String) -> Result<Set> {
        self.base.handed_over(level.len())?;
        let read = Topology::read(&level, false).map_err(Refusal::Other);
        let placing = self.base.table.get_mut(&how)?;
        Ok(read.map(|topology| placing.prefer_level = Some(topology.level)))
    }

    fn rank_nodes(&mut self, how: How, rows: Vec<u32>) -> Result<Set> {
        Ok(match self.nodes(&rows)? {
            Ok(nodes) => {
                self.base.table.get_mut(&how)?.rank = nodes;
                Ok(())
            }
            Err(refusal) => Err(refusal),
        })
    }

    fn only_nodes(&mut self, how: How, rows: Vec<u32>) -> Result<Set> {
        Ok(match self.nodes(&rows)? {
            Ok(nodes) => {
                self.base.table.get_mut(&how)?.only = Some(nodes);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        })
    }

    fn only_devices(&mut self, _: How, devices: Vec<(u32, u32)>) -> Result<Set> {
        self.base.handed_over(size_of_val(devices.as_slice()))?;
        Ok(Err(Refusal::Other("not yet".into())))
    }

    fn may_claim(&mut self, how: How, yes: bool) -> Result<()> {
        self.base.table.get_mut(&how)?.may_claim = yes;
        Ok(())
    }

    fn drop(&mut self, how: How) -> Result<()> {
        self.base.table.delete(how)?;
        Ok(())
    }
}

impl HostSlot for Call<CycleCall> {
    fn start(&mut self, slot: Resource<CycleSlot>) -> Result<i64> {
        Ok(self.base.table.get(&slot)?.slot.start.0)
    }

    fn nodes(&mut self, slot: Resource<CycleSlot>) -> Result<Vec<u32>> {
        let count = self.base.table.get(&slot)?.slot.allocation.parts.len() as u64;
        self.base.work(1 + count)?;
        self.base.hand_in(count * 4)?;
        let parts = &self.base.table.get(&slot)?.slot.allocation.parts;
        Ok(parts.iter().filter_map(|part| self.role.cycle.node_row(part.node)).collect())
    }

    fn drop(&mut self, slot: Resource<CycleSlot>) -> Result<()> {
        let slot = self.base.table.delete(slot)?;
        self.role.nodes_in_slots = self.role.nodes_in_slots.saturating_sub(slot.slot.allocation.parts.len());
        Ok(())
    }
}

fn wish(wishes: &mut Vec<ResourceId>, id: u16) {
    let id = ResourceId(id);
    if wishes.len() < WISHES && !wishes.contains(&id) {
        wishes.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;
    use ephor_model::PolicyLimits;

    #[test]
    fn wishes_become_a_placing_and_wrong_rows_do_not() {
        let mut call = call(PolicyLimits::default(), 0);
        let how = HostPlacing::new(&mut call).unwrap();
        let borrowed = || Resource::new_borrow(how.rep());
        (0..3).for_each(|_| call.pack(borrowed(), 2).unwrap());
        call.spread(borrowed(), 0).unwrap();
        assert!(call.rank_nodes(borrowed(), vec![1, 0]).unwrap().is_ok());
        assert!(call.only_nodes(borrowed(), vec![1]).unwrap().is_ok());
        assert!(matches!(call.only_nodes(borrowed(), vec![0, 2]).unwrap(), Err(Refusal::Other(_))));
        call.may_claim(borrowed(), true).unwrap();
        assert!(call.require_level(borrowed(), "rack".into()).unwrap().is_ok());
        assert!(call.prefer_level(borrowed(), "switch".into()).unwrap().is_ok());
        assert!(matches!(call.require_level(borrowed(), "a=b".into()).unwrap(), Err(Refusal::Other(_))));
        let placing = call.base.table.get(&how).unwrap();
        let node = |row| call.role.cycle.node_id(row).unwrap();
        let wanted = Placing {
            pack: vec![ResourceId::GPU],
            spread: vec![ResourceId::CPU],
            rank: vec![node(1), node(0)],
            only: Some(vec![node(1)]),
            require_level: Some("rack".into()),
            prefer_level: Some("switch".into()),
            may_claim: true,
        };
        assert_eq!(*placing, wanted);
        HostPlacing::drop(&mut call, how).unwrap();
        assert!(call.base.table.is_empty());
    }

    #[test]
    fn placings_cannot_be_made_for_ever() {
        let mut call = call(PolicyLimits::default(), 0);
        let made = (0..2 * bounds::RESOURCES).take_while(|_| HostPlacing::new(&mut call).is_ok()).count();
        assert_eq!(made, bounds::RESOURCES);
        assert_eq!(call.base.verdict().unwrap().0, FaultKind::Output);
    }
}
