//! Who computes: a few threads that take one pass at a time from the jobs in turn.
//!
//! While there is work for all, each thread runs whole passes alone, as the engine does at its fastest; a pass that has the machine
//! to itself is shared out among all threads, so that a lone question is answered soonest. Jobs take turns pass by pass: a long
//! one does not hold up the short.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use flock_kg::model::PassBuffers;
use flock_kg::update::Team;

/// Something to compute in several units.
pub trait Job: Send + Sync {
    /// How many units there are; they are run once each, in any order and at the same time.
    fn units(&self) -> usize;
    /// Runs one unit. With [`Team::Pool`] the current rayon pool may be used.
    fn run(&self, unit: usize, buffers: &mut PassBuffers, team: Team);
    /// Whether nobody waits for the rest.
    fn is_over(&self) -> bool;
    /// Whether the time of a unit says what a pass takes.
    fn units_are_passes(&self) -> bool {
        true
    }
}

/// The threads and what waits for them.
pub struct Work {
    state: Mutex<State>,
    wake: Condvar,
    pool: rayon::ThreadPool,
    /// Units run so far.
    pub units: AtomicU64,
    /// What a unit takes of late, in nanoseconds.
    pace: AtomicU64,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<(Arc<dyn Job>, usize)>, // with the next unit
    busy: usize,
    closed: bool,
}

impl Work {
    /// Starts `pool.current_num_threads()` threads beside the pool's own, which only work when asked.
    pub fn start(pool: rayon::ThreadPool) -> Arc<Work> {
        let threads = pool.current_num_threads();
        let work = Arc::new(Work {
            state: Mutex::default(),
            wake: Condvar::new(),
            pool,
            units: AtomicU64::new(0),
            pace: AtomicU64::new(0),
        });
        for _ in 0..threads {
            let work = work.clone();
            std::thread::spawn(move || work.run());
        }
        work
    }

    /// Puts a job in the line.
    pub fn submit(&self, job: Arc<dyn Job>) {
        if job.units() > 0 {
            self.lock().jobs.push_back((job, 0));
            self.wake.notify_all();
        }
    }

    /// Jobs with units that nobody has begun.
    pub fn waiting(&self) -> usize {
        self.lock().jobs.len()
    }

    /// When a job of so many units would be done if it came now: the jobs before it take turns with it, unit by unit.
    pub fn expected(&self, units: usize) -> Duration {
        let state = self.lock();
        let before: usize = state.jobs.iter().map(|(job, next)| (job.units() - next).min(units)).sum();
        let turns = (before + state.busy + units).div_ceil(self.pool.current_num_threads());
        Duration::from_nanos(self.pace.load(Ordering::Relaxed)).saturating_mul(turns as u32)
    }

    /// Runs `work` on the pool's threads.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    /// Lets the threads end; what waits is dropped.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.jobs.clear();
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn run(&self) {
        let mut buffers = PassBuffers::default();
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            let Some((job, unit)) = state.jobs.pop_front() else {
                state = self.wake.wait(state).unwrap_or_else(|e| e.into_inner());
                continue;
            };
            if job.is_over() {
                continue;
            }
            if unit + 1 < job.units() {
                state.jobs.push_back((job.clone(), unit + 1));
            }
            let team = if state.jobs.is_empty() && state.busy == 0 { Team::Pool } else { Team::Solo };
            state.busy += 1;
            drop(state);
            let begin = Instant::now();
            // A panic would be a bug of ours; it must not take the thread with it, and the job's asker sees its channel close.
            let ran = catch_unwind(AssertUnwindSafe(|| match team {
                Team::Pool => self.pool.install(|| job.run(unit, &mut buffers, Team::Pool)),
                Team::Solo => job.run(unit, &mut buffers, Team::Solo),
            }));
            if ran.is_err() {
                buffers = PassBuffers::default();
            }
            if job.units_are_passes() {
                // One part new to seven parts old; two threads that do this at once lose a measurement, no more.
                let (took, pace) = (begin.elapsed().as_nanos() as u64, self.pace.load(Ordering::Relaxed));
                self.pace.store(if pace == 0 { took } else { pace - pace / 8 + took / 8 }, Ordering::Relaxed);
            }
            drop(job);
            self.units.fetch_add(1, Ordering::Relaxed);
            state = self.lock();
            state.busy -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    struct Count {
        ran: Mutex<Vec<usize>>,
        over: AtomicBool,
        done: Mutex<mpsc::Sender<usize>>,
        units: usize,
    }

    impl Job for Count {
        fn units(&self) -> usize {
            self.units
        }
        fn run(&self, unit: usize, _: &mut PassBuffers, _: Team) {
            self.ran.lock().unwrap().push(unit);
            self.done.lock().unwrap().send(unit).unwrap();
            assert!(unit != 3, "unit 3 fails");
        }
        fn is_over(&self) -> bool {
            self.over.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn each_unit_runs_once_and_a_panic_stops_nothing() {
        let work = Work::start(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let (sender, done) = mpsc::channel();
        let jobs: Vec<Arc<Count>> = (0..3)
            .map(|_| {
                let done = Mutex::new(sender.clone());
                Arc::new(Count { ran: Mutex::default(), over: AtomicBool::new(false), done, units: 5 })
            })
            .collect();
        jobs[2].over.store(true, Ordering::Relaxed);
        jobs.iter().for_each(|job| work.submit(job.clone()));
        for _ in 0..10 {
            done.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        }
        for (job, want) in jobs.iter().zip([5, 5, 0]) {
            let mut ran = job.ran.lock().unwrap().clone();
            ran.sort_unstable();
            assert_eq!(ran, (0..want).collect::<Vec<_>>());
        }
        // Fifteen units, ten of them run and nothing left: a job of four takes two turns of two threads.
        while work.lock().busy > 0 {
            std::thread::yield_now();
        }
        work.pace.store(1_000_000, Ordering::Relaxed);
        assert_eq!(work.expected(4), Duration::from_millis(2));
        work.close();
    }
}
