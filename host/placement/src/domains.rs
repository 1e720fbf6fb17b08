//! Placing all of a job below one domain of a topology: one rack, one switch, one pod.
//!
//! A node is in domain `r1` of level `rack` where it has the feature `rack=r1`. Of the domains in which a job can be
//! placed the fullest is taken, so that empty ones stay for those who need all of one.

use crate::choose::{Item, Pick};
use crate::class::Class;
use crate::cluster::Cluster;
use crate::demand::Demand;
use crate::placing::Placing;
use crate::shape::{Shape, ShapeId};
use crate::work::{NoFit, Work};
use std::collections::BTreeMap;

/// The levels at which the nodes of an allocation are to be in the same domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels<'a> {
    required: Vec<&'a str>,
    preferred: Vec<&'a str>,
}

impl<'a> Levels<'a> {
    /// Those of the request and of the placing together.
    pub fn of(class: &'a Class, demand: &Demand, how: &'a Placing) -> Self {
        let mut levels = Self::default();
        levels.required.extend(how.require_level.as_deref());
        levels.preferred.extend(how.prefer_level.as_deref());
        // A single node is below one domain wherever it is, and the class admits only nodes that are below one.
        if let Some(topology) = class.need.request.topology.as_ref().filter(|_| demand.most > 1) {
            match topology.required {
                true => levels.required.push(&topology.level),
                false => levels.preferred.push(&topology.level),
            }
        }
        levels
    }

    /// Whether there are none.
    pub fn none(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }
}

/// The domain of nodes of a shape at a level.
pub(crate) fn domain<'s>(shape: &'s Shape, level: &str) -> Option<&'s str> {
    let value = |feature: &'s String| feature.strip_prefix(level)?.strip_prefix('=');
    shape.features.iter().find_map(value)
}

impl Cluster {
    /// [`Class::pick`] among nodes below one domain of each required level, and of the preferred ones if that can be;
    /// `shapes` are those of the items, where there are levels or groups to look at.
    pub(crate) fn pick_below(
        &self,
        class: &Class,
        demand: &Demand,
        levels: &Levels<'_>,
        items: &[Item],
        shapes: &[ShapeId],
        work: &mut Work,
    ) -> Result<Option<Vec<Pick>>, NoFit> {
        let groups = |i: usize| class.groups[shapes[i].0 as usize];
        if levels.none() {
            return class.pick(demand, items, groups, work);
        }
        let both = [&levels.required[..], &levels.preferred].concat();
        let mut tries = vec![both];
        if !levels.preferred.is_empty() {
            tries.push(levels.required.clone());
        }
        for wanted in tries {
            if wanted.is_empty() {
                return class.pick(demand, items, groups, work);
            }
            work.take(items.len())?;
            for places in self.domains(&wanted, items, shapes) {
                if places.len() < demand.fewest {
                    continue;
                }
                if let Some(picks) = class.pick_among(demand, items, &places, groups, work)? {
                    return Ok(Some(picks));
                }
            }
        }
        Ok(None)
    }

    /// The items below each domain of these levels, the domains with least room first.
    fn domains(&self, levels: &[&str], items: &[Item], shapes: &[ShapeId]) -> Vec<Vec<usize>> {
        let mut known: BTreeMap<ShapeId, Option<Vec<&str>>> = BTreeMap::new();
        let mut domains: BTreeMap<&[&str], Vec<usize>> = BTreeMap::new();
        for id in shapes {
            let shape = &self.shapes[id.0 as usize];
            known.entry(*id).or_insert_with(|| levels.iter().map(|level| domain(shape, level)).collect());
        }
        for (place, id) in shapes.iter().enumerate() {
            if let Some(Some(names)) = known.get(id) {
                domains.entry(names).or_default().push(place);
            }
        }
        let room =
            |places: &[usize], of: fn(&Item) -> u32| places.iter().map(|i| u64::from(of(&items[*i]))).sum::<u64>();
        let mut all: Vec<Vec<usize>> = domains.into_values().collect();
        // Stable: domains with the same room stay in the order of their names.
        all.sort_by_cached_key(|places| (room(places, |i| i.fit.tasks), room(places, |i| i.fit.gpus)));
        all
    }
}
