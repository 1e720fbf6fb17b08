//! Running a program in place of the calling process: where it may be, and why it could not be run.

use nix::errno::Errno;
use nix::unistd::{Pid, execve};
use std::ffi::{CString, NulError};

/// Where programs are looked for when there is no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What is said of too many words.
pub const TOO_LONG: &str = "cannot run it: arguments and environment together are too long for this kernel";

/// Tries the places in order, as a shell does it: a file that may not be run hides nothing behind it, but is what is told
/// at the end. Returns only when all failed.
pub fn run(candidates: &[CString], arguments: &[CString], environment: &[CString]) -> Errno {
    let mut why = Errno::ENOENT;
    for path in candidates {
        // Returns only when it failed.
        let Err(error) = execve(path, arguments, environment);
        match error {
            Errno::ENOENT | Errno::ENOTDIR => {}
            Errno::EACCES => why = error,
            _ => return error,
        }
    }
    why
}

/// Says why a program could not be run.
pub fn explain(argv: &[String], why: Errno) -> String {
    let program = argv.first().map_or("", String::as_str);
    match why {
        Errno::E2BIG => TOO_LONG.into(),
        Errno::ENOEXEC => {
            format!("cannot run {program}: it is no program and names no interpreter in its first line")
        }
        why => format!("cannot run {program}: {}", why.desc()),
    }
}

/// The environment of the calling process's program: these entries, and its own number, which nobody knew before.
///
/// # Errors
/// An entry with a NUL byte.
pub fn environment(entries: &[String]) -> Result<Vec<CString>, NulError> {
    let mut all = c_strings(entries)?;
    all.extend(CString::new(format!("SLURM_TASK_PID={}", Pid::this())));
    Ok(all)
}

/// Where a program may be: itself if it names a path, else in each folder of the environment's PATH.
pub fn candidates(argv: &[String], environment: &[String]) -> Vec<CString> {
    let Some(program) = argv.first().filter(|p| !p.is_empty()) else { return Vec::new() };
    if program.contains('/') {
        return CString::new(program.as_str()).into_iter().collect();
    }
    let path = environment.iter().find_map(|e| e.strip_prefix("PATH=")).unwrap_or(DEFAULT_PATH);
    // An empty part means the working folder, as everywhere.
    let folders = path.split(':').map(|f| if f.is_empty() { "." } else { f });
    folders.filter_map(|folder| CString::new(format!("{folder}/{program}")).ok()).collect()
}

/// Texts as the kernel takes them.
///
/// # Errors
/// One with a NUL byte.
pub fn c_strings(texts: &[String]) -> Result<Vec<CString>, NulError> {
    texts.iter().map(|t| CString::new(t.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_in_the_jobs_path() {
        let list = |program: &str, environment: &[&str]| {
            let environment: Vec<_> = environment.iter().map(|e| (*e).to_owned()).collect();
            let found = candidates(&[program.to_owned()], &environment);
            found.into_iter().map(|c| c.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(list("x", &["PATH=/a::/b"]), ["/a/x", "./x", "/b/x"]);
        assert_eq!(list("./x", &["PATH=/a"]), ["./x"]);
        assert_eq!(list("x", &[]), ["/usr/local/bin/x", "/usr/bin/x", "/bin/x"]);
        assert!(list("", &[]).is_empty());
    }
}
