//! What the disk can do, printed beside every figure that hangs on it.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Single 4 KiB appends made durable, per second.
pub fn fsyncs_per_second(folder: &Path) -> anyhow::Result<f64> {
    const TIMES: u32 = 100;
    let path = folder.join("fsync-rate");
    let mut file = std::fs::File::create(&path)?;
    let begun = Instant::now();
    for _ in 0..TIMES {
        file.write_all(&[0u8; 4096])?;
        file.sync_data()?;
    }
    let rate = f64::from(TIMES) / begun.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate.round())
}
