//! The node daemon.

fn main() -> std::process::ExitCode {
    ephor_agent::cli::main()
}
