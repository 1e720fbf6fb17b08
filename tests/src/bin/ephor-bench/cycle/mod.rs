//! What scheduling cycles cost on large clusters with long queues, through the WebAssembly policy and natively.

mod native;
mod scene;

use crate::array::resident_kib;
use crate::figure::Figure;
use ephor_core::command::NodeReport;
use ephor_core::cycle::Plan;
use ephor_core::roles::Scheduling;
use ephor_core::scheduler::Scheduler;
use ephor_core::{Command, Reply};
use ephor_model::{AttemptKey, EndCause, Exit, JobId, JobSpec, Usage};
use ephor_sim::policies::Policies;
use ephor_sim::settings::Settings;
use ephor_sim::simulate::Choice;
use native::Native;
use scene::{CLASSES, NOW, Scene, Size};
use scheduling_backfill::{Config, Reservations};
use serde_json::json;
use std::time::Instant;

/// Promises in each cycle.
const PROMISES: u32 = 100;
/// The size that DESIGN names.
const FULL: Size = Size { nodes: 100_000, pending: 100_000 };

/// A full cycle, one after one change, and the same through the native policy.
pub fn full() -> anyhow::Result<Vec<Figure>> {
    let mut bench = Bench::of(FULL)?;
    let (starts, runs) = bench.full()?;
    let mut figures = vec![bench.figure("cycle_full", "ms", runs, starts), bench.wasm_over_native()?];
    figures.extend(bench.one_change("cycle_one_change")?);
    let resident = resident_kib(std::process::id())? as f64 / 1024.0;
    figures.push(bench.figure("memory_cycle_full", "MiB", vec![resident], starts));
    Ok(figures)
}

/// The verdict that a gang cannot run.
pub fn gang(name: &str, nodes: u32) -> anyhow::Result<Vec<Figure>> {
    let mut bench = Bench::of(Size { nodes, pending: 0 })?;
    // Seven in a hundred nodes are idle or half in use; after this no node is empty.
    while bench.start_one(scene::whole_node())? {}
    let job = bench.scene.submit(scene::gang())?;
    bench.observe();
    let mut runs = Vec::new();
    for _ in 0..9 {
        bench.forget_refusals();
        let (plan, took) = bench.cycle()?;
        anyhow::ensure!(plan.groups.is_empty() && plan.notes.contains_key(&job), "the gang was not refused: {plan:?}");
        runs.push(took);
    }
    Ok(vec![bench.figure(name, "ms", runs, 0)])
}

/// How cycles grow with the nodes and with those that wait.
pub fn growth() -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for nodes in [1_000, 10_000, 100_000] {
        for pending in [1_000, 10_000, 100_000] {
            let mut bench = Bench::of(Size { nodes, pending })?;
            let (starts, runs) = bench.full()?;
            figures.push(bench.figure("cycle_growth_full", "ms", runs, starts));
            figures.extend(bench.one_change("cycle_growth")?);
        }
        figures.extend(gang("cycle_growth_gang_impossible", nodes)?);
    }
    Ok(figures)
}

/// What a pending job takes of the state and of the scheduler, each of its own name and user.
pub fn memory() -> anyhow::Result<Vec<Figure>> {
    let resident = || Ok::<_, anyhow::Error>(resident_kib(std::process::id())? as f64 * 1024.0);
    let mut bench = Bench::of(Size { nodes: 1_000, pending: 10_000 })?;
    let before = resident()?;
    for number in 0..FULL.pending {
        let mut spec = scene::waiting(number);
        spec.name = format!("train-{number}");
        spec.owner.name = format!("user{}", number % 1_000);
        bench.scene.submit(spec)?;
        if number % 1_000 == 0 {
            bench.observe();
        }
    }
    bench.observe();
    let each = (resident()? - before) / f64::from(FULL.pending);
    Ok(vec![bench.figure("memory_pending_job", "bytes", vec![each], 0)])
}

/// A scene, a scheduler that has seen it, and the policy.
struct Bench {
    size: Size,
    scene: Scene,
    scheduler: Scheduler,
    policies: Policies,
}

impl Bench {
    fn of(size: Size) -> anyhow::Result<Self> {
        let mut settings = Settings::default();
        settings.set(&format!("reservations={PROMISES}"))?;
        let (policies, _) = Policies::load(&Choice { settings, ..Choice::default() })?;
        let mut scene = Scene::of(size)?;
        scene.take_events();
        let scheduler = Scheduler::new(&scene.state);
        Ok(Self { size, scene, scheduler, policies })
    }

