//! Which nodes of an attempt a step gets, and which of its tasks run where.

use ephor_model::{NodeId, limits};
use ephor_proto::v1;

/// What an attempt has on one of its nodes, and what its other steps take of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Thousandths of cores that the attempt holds, parts of a core rounded up.
    pub cpu_milli: i64,
    /// Those of them that other steps take.
    pub used_milli: i64,
    /// GPUs that the attempt holds.
    pub devices: Vec<u32>,
    /// Those of them that other steps have for themselves.
    pub used_devices: Vec<u32>,
}

/// What a step asks for, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Tasks in all; `None`: one for each node, or as many as `tasks_per_node` says.
    pub tasks: Option<u32>,
    /// Fewest and most nodes, at least 1; `None`: as many as there are tasks for.
    pub nodes: Option<(u32, u32)>,
    /// Cores for each task, at least 1.
    pub cpus_per_task: u32,
    /// Most tasks of a node; exactly that many where `tasks` is not given.
    pub tasks_per_node: Option<u32>,
    /// Nodes that must be part of it.
    pub node_list: Vec<String>,
    /// Nodes that must not.
    pub exclude: Vec<String>,
    /// It takes nothing from other steps.
    pub overlap: bool,
    /// More tasks than cores.
    pub overcommit: bool,
    /// GPUs of its own.
    pub gpus: Option<Gpus>,
    /// Tasks go to the nodes in turn.
    pub cyclic: bool,
}

/// GPUs that a step has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// For each task.
    PerTask(u32),
    /// On each node.
    PerNode(u32),
}

/// What one node has of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its place among the rooms.
    pub room: usize,
    /// Ranks of the tasks.
    pub tasks: Vec<u32>,
    /// Thousandths of cores that the step takes.
    pub cpu_milli: i64,
    /// GPUs that the tasks see.
    pub devices: Vec<u32>,
}

/// Why a step cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Other steps hold what it needs.
    Busy,
    /// The attempt does not have it, in words.
    Never(String),
}

impl Ask {
    /// Reads a request.
    ///
    /// # Errors
    /// Numbers out of their bounds, and what contradicts itself.
    pub fn read(wire: &v1::StepRequest) -> Result<Self, String> {
        let most = limits::STEP_TASKS;
        if wire.tasks.is_some_and(|n| n == 0 || n > most) {
            return Err(format!("a step has 1 to {most} tasks"));
        }
        if wire.tasks_per_node == Some(0) || wire.gpus_per_task == Some(0) {
            return Err("a number of tasks or GPUs is 0; leave the option out".into());
        }
        if wire.node_list.len() + wire.exclude.len() > limits::NAMES_PER_OBJECT {
            return Err(format!("a step names at most {} nodes", limits::NAMES_PER_OBJECT));
        }
        let nodes = match (wire.nodes_min, wire.nodes_max) {
            (0, None) => None,
            (min, max) => {
                let (min, max) = (min.max(1), max.unwrap_or(u32::MAX));
                if max < min {
                    return Err(format!("at most {max} nodes are fewer than at least {min}"));
                }
                Some((min, max))
            }
        };
        let gpus = match (wire.gpus_per_task, wire.gpus_per_node) {
            (Some(_), Some(_)) => return Err("GPUs are asked for by task or by node, not both".into()),
            (Some(n), None) => Some(Gpus::PerTask(n)),
            (None, n) => n.map(Gpus::PerNode),
        };
        Ok(Self {
            tasks: wire.tasks,
            nodes,
            cpus_per_task: wire.cpus_per_task.clamp(1, limits::TASKS),
            tasks_per_node: wire.tasks_per_node,
            node_list: wire.node_list.clone(),
            exclude: wire.exclude.clone(),
            overlap: wire.overlap,
            overcommit: wire.overcommit,
            gpus,
            cyclic: wire.cyclic,
        })
    }

    fn milli_per_task(&self) -> i64 {
        i64::from(self.cpus_per_task) * 1000
    }

    /// GPUs that a step may have for itself on that node.
    fn free_devices(&self, room: &Room, empty: bool) -> Vec<u32> {
        let free = |d: &&u32| empty || self.overlap || !room.used_devices.contains(d);
        room.devices.iter().filter(free).copied().collect()
    }

