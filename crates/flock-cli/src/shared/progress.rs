//! How far a command is: bars on a terminal, lines now and then elsewhere.

use std::cell::Cell;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use flock_kg::eval::evaluate::EvalProgress;
use flock_kg::train::{self, Event};
use indicatif::{ProgressBar, ProgressStyle};

/// Without a terminal, training says a line every so often.
const EVERY_STEP_LINE: Duration = Duration::from_secs(10);
/// Without a terminal, an evaluation says a line every so often.
const EVERY_QUERY_LINE: Duration = Duration::from_secs(30);

/// A bar with a message, if anyone is watching.
fn bar_on_terminal() -> Option<ProgressBar> {
    io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    })
}

/// How far a command is with things that it can count: a bar on a terminal, with the time left; else a line now and then, so that
/// short work says nothing.
pub struct CountBar {
    bar: Option<ProgressBar>,
    unit: &'static str,
    done: Cell<u64>,
    total: Cell<Option<u64>>,
    started: Instant,
    said: Cell<Instant>,
}

impl CountBar {
    /// Shows how many of `unit` are done; `total` may be unknown, or known later.
    pub fn new(unit: &'static str, total: Option<u64>) -> CountBar {
        let bar = bar_on_terminal();
        if let Some(bar) = &bar {
            // A template that does not parse would leave the default style, which is no reason to fail.
            if let (None, Ok(style)) = (total, ProgressStyle::with_template("{spinner} {pos} {msg}")) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let now = Instant::now();
        let shown =
            CountBar { bar, unit, done: Cell::new(0), total: Cell::new(total), started: now, said: Cell::new(now) };
        shown.show();
        shown
    }

    /// So many more are done.
    pub fn inc(&self, more: u64) {
        self.done.set(self.done.get() + more);
        self.show();
    }

    /// So many are done, of so many.
    pub fn set(&self, done: u64, total: u64) {
        self.done.set(done);
        self.total.set(Some(total));
        self.show();
    }

    fn show(&self) {
        let (done, total) = (self.done.get(), self.total.get());
        let message = pace(self.unit, done, total, self.started.elapsed());
        if let Some(bar) = &self.bar {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(done);
            bar.set_message(message);
        } else if self.said.get().elapsed() >= EVERY_QUERY_LINE {
            let of = total.map_or(String::new(), |total| format!("/{total}"));
            say!("{done}{of} {message}");
            self.said.set(Instant::now());
        }
    }

    /// Writes around the bar.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `queries · 12.5/s · 3 min 20 s left`; nothing is foretold before something is done.
fn pace(unit: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if done == 0 || seconds < 1e-3 {
        return unit.to_string();
    }
    let rate = done as f64 / seconds;
    let left = total.filter(|total| *total > done).map(|total| Duration::from_secs_f64((total - done) as f64 / rate));
    let left = left.map_or(String::new(), |left| format!(" · {} left", spoken(left)));
    format!("{unit} · {rate:.1}/s{left}")
}

/// How far a batch of queries is. A file has as many as it has lines that are not blank.
pub fn batch_bar(path: &Path) -> CountBar {
    let is_file = io::stderr().is_terminal() && fs::metadata(path).is_ok_and(|about| about.is_file());
    CountBar::new("queries", if is_file { count_lines(path) } else { None })
}

/// Counts the lines of a file that are not blank, a piece at a time.
fn count_lines(path: &Path) -> Option<u64> {
    let mut file = fs::File::open(path).ok()?;
    let (mut count, mut is_blank, mut piece) = (0, true, vec![0; 1 << 16]);
    loop {
        let len = file.read(&mut piece).ok()?;
        if len == 0 {
            return Some(count + u64::from(!is_blank));
        }
        for byte in &piece[..len] {
            if *byte == b'\n' {
                count += u64::from(!is_blank);
                is_blank = true;
            } else {
                is_blank &= byte.is_ascii_whitespace();
            }
        }
    }
}

/// Runs `work`; if that takes more than a second and someone is watching, says what is going on and for how long it has been.
pub fn patiently<T>(what: &str, work: impl FnOnce() -> T) -> T {
    patiently_counting(what, String::new, work)
}

/// The same with what `so_far` says, such as ` 1,200 triples`.
pub fn patiently_counting<T>(what: &str, so_far: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, wait) = mpsc::channel::<()>();
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut err = io::stderr();
            let mut is_shown = false;
            while wait.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = write!(err, "\r\x1b[K{what} …{} {}", so_far(), spoken(started.elapsed()))
                    .and_then(|()| err.flush());
                is_shown = true;
            }
            if is_shown {
                let _ = write!(err, "\r\x1b[K").and_then(|()| err.flush());
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// How far an evaluation is: a bar on a terminal, else a line now and then.
pub struct EvalBar {
    name: String,
    bar: Option<ProgressBar>,
    started: Instant,
    said: Cell<Instant>,
}

impl EvalBar {
    /// Shows how far `name` is.
    pub fn new(name: String) -> EvalBar {
        let bar = bar_on_terminal();
        if let Some(bar) = &bar {
            bar.set_message(name.clone());
        }
        EvalBar { name, bar, started: Instant::now(), said: Cell::new(Instant::now()) }
    }

    /// Tells; false if the run is to stop.
    pub fn tell(&self, p: EvalProgress, stop: &AtomicBool) -> bool {
        let rate = p.now as f64 / self.started.elapsed().as_secs_f64().max(1e-9);
        let left = Duration::from_secs_f64((p.total - p.done) as f64 / rate.max(1e-9));
        let message = format!("{} · {rate:.1} queries/s · {} left", self.name, spoken(left));
        if let Some(bar) = &self.bar {
            bar.set_length(p.total as u64);
            bar.set_position(p.done as u64);
            bar.set_message(message);
        } else if self.said.get().elapsed() >= EVERY_QUERY_LINE {
            say!("{}/{} {message}", p.done, p.total);
            self.said.set(Instant::now());
        }
        !stop.load(Ordering::Relaxed)
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How far training is: a bar on a terminal, else a line now and then.
pub struct TrainBar {
    bar: Option<ProgressBar>,
    said: Instant,
}

impl TrainBar {
    /// Shows nothing so far.
    pub fn new() -> TrainBar {
        TrainBar { bar: bar_on_terminal(), said: Instant::now() }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => say!("{line}"),
        }
    }

    /// Shows what happened.
    pub fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Started { about, resumed } => {
                about.iter().for_each(|line| self.say(line));
                if let Some(step) = resumed {
                    self.say(&format!("resumed at step {step}"));
                }
            }
            Event::Step(progress) => self.step(&progress),
            Event::Testing { done, total } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("testing {done}/{total}"));
                }
            }
            Event::Logged(record) => {
                if let Some(mrr) = record.mrr {
                    let graphs: Vec<String> = record.graphs.iter().map(|(g, mrr)| format!("{g} {mrr:.3}")).collect();
                    self.say(&format!("step {}: validation MRR {mrr:.4} ({})", record.step, graphs.join(", ")));
                }
            }
            Event::Note(note) => self.say(note),
            _ => {}
        }
    }

    fn step(&mut self, p: &train::StepProgress) {
        if let Some(bar) = &self.bar {
            bar.set_length(p.steps);
            bar.set_position(p.step);
            bar.set_message(status(p));
        } else if self.said.elapsed() >= EVERY_STEP_LINE || p.step == p.steps {
            say!("step {}/{}  {}", p.step, p.steps, status(p));
            self.said = Instant::now();
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn status(p: &train::StepProgress) -> String {
    let ratio = p.ratio.map_or(String::new(), |r| format!(" · {r:.2} of peak"));
    format!("loss {:.4} · {:.2} steps/s{ratio} · {} left", p.loss, p.steps_per_s, spoken(p.left))
}

/// A time as people say it.
pub fn spoken(d: Duration) -> String {
    let (minutes, seconds) = (d.as_secs() / 60, d.as_secs() % 60);
    match minutes {
        0 => format!("{seconds} s"),
        1..60 => format!("{minutes} min {seconds:02} s"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_pace_and_time_left() {
        let ten = Duration::from_secs(10);
        assert_eq!(pace("queries", 0, Some(9), ten), "queries");
        assert_eq!(pace("queries", 20, None, ten), "queries · 2.0/s");
        assert_eq!(pace("queries", 20, Some(20), ten), "queries · 2.0/s");
        // 180 at 2 a second.
        assert_eq!(pace("queries", 20, Some(200), ten), "queries · 2.0/s · 1 min 30 s left");
    }

    #[test]
    fn counts_lines_that_are_not_blank() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.tsv");
        for (text, lines) in [("", 0), ("a", 1), ("a\n\n \r\nb\n", 2), (&"x\n".repeat(70_000), 70_000)] {
            fs::write(&path, text).unwrap();
            assert_eq!(count_lines(&path), Some(lines));
        }
    }
}