    fn figure(&self, name: &str, unit: &'static str, runs: Vec<f64>, starts: usize) -> Figure {
        let settings = json!({"nodes": self.size.nodes, "gpus": self.size.nodes * scene::GPUS,
            "running": self.scene.state.attempts.len(), "pending": self.size.pending,
            "classes": CLASSES.min(self.size.pending), "promises": PROMISES, "starts": starts});
        Figure::of(name, unit, runs, settings)
    }

    /// One cycle through the WebAssembly policy, and how many milliseconds it took.
    fn cycle(&mut self) -> anyhow::Result<(Plan, f64)> {
        cycle(&mut self.scheduler, &self.scene, self.policies.work, &mut *self.policies.scheduling)
    }

    /// Makes the next cycle look at everything: nothing is parked.
    fn forget_refusals(&mut self) {
        self.scheduler.wake();
    }

    /// Full cycles on the same state; how many starts each planned.
    fn full(&mut self) -> anyhow::Result<(usize, Vec<f64>)> {
        let (mut starts, mut runs) = (0, Vec::new());
        for _ in 0..5 {
            self.forget_refusals();
            let (plan, took) = self.cycle()?;
            starts = plan.groups.iter().map(|g| g.starts.len()).sum();
            runs.push(took);
        }
        Ok((starts, runs))
    }

    /// How many times as long a full cycle takes through WebAssembly, both in turn on the same state.
    fn wasm_over_native(&mut self) -> anyhow::Result<Figure> {
        let config = Config { reservations: Reservations::PerCycle(PROMISES), ..Config::default() };
        let (mut ratios, mut starts) = (Vec::new(), 0);
        for _ in 0..5 {
            self.forget_refusals();
            let (plan, alone) = cycle(&mut self.scheduler, &self.scene, self.policies.work, &mut Native(config))?;
            self.forget_refusals();
            let (same, took) = self.cycle()?;
            anyhow::ensure!(plan.groups == same.groups, "the policy decides otherwise when it is compiled natively");
            ratios.push(took / alone);
            starts = plan.groups.len();
        }
        Ok(self.figure("wasm_over_native", "times", ratios, starts))
    }

    /// Cycles after one job ended, and after one came, once the plan of a full cycle is a fact.
    fn one_change(&mut self, name: &str) -> anyhow::Result<Vec<Figure>> {
        self.forget_refusals();
        self.settle()?;
        let (mut ended, mut came) = (Vec::new(), Vec::new());
        let running: Vec<JobId> = self.scene.state.attempts.keys().copied().collect();
        let every = (running.len() / 20).max(1);
        for job in running.into_iter().step_by(every).take(20) {
            let key = AttemptKey { job, number: 1 };
            let (exit, usage) = (Exit::default(), Usage::default());
            let report = NodeReport::Ended { key, exit, cause: EndCause::Exited, message: String::new(), usage };
            self.scene.run(Command::NodeReport(report))?;
            self.observe();
            ended.push(self.settle()?);
            self.scene.submit(scene::waiting(key.job.0 as u32))?;
            self.observe();
            came.push(self.settle()?);
        }
        Ok(vec![
            self.figure(&format!("{name}_ended"), "ms", ended, 0),
            self.figure(&format!("{name}_came"), "ms", came, 0),
        ])
    }

    /// A cycle whose plan becomes a fact; how many milliseconds the cycle took.
    fn settle(&mut self) -> anyhow::Result<f64> {
        let (plan, took) = self.cycle()?;
        let Reply::Groups(taken) = self.scene.run(Command::Plan { groups: plan.groups })? else {
            anyhow::bail!("a plan was answered by something else");
        };
        anyhow::ensure!(taken.iter().all(|taken| *taken), "a group was not taken");
        self.scheduler.committed(taken);
        self.observe();
        Ok(took)
    }

    /// Submits a job and lets a cycle start it; whether it did.
    fn start_one(&mut self, spec: JobSpec) -> anyhow::Result<bool> {
        self.scene.submit(spec)?;
        self.observe();
        let before = self.scene.state.attempts.len();
        self.settle()?;
        Ok(self.scene.state.attempts.len() > before)
    }

    fn observe(&mut self) {
        let events = self.scene.take_events();
        self.scheduler.observe(&events, &self.scene.state);
    }
}

fn cycle(
    scheduler: &mut Scheduler,
    scene: &Scene,
    work: u64,
    policy: &mut dyn Scheduling,
) -> anyhow::Result<(Plan, f64)> {
    let begun = Instant::now();
    let plan = scheduler.cycle(&scene.state, NOW, work, policy)?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    anyhow::ensure!(!plan.out_of_budget, "the work units of the cycle were used up");
    Ok((plan, took))
}