    /// How many tasks there is room for; `empty`: as if there were no other steps.
    fn fit(&self, room: &Room, empty: bool) -> u32 {
        let most = i64::from(self.tasks_per_node.unwrap_or(u32::MAX).min(limits::STEP_TASKS_PER_NODE));
        let used = if empty || self.overlap { 0 } else { room.used_milli };
        let by_cores = if self.overcommit { most } else { (room.cpu_milli - used) / self.milli_per_task() };
        let gpus = self.free_devices(room, empty).len() as i64;
        let by_gpus = match self.gpus {
            Some(Gpus::PerTask(each)) => gpus / i64::from(each),
            Some(Gpus::PerNode(n)) if gpus < i64::from(n) => 0,
            Some(Gpus::PerNode(_)) | None => most,
        };
        // Between 0 and a bound that is a u32.
        by_cores.min(by_gpus).clamp(0, most) as u32
    }

    /// Tasks in all on so many nodes.
    fn tasks_on(&self, nodes: u32) -> u32 {
        self.tasks.unwrap_or_else(|| self.tasks_per_node.unwrap_or(1).saturating_mul(nodes))
    }
}

/// Lays a step out over the nodes of its attempt.
///
/// # Errors
/// Why it cannot be, now or ever.
pub fn lay_out(rooms: &[Room], ask: &Ask) -> Result<Vec<Place>, Refused> {
    if let Some(stranger) = ask.node_list.iter().find(|name| !rooms.iter().any(|room| room.name == **name)) {
        return Err(Refused::Never(format!("node {stranger} is none of the job's")));
    }
    let candidates: Vec<usize> = (0..rooms.len()).filter(|i| !ask.exclude.contains(&rooms[*i].name)).collect();
    let listed = |i: &usize| ask.node_list.contains(&rooms[*i].name);
    let named = candidates.iter().filter(|i| listed(i)).count() as u32;
    if named < ask.node_list.len() as u32 && ask.node_list.iter().any(|name| ask.exclude.contains(name)) {
        return Err(Refused::Never("a node is asked for and excluded".into()));
    }
    let have = candidates.len() as u32;
    let (min, max) = match ask.nodes {
        Some((min, max)) => (min.max(named), max.min(have)),
        None if named > 0 => (named, named),
        None => (1, have),
    };
    // Without a task a node has no part.
    let max = ask.tasks.map_or(max, |tasks| max.min(tasks));
    if min > max {
        let text = match ask.tasks {
            Some(tasks) if tasks < min => format!("{tasks} tasks cannot run on {min} nodes"),
            _ => format!("{min} nodes are asked for, and the job has {have} that will do"),
        };
        return Err(Refused::Never(text));
    }
    let attempt = |empty: bool| (min..=max).rev().find_map(|n| choose(rooms, &candidates, ask, n, empty));
    match attempt(false) {
        Some(chosen) => Ok(place(rooms, ask, &chosen)),
        None if attempt(true).is_some() => Err(Refused::Busy),
        None => Err(Refused::Never(too_large(ask))),
    }
}

fn too_large(ask: &Ask) -> String {
    let cores = match ask.cpus_per_task {
        1 => String::new(),
        n => format!(" of {n} cores"),
    };
    let gpus = if ask.gpus.is_some() { " and GPUs" } else { "" };
    let tasks = ask.tasks.map_or_else(|| "its tasks".to_owned(), |n| format!("{n} tasks{cores}"));
    format!(
        "the job does not hold the cores{gpus} for {tasks}; ask for fewer, or for more with the job; --overcommit runs \
             more tasks than cores"
    )
}

/// So many nodes with room for all tasks: those that must be, then those with the most room. With each its room.
fn choose(rooms: &[Room], candidates: &[usize], ask: &Ask, count: u32, empty: bool) -> Option<Vec<(usize, u32)>> {
    let tasks = ask.tasks_on(count);
    if tasks > limits::STEP_TASKS {
        return None;
    }
    let mut fits: Vec<(usize, u32)> = candidates.iter().map(|i| (*i, ask.fit(&rooms[*i], empty))).collect();
    fits.sort_by_key(|(i, fit)| (!ask.node_list.contains(&rooms[*i].name), std::cmp::Reverse(*fit), *i));
    fits.truncate(count as usize);
    let room: u64 = fits.iter().map(|(_, fit)| u64::from(*fit)).sum();
    let each = if ask.tasks.is_none() { ask.tasks_per_node.unwrap_or(1) } else { 1 };
    if room < u64::from(tasks) || fits.iter().any(|(_, fit)| *fit < each) {
        return None;
    }
    fits.sort_unstable();
    Some(fits)
}

