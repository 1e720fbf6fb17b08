//! Holds the processes of one attempt, and outlives the agent.

fn main() -> std::process::ExitCode {
    ephor_agent::shim::main()
}
