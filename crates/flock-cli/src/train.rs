//! What `pretrain`, `finetune` and `petals` share: settings, the machinery of a run, and what it shows while it runs.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flock_kg::gradient::FastGradient;
use flock_kg::kernels::{Precision, peak};
use flock_kg::train::{Event, RunContext, Settings, StepProgress, TrainConfig, TrainError, TrainSummary, train};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::args::Reading;
use crate::failure::{Failure, error, json};
use crate::models;

/// Without a terminal, a line every so often.
const EVERY: Duration = Duration::from_secs(10);

/// Flags of every run.
#[derive(clap::Args, Debug)]
pub struct Common {
    /// Config file (TOML); configs/ has commented examples
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set any value of the config, such as optimiser.rate=1e-4; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Directory of the run; if a run was cut off there, it goes on
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in --out; an error if there is none
    #[arg(long)]
    pub resume: bool,
    /// Seed of weights, data and walks [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads; they do not change the result [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Precision of a step's multiplications: f32, or bf16, which is faster where the processor has it [default: f32]
    #[arg(long, value_parser = ["f32", "bf16"])]
    pub precision: Option<String>,
    /// What came of it as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// The file's settings, then those of `--set`, then the flags.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::new();
        if let Some(file) = &self.config {
            settings.file(file).map_err(error)?;
        }
        for text in &self.set {
            settings.set("--set", text).map_err(error)?;
        }
        put(&mut settings, "--seed", "seed", self.seed);
        put(&mut settings, "--threads", "threads", self.threads);
        put(&mut settings, "--precision", "optimiser.precision", self.precision.clone());
        put(&mut settings, "--out", "output.dir", self.out.as_ref().map(|p| p.display().to_string()));
        Ok(settings)
    }
}

/// Flags of pretraining and fine-tuning: the config's most used keys.
#[derive(clap::Args, Debug)]
pub struct Flags {
    #[command(flatten)]
    pub common: Common,
    /// Training graph: a dataset directory (train.txt, valid.txt, …) or a graph file; may be given again
    #[arg(long, value_name = "PATH")]
    pub graph: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
    /// Steps of the optimiser
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Triples in a batch
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Negatives of each entity question, or all
    #[arg(long, value_name = "N")]
    pub negatives: Option<String>,
    /// Base walk count, or rule: by the size of the graph
    #[arg(long, value_name = "N")]
    pub walks: Option<String>,
    /// Learning rate
    #[arg(long, value_name = "RATE")]
    pub rate: Option<f64>,
}

impl Flags {
    /// As [`Common::settings`].
    pub fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = self.common.settings()?;
        if !self.graph.is_empty() {
            let graphs: Vec<String> = self.graph.iter().map(|p| p.display().to_string()).collect();
            settings.put("--graph", "data.graphs", graphs);
        }
        let Reading { format, columns, header, no_header, lenient } = &self.reading;
        put(&mut settings, "--format", "data.format", format.map(|f| f.to_string()));
        put(&mut settings, "--columns", "data.columns", columns.map(|c| c.map(|c| c + 1).to_vec()));
        put(&mut settings, "--header", "data.header", header.then_some(true));
        put(&mut settings, "--no-header", "data.header", no_header.then_some(false));
        put(&mut settings, "--lenient", "data.lenient", lenient.then_some(true));
        put(&mut settings, "--steps", "steps", self.steps);
        put(&mut settings, "--batch", "data.batch", self.batch);
        let number = |text: &String| text.parse::<u32>().map_or_else(|_| Value::from(text.as_str()), Value::from);
        put(&mut settings, "--negatives", "data.negatives", self.negatives.as_ref().map(number));
        put(&mut settings, "--walks", "walks.n", self.walks.as_ref().map(number));
        put(&mut settings, "--rate", "optimiser.rate", self.rate);
        Ok(settings)
    }
}

/// Puts what a flag says, if it was given.
pub fn put(settings: &mut Settings, flag: &str, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        settings.put(flag, key, value);
    }
}

