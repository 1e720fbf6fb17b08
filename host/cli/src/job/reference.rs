//! Ids of jobs as people type them: `123`, or `123_4` for one element of an array.

use ephor_proto::v1::{Job, JobRef};

/// Reads an id.
///
/// # Errors
/// Every other text.
pub fn parse(text: &str) -> Result<JobRef, String> {
    let (job, index) = match text.split_once('_') {
        Some((job, index)) => (job, Some(index)),
        None => (text, None),
    };
    let plain = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let fail = || "write the id of a job like 123, or of one element of an array like 123_4".to_owned();
    let job = Some(job).filter(|t| plain(t)).and_then(|t| t.parse().ok()).filter(|id| *id > 0).ok_or_else(fail)?;
    let index =
        index.map(|t| Some(t).filter(|t| plain(t)).and_then(|t| t.parse().ok()).ok_or_else(fail)).transpose()?;
    Ok(JobRef { job, index })
}

/// Writes an id.
pub fn show(reference: &JobRef) -> String {
    match reference.index {
        Some(index) => format!("{}_{index}", reference.job),
        None => reference.job.to_string(),
    }
}

/// Whether a row of an answer is, or belongs to, what was asked for.
pub fn names(reference: &JobRef, job: &Job) -> bool {
    match reference.index {
        None => job.id == reference.job || job.array_id == Some(reference.job),
        // The rest of an array that nothing has touched is one row, which stands for all of its elements.
        Some(index) => {
            job.array_id == Some(reference.job) && (job.array_index == Some(index) || job.array_pending.is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_elements() {
        assert_eq!(parse("123"), Ok(JobRef { job: 123, index: None }));
        assert_eq!(parse("123_4").map(|r| show(&r)), Ok("123_4".into()));
        for bad in ["", "0", "x", "1_", "_1", "1_2_3", "-1", "+1", "99999999999999999999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
