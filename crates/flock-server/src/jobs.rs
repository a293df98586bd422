//! Who computes: a few threads that take one pass at a time from the jobs in turn.
//!
//! While there is work for all, each thread runs whole passes alone, as the engine does at its fastest; a pass that has the machine
//! to itself is shared out among all threads, so that a lone question is answered soonest. Jobs take turns pass by pass: a long
//! one does not hold up the short.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use flock_kg::model::PassBuffers;
use flock_kg::model::update::Parallelism;

/// Something to compute in several units.
pub trait Job: Send + Sync {
    /// How many units there are; they are run once each, in any order and at the same time.
    fn units(&self) -> usize;
    /// Runs one unit. With [`Parallelism::Pool`] the current rayon pool may be used. Returns how long the unit's pass took; nothing
    /// if there was nothing left to do, or if the unit is no pass.
    fn run(&self, unit: usize, buffers: &mut PassBuffers, parallelism: Parallelism) -> Option<Duration>;
    /// Whether nobody waits for the rest.
    fn is_over(&self) -> bool;
    /// Walk positions of some units: walks × length × updates of each pass. The time of a unit grows with them.
    fn positions(&self, units: Range<usize>) -> u64;
    /// Hears that a unit has panicked.
    fn broken(&self) {}
}

/// Thread time per walk position, of late. Passes differ by a factor of hundreds (one walk or 512), positions do not.
#[derive(Copy, Clone, Debug, Default)]
struct Pace {
    nanos: f64,
    positions: f64,
}

impl Pace {
    /// Takes in a pass. Each later pass counts an eighth less, and a long pass more than a short one, whose time is mostly overhead.
    fn note(&mut self, positions: u64, thread_time: Duration) {
        self.nanos += thread_time.as_nanos() as f64 - self.nanos / 8.0;
        self.positions += positions as f64 - self.positions / 8.0;
    }

    /// The time that so many positions take on so many threads; none if nothing has been measured.
    fn time(&self, positions: u64, threads: usize) -> Duration {
        let nanos = self.nanos / self.positions.max(1.0) * positions as f64 / threads.max(1) as f64;
        Duration::from_nanos(nanos.round() as u64)
    }
}

/// The threads and what waits for them.
pub struct Work {
    state: Mutex<QueueState>,
    wake: Condvar,
    pool: Arc<rayon::ThreadPool>,
    /// Units run so far.
    pub units: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<(Arc<dyn Job>, usize)>, // with the next unit
    busy: usize,
    running: u64, // positions of the units that run now
    pace: Pace,
    closed: bool,
}

