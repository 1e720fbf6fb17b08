//! Child processes that end with their test, and the files that tests need.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// A built binary of the workspace.
///
/// # Panics
/// When it is not built.
pub fn binary(name: &str) -> PathBuf {
    // Tests lie in target/PROFILE/deps, binaries in target/PROFILE.
    let here = std::env::current_exe().expect("a process knows its own path");
    let folder = here.ancestors().find(|a| a.join(name).is_file());
    folder.unwrap_or_else(|| panic!("{name} is not built; run 'make build'")).join(name)
}

/// A built policy.
pub fn plugin(name: &str) -> PathBuf {
    repository().join("target/plugins").join(format!("{name}.wasm"))
}

/// A built hostile component.
pub fn hostile(name: &str) -> PathBuf {
    repository().join("target/hostile").join(format!("hostile-{name}.wasm"))
}

/// A child process that is killed when it goes out of scope.
pub struct Process {
    child: Child,
    /// Its name, for messages.
    pub name: String,
}

impl Process {
    /// Starts it, its output appended to `log`.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Self {
        let file = std::fs::File::options().create(true).append(true).open(log).expect("the log can be written");
        let second = file.try_clone().expect("a file handle can be copied");
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(second)
            .spawn()
            .unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        Self { child, name: name.to_owned() }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // It may have ended already: then there is nobody to tell.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// SIGKILL, and waits for the end.
    pub fn kill9(mut self) {
        self.end();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child can be waited for")
    }

    /// Its exit status, where it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
