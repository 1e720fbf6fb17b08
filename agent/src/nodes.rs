//! What a session needs from whoever runs attempts: one real node, or many virtual ones.

use ephor_proto::v1;
use tokio::sync::watch;

/// What the controller is to hear.
#[derive(Debug)]
pub enum News {
    /// Open until acknowledged, whether or not anybody took it from here.
    Report(v1::Report),
    /// Of a part of a step; to be sent once, unless a registration follows, which says as much.
    Step(v1::StepReport),
}

/// The nodes that one session registers.
pub trait Nodes {
    /// How each node introduces itself; the session adds epoch and clock.
    fn registrations(&self) -> Vec<v1::Register>;

    /// Reports of a node that were not acknowledged, oldest first.
    fn open_reports(&self, node: &str) -> Vec<v1::Report>;

    /// Starts an attempt, once: where it is held already, its current report is given again.
    fn launch(&mut self, launch: v1::Launch);

    /// Ends an attempt; its end follows as a report.
    fn terminate(&mut self, order: v1::Terminate);

    /// Gives an attempt another time limit, counted from its start; ignored where it is not held or has ended.
    fn adjust(&mut self, order: v1::Adjust);

    /// Passes a signal on to an attempt.
    fn signal(&mut self, order: v1::Signal);

    /// Ends attempts of which the controller knows nothing, and tells nobody.
    fn forget(&mut self, node: &str, attempts: &[v1::AttemptRef]);

    /// Starts a node's part of a step, once.
    fn launch_step(&mut self, launch: v1::StepLaunch);

    /// Ends parts of steps.
    fn end_steps(&mut self, order: v1::EndSteps);

    /// A report has arrived for good.
    fn acknowledge(&mut self, number: u64);

    /// The next news that comes up. The future may be dropped at any time.
    fn next(&mut self) -> impl Future<Output = News> + Send;

    /// How the GPUs are doing, where somebody looks after them.
    fn gpus(&self) -> Option<watch::Receiver<v1::GpuReport>> {
        None
    }

    /// How many attempts run.
    fn running(&self) -> usize;
}