impl Work {
    /// Starts `pool.current_num_threads()` threads beside the pool's own, which only work when asked.
    pub fn start(pool: Arc<rayon::ThreadPool>) -> Arc<Work> {
        let threads = pool.current_num_threads();
        let work = Arc::new(Work { state: Mutex::default(), wake: Condvar::new(), pool, units: AtomicU64::new(0) });
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

    /// When a job of so many units and positions would be done if it came now. The jobs before it take turns with it, unit by unit, so
    /// of each as many units come first as the new job has.
    pub fn expected(&self, units: usize, positions: u64) -> Duration {
        let state = self.lock();
        let turns = |(job, next): &(Arc<dyn Job>, usize)| {
            let end = next.saturating_add(units).min(job.units());
            job.positions(*next..end)
        };
        let before: u64 = state.jobs.iter().filter(|(job, _)| !job.is_over()).map(turns).sum();
        state.pace.time(before + state.running + positions, self.pool.current_num_threads())
    }

    /// Whether the threads have been told to end.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
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

    fn lock(&self) -> MutexGuard<'_, QueueState> {
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
            let parallelism =
                if state.jobs.is_empty() && state.busy == 0 { Parallelism::Pool } else { Parallelism::OneThread };
            let positions = job.positions(unit..unit + 1);
            state.busy += 1;
            state.running += positions;
            drop(state);
            // A panic would be a bug of ours; it must not take the thread with it, and the job's asker hears of it.
            let ran = catch_unwind(AssertUnwindSafe(|| match parallelism {
                Parallelism::Pool => self.pool.install(|| job.run(unit, &mut buffers, Parallelism::Pool)),
                Parallelism::OneThread => job.run(unit, &mut buffers, Parallelism::OneThread),
            }));
            let took = ran.unwrap_or_else(|_| {
                buffers = PassBuffers::default();
                job.broken();
                None
            });
            drop(job);
            self.units.fetch_add(1, Ordering::Relaxed);
            state = self.lock();
            state.busy -= 1;
            state.running -= positions;
            if let Some(took) = took {
                let threads = if parallelism == Parallelism::Pool { self.pool.current_num_threads() } else { 1 };
                state.pace.note(positions, took * threads as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    struct CountingJob {
        ran: Mutex<Vec<usize>>,
        over: AtomicBool,
        broken: AtomicBool,
        done: Mutex<mpsc::Sender<usize>>,
        units: usize,
    }

    impl Job for CountingJob {
        fn units(&self) -> usize {
            self.units
        }
        fn run(&self, unit: usize, _: &mut PassBuffers, _: Parallelism) -> Option<Duration> {
            self.ran.lock().unwrap().push(unit);
            self.done.lock().unwrap().send(unit).unwrap();
            assert!(unit != 3, "unit 3 fails");
            // Unit 0 has a pass; the others found nothing to do.
            (unit == 0).then_some(Duration::from_millis(20))
        }
        fn is_over(&self) -> bool {
            self.over.load(Ordering::Relaxed)
        }
        fn positions(&self, units: Range<usize>) -> u64 {
            10 * units.len() as u64
        }
        fn broken(&self) {
            self.broken.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_unit_runs_once_and_a_panic_stops_nothing() {
        let work = Work::start(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()));
        let (sender, done) = mpsc::channel();
        let jobs: Vec<Arc<CountingJob>> = (0..3)
            .map(|_| {
                let done = Mutex::new(sender.clone());
                let (over, broken) = (AtomicBool::new(false), AtomicBool::new(false));
                Arc::new(CountingJob { ran: Mutex::default(), over, broken, done, units: 5 })
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
        while work.lock().busy > 0 {
            std::thread::yield_now();
        }
        // What took no pass says nothing of what a pass takes: two units of ten positions and 20 ms (on one thread or two) count.
        let pace = work.lock().pace;
        assert!((18.0..=20.0).contains(&pace.positions) && pace.nanos >= 37.5e6, "{pace:?}");
        assert_eq!(jobs.iter().map(|j| j.broken.load(Ordering::Relaxed)).collect::<Vec<_>>(), [true, true, false]);
        work.close();
    }

    /// A job that never runs: the threads of its tests have been told to end.
    struct WaitingJob {
        units: usize,
        positions: u64,
        over: bool,
    }

    impl Job for WaitingJob {
        fn units(&self) -> usize {
            self.units
        }
        fn run(&self, _: usize, _: &mut PassBuffers, _: Parallelism) -> Option<Duration> {
            None
        }
        fn is_over(&self) -> bool {
            self.over
        }
        fn positions(&self, units: Range<usize>) -> u64 {
            self.positions * units.len() as u64
        }
    }

    /// What one heavy request used to do: its passes of seconds were taken for the time of every pass that waits.
    #[test]
    fn a_heavy_pass_does_not_make_light_ones_look_slow() {
        let work = Work::start(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()));
        work.close();
        // Passes of n = 512 took 4.096 s each, a microsecond for each of their positions; those of n = 1 have 8,000.
        let (heavy, light) = (4_096_000, 8_000);
        for _ in 0..20 {
            work.lock().pace.note(heavy, Duration::from_micros(heavy));
        }
        for _ in 0..63 {
            work.lock().jobs.push_back((Arc::new(WaitingJob { units: 1, positions: light, over: false }), 0));
        }
        // 64 light passes on two threads: 64 × 8 ms / 2. By passes it would be 64 × 4.096 s / 2 = 131 s, and most were refused.
        assert_eq!(work.expected(1, light).as_millis(), 256);
        // A heavy job of 64 passes that is at its 10th takes one turn for a light one's one; what nobody waits for takes none.
        work.lock().jobs.push_back((Arc::new(WaitingJob { units: 64, positions: heavy, over: false }), 10));
        work.lock().jobs.push_back((Arc::new(WaitingJob { units: 64, positions: heavy, over: true }), 10));
        assert_eq!(work.expected(1, light).as_millis(), 256 + 2048);
        // Before a job of 100 passes all 54 that it has left.
        assert_eq!(work.expected(100, 100 * light).as_millis(), 252 + 54 * 2048 + 400);
        // A heavy pass that runs now is counted too.
        work.lock().running = heavy;
        assert_eq!(work.expected(1, light).as_millis(), 256 + 2048 + 2048);
    }

    #[test]
    fn the_pace_follows_the_machine() {
        let mut pace = Pace::default();
        assert_eq!(pace.time(1_000_000, 2), Duration::ZERO);
        pace.note(1000, Duration::from_micros(1000));
        assert_eq!(pace.time(1_000_000, 1).as_millis(), 1000);
        // Light passes, ten times as slow by position: beside a heavy one they hardly count.
        pace.note(100_000, Duration::from_micros(100_000));
        pace.note(10, Duration::from_micros(100));
        assert!((1000..1010).contains(&pace.time(1_000_000, 1).as_millis()));
        // A machine that has become twice as slow is believed after a while.
        for _ in 0..40 {
            pace.note(100_000, Duration::from_micros(200_000));
        }
        assert!((1980..=2000).contains(&pace.time(1_000_000, 1).as_millis()));
    }
}