fn place(rooms: &[Room], ask: &Ask, chosen: &[(usize, u32)]) -> Vec<Place> {
    let tasks = ask.tasks_on(chosen.len() as u32);
    let mut ranks: Vec<Vec<u32>> = vec![Vec::new(); chosen.len()];
    if ask.cyclic {
        let mut rank = 0;
        while rank < tasks {
            for (node, (_, fit)) in ranks.iter_mut().zip(chosen) {
                if rank < tasks && (node.len() as u32) < *fit {
                    node.push(rank);
                    rank += 1;
                }
            }
        }
    } else {
        let mut rank = 0;
        for (node, count) in ranks.iter_mut().zip(counts(ask, chosen, tasks)) {
            node.extend(rank..rank + count);
            rank += count;
        }
    }
    let each = chosen.iter().zip(ranks);
    each.map(|((room, _), tasks)| {
        let (index, room) = (*room, &rooms[*room]);
        let count = tasks.len() as i64;
        let free = || ask.free_devices(room, false);
        let devices = match ask.gpus {
            None => room.devices.clone(),
            Some(Gpus::PerTask(n)) => free().into_iter().take(count as usize * n as usize).collect(),
            Some(Gpus::PerNode(n)) => free().into_iter().take(n as usize).collect(),
        };
        let wanted = (count * ask.milli_per_task()).min((room.cpu_milli - room.used_milli).max(0));
        Place { room: index, tasks, cpu_milli: if ask.overlap { 0 } else { wanted }, devices }
    })
    .collect()
}

