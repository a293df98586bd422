//! Ctrl-C in a run that can be taken up again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::shared::failure::Failure;

/// Set by the first Ctrl-C, upon which the run saves its state and ends; the second ends it at once, which does no harm either.
pub fn on_interrupt(what: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        say!("\n{what}; once more to stop at once");
    };
    ctrlc::set_handler(handler).map_err(|e| Failure::Error(format!("cannot watch for Ctrl-C: {e}")))?;
    Ok(stop)
}
