//! A small cluster of GPUs as a cycle of the policy sees it, written as plainly as possible: jobs start, are made to go,
//! move, and claim what is being given back; savepoints are copies.

mod cycle;

use ephor_sdk::names::{Kind, Names};
use scheduling_fairshare::Config;

/// What a job holds: node, device, thousandths.
pub type Held = Vec<(usize, usize, i64)>;

/// A queue of GPUs, in thousandths.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub parent: Option<usize>,
    pub quota: i64,
    pub limit: Option<i64>,
    pub weight: i64,
    pub priority: i64,
}

/// A job; the number is its place in the order of submission.
#[derive(Clone, Debug)]
pub struct Job {
    pub queue: usize,
    pub pods: usize,
    /// Thousandths of GPUs for each pod.
    pub each: i64,
    /// Gives way, and is less urgent.
    pub train: bool,
    /// Where it runs.
    pub held: Option<Held>,
    /// When it started last.
    pub started: i64,
}

/// A cluster between cycles.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// GPUs of each node.
    pub nodes: Vec<usize>,
    pub queues: Vec<Queue>,
    pub jobs: Vec<Job>,
    /// Times that a job had to go, of all.
    pub evictions: usize,
    /// What was said of jobs, by the last cycle.
    pub said: Vec<(usize, String)>,
    pub now: i64,
    /// Work units of a cycle.
    pub budget: u64,
}

/// Names queues `q0`, `q1` and so on.
pub struct Named;

impl Names for Named {
    fn names(&self, _: Kind, ids: &[u32]) -> Vec<String> {
        ids.iter().map(|id| format!("q{id}")).collect()
    }
    fn id(&self, _: Kind, _: &str) -> Option<u32> {
        None
    }
}

impl Cluster {
    pub fn new(nodes: &[usize], queues: &[Queue]) -> Self {
        let (nodes, queues) = (nodes.to_vec(), queues.to_vec());
        Self { nodes, queues, jobs: Vec::new(), evictions: 0, said: Vec::new(), now: 1_000_000, budget: u64::MAX }
    }

    /// Adds a job.
    pub fn job(mut self, queue: usize, train: bool, pods: usize, each: i64, held: Option<Held>) -> Self {
        self.jobs.push(Job { queue, pods, each, train, held, started: 0 });
        self
    }

    /// One cycle, and everybody who was made to go is gone: whether anything changed.
    pub fn cycle(&mut self, config: &Config) -> bool {
        self.now += 1_000;
        let cycle = cycle::Fake::new(self);
        let _ = scheduling_fairshare::run(&cycle, config, &Named);
        let outcome = cycle.outcome();
        self.said = outcome.said;
        for job in &outcome.gone {
            self.jobs[*job].held = None;
            self.evictions += 1;
        }
        for (job, held) in &outcome.placed {
            assert!(self.jobs[*job].held.is_none(), "job {job} was placed while it ran");
            self.jobs[*job].held = Some(held.clone());
            self.jobs[*job].started = self.now;
        }
        self.check();
        !outcome.gone.is_empty() || !outcome.placed.is_empty()
    }

    /// Cycles until nothing changes, `most` of them; how many there were.
    pub fn settle(&mut self, config: &Config, most: usize) -> usize {
        for n in 0..most {
            if !self.cycle(config) {
                return n;
            }
        }
        panic!("not at rest after {most} cycles: {self:?}");
    }

    /// No device is given away twice, and gangs are whole.
    fn check(&self) {
        let mut used: Vec<Vec<i64>> = self.nodes.iter().map(|gpus| vec![0; *gpus]).collect();
        for job in &self.jobs {
            let Some(held) = &job.held else { continue };
            assert_eq!(held.iter().map(|(_, _, milli)| milli).sum::<i64>(), job.pods as i64 * job.each);
            held.iter().for_each(|(node, device, milli)| used[*node][*device] += milli);
        }
        assert!(used.iter().flatten().all(|milli| *milli <= 1_000), "{used:?}");
    }

    /// What the jobs of a queue and those below hold.
    pub fn holds(&self, queue: usize) -> i64 {
        self.sum_below(queue, |job| job.held.is_some())
    }

    /// What they hold and wait for.
    pub fn asks(&self, queue: usize) -> i64 {
        self.sum_below(queue, |_| true)
    }

    fn sum_below(&self, queue: usize, counts: impl Fn(&Job) -> bool) -> i64 {
        let under = |at: usize| std::iter::successors(Some(at), |at| self.queues[*at].parent).any(|at| at == queue);
        self.jobs.iter().filter(|job| counts(job) && under(job.queue)).map(|job| job.pods as i64 * job.each).sum()
    }

    /// Jobs that run, by number.
    pub fn running(&self) -> Vec<usize> {
        (0..self.jobs.len()).filter(|job| self.jobs[*job].held.is_some()).collect()
    }

    /// The nodes of a job.
    pub fn on(&self, job: usize) -> Vec<usize> {
        let mut nodes: Vec<usize> = self.jobs[job].held.iter().flatten().map(|(node, ..)| *node).collect();
        nodes.dedup();
        nodes
    }
}
