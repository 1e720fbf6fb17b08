//! Waiting for conditions, never for time to pass.

use std::time::Duration;
use tokio::time::{Instant, timeout};

/// No condition of these tests takes this long on the slowest machine that is of use.
const DEADLINE: Duration = Duration::from_secs(60);

/// What `future` gives, or a panic that names it.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what} did not come in {DEADLINE:?}"))
}

/// Returns when `condition` holds.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut pace = tokio::time::interval(Duration::from_millis(2));
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come true in {DEADLINE:?}");
        pace.tick().await;
    }
}