/// Tasks of each node, one after the other: each has one, the rest fills them up in order. Where cores do not count, all
/// have about the same.
fn counts(ask: &Ask, chosen: &[(usize, u32)], tasks: u32) -> Vec<u32> {
    let nodes = chosen.len() as u32;
    if ask.overcommit {
        let (even, more) = (tasks / nodes, tasks % nodes);
        return (0..nodes).map(|i| even + u32::from(i < more)).collect();
    }
    let mut left = tasks - nodes;
    let fill = |(_, fit): &(usize, u32)| {
        let more = left.min(fit - 1);
        left -= more;
        1 + more
    };
    chosen.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(number: u32, cores: i64, used: i64) -> Room {
        let name = format!("n{number}");
        Room { node: NodeId(number), name, cpu_milli: cores * 1000, used_milli: used * 1000, ..Room::default() }
    }

    fn ask(wire: v1::StepRequest) -> Ask {
        Ask::read(&wire).unwrap()
    }

    fn shape(rooms: &[Room], wire: v1::StepRequest) -> Result<String, Refused> {
        let places = lay_out(rooms, &ask(wire))?;
        let one = |p: &Place| {
            let ranks: Vec<String> = p.tasks.iter().map(u32::to_string).collect();
            format!("{}:{}/{}", rooms[p.room].name, ranks.join(","), p.cpu_milli / 1000)
        };
        Ok(places.iter().map(one).collect::<Vec<_>>().join(" "))
    }

    fn request(tasks: u32) -> v1::StepRequest {
        v1::StepRequest { tasks: (tasks > 0).then_some(tasks), ..v1::StepRequest::default() }
    }

    #[test]
    fn tasks_fill_one_node_after_the_other_and_each_has_one() {
        let rooms = [room(1, 4, 0), room(2, 4, 0), room(3, 2, 0)];
        let is = |wire, text: &str| assert_eq!(shape(&rooms, wire).unwrap(), text);
        is(request(0), "n1:0/1 n2:1/1 n3:2/1");
        is(request(1), "n1:0/1");
        is(request(5), "n1:0,1,2/3 n2:3/1 n3:4/1");
        is(request(10), "n1:0,1,2,3/4 n2:4,5,6,7/4 n3:8,9/2");
        is(v1::StepRequest { cyclic: true, ..request(7) }, "n1:0,3,6/3 n2:1,4/2 n3:2,5/2");
        is(v1::StepRequest { nodes_min: 2, nodes_max: Some(2), ..request(4) }, "n1:0,1,2/3 n2:3/1");
        is(
            v1::StepRequest { nodes_min: 2, nodes_max: Some(2), tasks_per_node: Some(2), ..request(0) },
            "n1:0,1/2 n2:2,3/2",
        );
        is(v1::StepRequest { cpus_per_task: 2, ..request(4) }, "n1:0,1/4 n2:2/2 n3:3/2");
        is(v1::StepRequest { node_list: vec!["n3".into()], ..request(1) }, "n3:0/1");
        is(v1::StepRequest { node_list: vec!["n3".into()], nodes_min: 2, ..request(2) }, "n1:0/1 n3:1/1");
        is(v1::StepRequest { exclude: vec!["n1".into()], ..request(2) }, "n2:0/1 n3:1/1");
        is(
            v1::StepRequest { overcommit: true, nodes_min: 2, nodes_max: Some(2), ..request(7) },
            "n1:0,1,2,3/4 n2:4,5,6/3",
        );
        is(v1::StepRequest { overlap: true, ..request(2) }, "n1:0/0 n2:1/0");
    }

    #[test]
    fn steps_go_where_there_is_room_and_wait_where_there_is_none() {
        let rooms = [room(1, 2, 2), room(2, 2, 1)];
        assert_eq!(shape(&rooms, request(1)).unwrap(), "n2:0/1");
        assert_eq!(shape(&rooms, request(2)), Err(Refused::Busy));
        assert_eq!(shape(&rooms, v1::StepRequest { overlap: true, ..request(4) }).unwrap(), "n1:0,1/0 n2:2,3/0");
        let never = |wire| match shape(&rooms, wire) {
            Err(Refused::Never(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(never(request(5)).contains("for 5 tasks;"));
        assert!(never(v1::StepRequest { cpus_per_task: 3, ..request(1) }).contains("1 tasks of 3 cores"));
        assert!(never(v1::StepRequest { nodes_min: 3, ..request(0) }).contains("has 2"));
        assert!(never(v1::StepRequest { nodes_min: 2, ..request(1) }).contains("1 tasks cannot run on 2 nodes"));
        assert!(never(v1::StepRequest { node_list: vec!["n9".into()], ..request(1) }).contains("n9"));
        let both = v1::StepRequest { node_list: vec!["n1".into()], exclude: vec!["n1".into()], ..request(1) };
        assert!(never(both).contains("excluded"));
    }

    #[test]
    fn gpus_are_a_steps_own_where_it_asks() {
        let rooms = [Room { devices: vec![0, 1, 2, 3], used_devices: vec![1], ..room(1, 8, 0) }];
        let devices = |wire| lay_out(&rooms, &ask(wire)).map(|places| places[0].devices.clone());
        assert_eq!(devices(request(2)), Ok(vec![0, 1, 2, 3]));
        assert_eq!(devices(v1::StepRequest { gpus_per_task: Some(1), ..request(2) }), Ok(vec![0, 2]));
        assert_eq!(devices(v1::StepRequest { gpus_per_node: Some(3), ..request(1) }), Ok(vec![0, 2, 3]));
        assert_eq!(devices(v1::StepRequest { gpus_per_node: Some(0), ..request(1) }), Ok(vec![]));
        assert_eq!(devices(v1::StepRequest { gpus_per_node: Some(4), ..request(1) }), Err(Refused::Busy));
        let five = v1::StepRequest { gpus_per_task: Some(5), ..request(1) };
        assert!(matches!(devices(five), Err(Refused::Never(text)) if text.contains("and GPUs")));
    }

    #[test]
    fn requests_out_of_bounds_are_refused() {
        let bad = |wire| Ask::read(&wire).unwrap_err();
        assert!(bad(request(limits::STEP_TASKS + 1)).contains("tasks"));
        assert!(bad(v1::StepRequest { nodes_min: 3, nodes_max: Some(2), ..request(0) }).contains("fewer"));
        assert!(
            bad(v1::StepRequest { gpus_per_task: Some(1), gpus_per_node: Some(1), ..request(0) }).contains("not both")
        );
    }

    proptest::proptest! {
        #[test]
        fn every_task_is_placed_once_and_no_core_twice(
            cores in proptest::collection::vec((1i64..5, 0i64..5), 1..6), tasks in 0u32..20, nodes in 0u32..5,
            cpus in 0u32..3, cyclic: bool, overcommit: bool, overlap: bool
        ) {
            let rooms: Vec<Room> = (1..).zip(&cores).map(|(i, (all, used))| room(i, *all, *used.min(all))).collect();
            let nodes_max = (nodes > 2).then_some(nodes);
            let wire = v1::StepRequest {
                nodes_min: nodes, nodes_max, cpus_per_task: cpus, cyclic, overcommit, overlap, ..request(tasks)
            };
            if let Ok(places) = lay_out(&rooms, &ask(wire)) {
                let mut ranks: Vec<u32> = places.iter().flat_map(|p| p.tasks.clone()).collect();
                ranks.sort_unstable();
                proptest::prop_assert!(ranks.iter().copied().eq(0..ranks.len() as u32));
                proptest::prop_assert!(tasks == 0 || ranks.len() == tasks as usize);
                for p in &places {
                    let room = &rooms[p.room];
                    proptest::prop_assert!(!p.tasks.is_empty());
                    proptest::prop_assert!(p.cpu_milli + room.used_milli <= room.cpu_milli || p.cpu_milli == 0);
                }
            }
        }
    }
}
