//! Choosing among nodes that have to be alike, or of which so many of each kind are asked for.

use crate::choose::{Item, Pick, choose};
use crate::class::Class;
use crate::demand::Demand;
use crate::shape::Shape;
use crate::work::{NoFit, Work};
use ephor_model::constraint::Constraint;
use std::collections::BTreeSet;

/// Which of the groups of a constraint a node satisfies: one bit each.
pub(crate) type Groups = u64;

/// The groups that nodes of a shape satisfy.
pub(crate) fn of_shape(constraint: Option<&Constraint>, shape: &Shape) -> Groups {
    let groups = constraint.into_iter().flat_map(Constraint::groups).enumerate();
    // A constraint names at most as many features as there are bits.
    groups.filter(|(_, group)| group.hold(&shape.features)).fold(0, |bits, (i, _)| bits | 1 << i)
}

impl Class {
    /// Whether more than one node at a time has to be looked at to know whether one serves.
    pub fn has_groups(&self) -> bool {
        matches!(self.need.request.constraint, Some(Constraint::Same(_) | Constraint::Counts(_)))
    }

    /// [`Class::pick`] among some of the items.
    pub fn pick_among(
        &self,
        demand: &Demand,
        items: &[Item],
        places: &[usize],
        groups: impl Fn(usize) -> Groups,
        work: &mut Work,
    ) -> Result<Option<Vec<Pick>>, NoFit> {
        let some: Vec<Item> = places.iter().map(|i| items[*i]).collect();
        let picks = self.pick(demand, &some, |i| groups(places[i]), work)?;
        Ok(picks.map(|picks| back(picks, places)))
    }

    /// [`choose`] under the constraint of the class; `groups` are those of each item.
    pub fn pick(
        &self,
        demand: &Demand,
        items: &[Item],
        groups: impl Fn(usize) -> Groups,
        work: &mut Work,
    ) -> Result<Option<Vec<Pick>>, NoFit> {
        match &self.need.request.constraint {
            None | Some(Constraint::Each(_)) => choose(demand, items, work),
            Some(Constraint::Same(alternatives)) => {
                for group in 0..alternatives.len() {
                    let places: Vec<usize> = (0..items.len()).filter(|i| groups(*i) >> group & 1 == 1).collect();
                    work.take(places.len())?;
                    let some: Vec<Item> = places.iter().map(|i| items[*i]).collect();
                    if let Some(picks) = choose(demand, &some, work)? {
                        return Ok(Some(back(picks, &places)));
                    }
                }
                Ok(None)
            }
            Some(Constraint::Counts(counts)) => {
                let counts: Vec<u32> = counts.iter().map(|(_, n)| *n).collect();
                work.take(items.len())?;
                // Counted nodes are required too, so that those named must be told apart before.
                if items.iter().filter(|item| item.required).count() < demand.required {
                    return Ok(None);
                }
                let Some(counted) = Match::of(items, &groups, &counts) else { return Ok(None) };
                let mut items = items.to_vec();
                counted.into_iter().for_each(|place| items[place].required = true);
                choose(demand, &items, work)
            }
        }
    }
}

/// Picks from a list of places as picks from what the places stand for.
fn back(picks: Vec<Pick>, places: &[usize]) -> Vec<Pick> {
    picks.into_iter().map(|pick| Pick { index: places[pick.index], ..pick }).collect()
}

/// Items given to groups, one item to one group at most.
struct Match {
    /// Items of each group, up to its count.
    members: Vec<Vec<usize>>,
}

impl Match {
    /// The items that are counted: required ones first, then the first in order with which every count can be reached.
    /// `None`: they cannot.
    ///
    /// An item is taken where the groups that it satisfies have room, or can make room by exchanges. Taking what comes
    /// first never spoils it for later ones (the sets that can be given to groups form a matroid).
    fn of(items: &[Item], groups: impl Fn(usize) -> Groups, counts: &[u32]) -> Option<Vec<usize>> {
        let mut found = Self { members: vec![Vec::new(); counts.len()] };
        let mut missing: u64 = counts.iter().map(|n| u64::from(*n)).sum();
        let (required, others): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(|i| items[*i].required);
        // Where one found no room, the next of the same groups finds none either.
        let mut hopeless = BTreeSet::from([0]);
        for place in required.into_iter().chain(others) {
            if missing == 0 {
                break;
            }
            if hopeless.contains(&groups(place)) {
                continue;
            }
            match found.give(place, &groups, counts, &mut 0) {
                true => missing -= 1,
                false => _ = hopeless.insert(groups(place)),
            }
        }
        (missing == 0).then(|| found.members.into_iter().flatten().collect())
    }

    /// Gives an item to a group, moving others where that makes room. `tried`: groups that had none to make.
    fn give(&mut self, place: usize, groups: &impl Fn(usize) -> Groups, counts: &[u32], tried: &mut Groups) -> bool {
        let mine = groups(place);
        for group in 0..counts.len() {
            if mine >> group & 1 == 0 || *tried >> group & 1 == 1 {
                continue;
            }
            *tried |= 1 << group;
            if self.members[group].len() < counts[group] as usize {
                self.members[group].push(place);
                return true;
            }
            for at in 0..self.members[group].len() {
                let other = self.members[group][at];
                if self.give(other, groups, counts, tried) {
                    self.members[group][at] = place;
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Fit;

    #[test]
    fn exchanges_make_room_for_a_node_that_serves_one_group_only() {
        let items = vec![Item { fit: Fit { tasks: 1, gpus: 0 }, required: false }; 4];
        // The first two satisfy both groups, the third only the first group, the last none.
        let groups = [0b11, 0b11, 0b01, 0b00];
        let of = |counts: &[u32]| {
            Match::of(&items, |i| groups[i], counts).map(|mut found| {
                found.sort_unstable();
                found
            })
        };
        assert_eq!(of(&[1, 2]), Some(vec![0, 1, 2]));
        assert_eq!(of(&[2, 1]), Some(vec![0, 1, 2]));
        assert_eq!(of(&[1, 1]), Some(vec![0, 1]));
        assert_eq!((of(&[1, 3]), of(&[3, 1])), (None, None));
    }
}
