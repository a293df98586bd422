//! Long work: on a thread of its own and without the interpreter's lock, with progress, until it is done or Ctrl-C ends it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

use crate::fault::Fault;

/// How often signals are looked at and progress is shown.
pub const TICK: Duration = Duration::from_millis(50);

/// What the work and whoever waits for it tell each other.
#[derive(Default)]
pub struct Control {
    /// Set when the work should end.
    pub cancel: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Control {
    /// Tells how far the work is.
    pub fn tell(&self, done: usize, total: usize) {
        self.done.store(done as u64, Ordering::Relaxed);
        self.total.store(total as u64, Ordering::Relaxed);
    }

    /// Whether the work should go on.
    pub fn goes_on(&self) -> bool {
        !self.cancel.load(Ordering::Relaxed)
    }
}

/// Whether the work has ended, and a bell for it.
#[derive(Default)]
struct Ended {
    flag: Mutex<bool>,
    bell: Condvar,
}

impl Ended {
    fn ring(&self) {
        *self.flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }

    /// Waits for a while. Returns whether the work has ended.
    fn wait(&self) -> bool {
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.bell.wait_timeout_while(flag, TICK, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Rings even if the work panics.
struct RingAtEnd<'e>(&'e Ended);

impl Drop for RingAtEnd<'_> {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// Runs `work` and returns what it returns. `progress` is what the caller of the Python function gave: nothing, true, or a function
/// of the work done and the work in all; `what` is counted.
pub fn wait<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    what: &str,
    work: impl FnOnce(&Control) -> Result<T, Fault> + Send,
) -> PyResult<T> {
    let meter = match progress {
        Some(progress) => Some(py.import("flock_kg._progress")?.call_method1("open_meter", (progress, what))?),
        None => None,
    };
    let meter = meter.filter(|meter| !meter.is_none());
    let (control, ended) = (Control::default(), Ended::default());
    let mut raised: Option<PyErr> = None;
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _ring = RingAtEnd(&ended);
            work(&control)
        });
        while !py.detach(|| ended.wait()) {
            if raised.is_none()
                && let Err(e) = py.check_signals().and_then(|()| show(meter.as_ref(), &control))
            {
                control.cancel.store(true, Ordering::Relaxed);
                raised = Some(e);
            }
        }
        py.detach(|| worker.join())
    });
    if let Some(meter) = &meter {
        let shown = if raised.is_none() { show(Some(meter), &control) } else { Ok(()) };
        let closed = meter.call_method0("close").map(drop);
        raised = raised.or(shown.and(closed).err());
    }
    match (raised, result) {
        (Some(e), _) => Err(e),
        (None, Ok(result)) => result.map_err(|fault| fault.raise(py)),
        // The binding turns it into an exception of its own.
        (None, Err(panic)) => std::panic::resume_unwind(panic),
    }
}

/// Runs `work`, which cannot be told to end, such as reading a file or an endpoint. On Ctrl-C the call ends at once, and the work goes
/// on by itself until it ends; nobody sees what comes of it.
pub fn wait_or_leave<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = sync_channel(1);
    std::thread::spawn(move || _ = send.send(work()));
    let receive = Mutex::new(receive);
    loop {
        let next = py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK));
        match next {
            Ok(result) => return result.map_err(|fault| fault.raise(py)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Fault::other("reading broke off").raise(py)),
        }
    }
}

fn show(meter: Option<&Bound<'_, PyAny>>, control: &Control) -> PyResult<()> {
    let Some(meter) = meter else { return Ok(()) };
    let (done, total) = (control.done.load(Ordering::Relaxed), control.total.load(Ordering::Relaxed));
    meter.call_method1("update", (done, (total > 0).then_some(total))).map(drop)
}
