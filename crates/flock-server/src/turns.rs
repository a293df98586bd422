//! Long work in short turns: each piece waits in line with the passes of all other requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::App;
use crate::ask::SingleJob;
use crate::problem::{Code, Problem};

/// A request whose work is done in turns. Dropping it stops the work.
pub struct Turns {
    app: Arc<App>,
    over: Arc<AtomicBool>,
    deadline: Instant,
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Turns {
    /// Turns until the deadline.
    pub fn new(app: &Arc<App>, deadline: Instant) -> Turns {
        Turns { app: app.clone(), over: Arc::new(AtomicBool::new(false)), deadline }
    }

    /// Set when nobody waits any more.
    pub fn over(&self) -> Arc<AtomicBool> {
        self.over.clone()
    }

    /// Does a piece of work when its turn comes, on all threads. `positions` are the walk positions of its passes.
    pub async fn take<T: Send + 'static>(
        &self,
        positions: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let threads = self.app.work.clone();
        let run = move || _ = sender.send(threads.install(work));
        self.app.work.submit(Arc::new(SingleJob { work: Mutex::new(Some(run)), over: self.over.clone(), positions }));
        match tokio::time::timeout_at(self.deadline, receiver).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) if self.app.work.is_closed() => {
                let problem = Problem::new(Code::Ending, "the server is ending");
                Err(problem.remedy("send it again when the server is back"))
            }
            Ok(Err(_)) => Err(Problem::internal("a request ended in a panic")),
            Err(_) => Err(Problem::late()),
        }
    }
}
