//! Ends a call that cannot be answered rightly.

/// What the host gave, or the end of the call: the reason is in the log, and the host falls to the role's verdict.
///
/// For what a policy cannot do without, such as a column: an answer made of half its inputs would be wrong without
/// notice.
///
/// # Panics
/// Where the host gave an error.
#[track_caller]
pub fn need<T>(given: Result<T, String>) -> T {
    given.unwrap_or_else(|why| panic!("the host does not give what this policy needs: {why}"))
}
