//! Loading the graph a command works on.

use std::io::{IsTerminal, Write};
use std::sync::mpsc;
use std::time::Duration;

use flock_kg::graph::{self, Graph, LoadReport};

use crate::shared::args::GraphArgs;
use crate::shared::failure::{Failure, error, hint};

/// Loads the graph and says on standard error what was left out, and what looks wrong.
pub fn graph(args: &GraphArgs) -> Result<(Graph, LoadReport), Failure> {
    let name = args.graph.display().to_string();
    let loaded = patiently(&format!("loading {name} …"), || graph::load(&args.graph, &args.reading.options()));
    let (graph, report) = loaded.map_err(error)?;
    if let Some(what) = report.left_out() {
        say!("note: {name}: left out: {what}");
    }
    for warning in report.warnings() {
        say!("warning: {warning}{}", hint(warning.remedy().as_ref()));
    }
    Ok((graph, report))
}

/// Runs `work`; if that takes more than a second and someone is watching, says what is going on.
fn patiently<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
                let mut err = std::io::stderr();
                let _ = write!(err, "{what}").and_then(|()| err.flush());
                let _ = wait.recv();
                let _ = write!(err, "\r\x1b[K");
            }
        });
        let result = work();
        drop(done);
        result
    })
}
