//! How far a command is: bars on a terminal, lines now and then elsewhere.

use std::cell::Cell;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// How far a batch of queries is: a bar on a terminal, nothing elsewhere.
pub fn batch_bar(path: &Path) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let lines = |text: Vec<u8>| text.split(|b| *b == b'\n').filter(|l| !l.trim_ascii().is_empty()).count() as u64;
    let bar = match fs::metadata(path) {
        Ok(about) if about.is_file() => ProgressBar::new(fs::read(path).map_or(0, lines)),
        _ => ProgressBar::new_spinner(),
    };
    let template = match bar.length() {
        Some(_) => "{wide_bar} {pos}/{len} queries  {per_sec}",
        None => "{spinner} {pos} queries  {per_sec}",
    };
    // A template that does not parse would leave the default style, which is no reason to fail.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
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
fn spoken(d: Duration) -> String {
    let (minutes, seconds) = (d.as_secs() / 60, d.as_secs() % 60);
    match minutes {
        0 => format!("{seconds} s"),
        1..60 => format!("{minutes} min {seconds:02} s"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}