/// Trains and says what came of it. `dir` is where the run goes if nothing was said.
pub fn run(flags: &Common, config: &TrainConfig, dir: PathBuf) -> Result<(), Failure> {
    let dir = config.output.dir.clone().unwrap_or(dir);
    let precision = config.optimiser.precision.into();
    let summary = with_session(flags, precision, config.threads, |session| train(config, &dir, session))?;
    if flags.json {
        println(&json(&summary)?)?;
    } else {
        println(&describe(&summary))?;
    }
    if !summary.finished {
        stopped(&summary.dir);
    }
    Ok(())
}

fn describe(s: &TrainSummary) -> String {
    let mut lines = vec![format!("{} model, trained on {}", s.task, s.graphs.join(", "))];
    lines.push(format!("  steps     {} in {:.1} minutes", s.steps, s.minutes));
    lines.extend(s.loss.map(|loss| format!("  loss      {loss:.4}")));
    lines.extend(s.before.map(|before| format!("  before    MRR {before:.4} on validation triples")));
    lines.extend(s.best.map(|best| {
        let gain = s.gain.map_or(String::new(), |gain| format!(", gain {gain:+.4}"));
        format!("  best      MRR {:.4} at step {}{gain}", best.mrr, best.step)
    }));
    if s.before.is_some() && s.best.is_some_and(|best| best.step == 0) {
        lines.push("            no step was better than the start, whose weights stay the best".to_string());
    }
    lines.push(format!("  model     {}", s.model));
    lines.push(format!("  curve     {}", s.curve));
    lines.join("\n")
}

/// Says how to go on, and ends as an interrupted program does.
pub fn stopped(dir: &str) -> ! {
    say!("stopped; the same command goes on from {dir}");
    std::process::exit(130)
}

/// A line of data.
pub fn println(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Runs `work` with everything a run needs. The precision is that of the gradient; validation has the full one, as answers do.
pub fn with_session<T>(
    flags: &Common,
    precision: Precision,
    threads: Option<usize>,
    work: impl FnOnce(RunContext<'_>) -> Result<T, TrainError>,
) -> Result<T, Failure> {
    let engine = models::engine(Precision::F32)?;
    let pool = models::pool(threads)?;
    let threads = pool.current_num_threads();
    let mut gradient = FastGradient::new(models::engine(precision)?, threads).map_err(error)?;
    let stop = on_interrupt("stopping after this step")?;
    let mut show = Show::new();
    let session = RunContext {
        bundled: Some(flock_kg::bundled::default_checkpoint),
        gradient: &mut gradient,
        engine,
        pool: &pool,
        peak_gflops: Some(peak::gflops(engine.level(), threads, Duration::from_millis(200))),
        resume: flags.resume,
        stop: &stop,
        watch: &mut |event| show.event(event),
    };
    let result = work(session);
    show.end();
    result.map_err(error)
}

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

/// A bar on a terminal, else a line now and then.
struct Show {
    bar: Option<ProgressBar>,
    said: Instant,
}

impl Show {
    fn new() -> Show {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length();
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Show { bar, said: Instant::now() }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => say!("{line}"),
        }
    }

    fn event(&mut self, event: Event<'_>) {
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

    fn step(&mut self, p: &StepProgress) {
        if let Some(bar) = &self.bar {
            bar.set_length(p.steps);
            bar.set_position(p.step);
            bar.set_message(status(p));
        } else if self.said.elapsed() >= EVERY || p.step == p.steps {
            say!("step {}/{}  {}", p.step, p.steps, status(p));
            self.said = Instant::now();
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn status(p: &StepProgress) -> String {
    let ratio = p.ratio.map_or(String::new(), |r| format!(" · {r:.2} of peak"));
    format!("loss {:.4} · {:.2} steps/s{ratio} · {} left", p.loss, p.steps_per_s, duration(p.left))
}

/// As people say it.
pub fn duration(d: Duration) -> String {
    let (minutes, seconds) = (d.as_secs() / 60, d.as_secs() % 60);
    match minutes {
        0 => format!("{seconds} s"),
        1..60 => format!("{minutes} min {seconds:02} s"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}
