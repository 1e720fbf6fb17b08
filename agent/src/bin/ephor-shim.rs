//! Holds the processes of one attempt, and outlives the agent.
fn main() {}
