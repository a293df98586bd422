//! Speed as a ratio: useful work per second over this machine's multiply-add peak, measured in the same run.
//!
//! Useful work is counted from the model's definition ([`Metadata::macs_per_position`]),
//! whatever the engine really executes. Machines are noisy: of several runs the best counts, for peak and model alike.

use std::fmt;
use std::time::{Duration, Instant};

use flock_graph::{Mask, Topology, Triple};
use flock_kernels::adamw::AdamW;
use flock_kernels::{Engine, Level, Precision, peak};
use flock_walk::{Key, WalkOptions, WalkQuery, bench_moves};
use serde::Serialize;

use crate::checkpoint::Checkpoint;
use crate::ensemble::{Ask, Asker};
use crate::fast::backward::FastGradient;
use crate::fast::pass::Model;
use crate::fast::update::Stages;
use crate::init::initial_weights;
use crate::input::View;
use crate::metadata::Metadata;
use crate::step::{BaseLoss, Example, Gradient, StepInput};

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Threads of the forward runs.
    pub threads: usize,
    /// Time to spend on each row, about.
    pub time: Duration,
    /// Training steps instead of forward passes.
    pub train: bool,
    /// Base walk count and ensemble passes of each forward row.
    pub forward: &'static [(u32, u32)],
    /// The model, whose weights are drawn anew.
    pub model: Metadata,
}

/// The forward rows of the benchmark command.
pub const FORWARD: &[(u32, u32)] = &[(16, 1), (128, 1)];

/// What was measured. Serialised, it is the command's JSON.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Version of this program.
    pub version: &'static str,
    /// Instruction set of the kernels.
    pub simd: String,
    /// Whether bf16 products run on AVX512-BF16.
    pub native_bf16: bool,
    /// Sizes of the model.
    pub model: BenchModel,
    /// The graph of the forward runs.
    pub graph: BenchGraph,
    /// f32 multiply-add peak of all threads.
    pub peak_f32_gflops: f64,
    /// The same of one thread.
    pub peak_f32_gflops_1t: f64,
    /// Moves of random walks on the same graph, one thread.
    pub walk_moves_per_s_1t: f64,
    /// Forward passes.
    pub forward: Vec<ForwardRow>,
    /// Training steps: gradient and optimiser.
    pub train: Vec<TrainRow>,
}

/// One configuration of a training step.
#[derive(Clone, Debug, Serialize)]
pub struct TrainRow {
    /// Base walk count.
    pub n: u32,
    /// Queries per step.
    pub batch: usize,
    /// `f32` or `bf16`.
    pub precision: String,
    /// Threads.
    pub threads: usize,
    /// Milliseconds per step.
    pub ms_per_step: f64,
    /// Useful GFLOP/s: three times the forward's work.
    pub gflops: f64,
    /// Useful GFLOP/s over the f32 peak of as many threads.
    pub ratio: f64,
    /// Peak resident memory of the process during the row, in MB; 0 where the system does not tell.
    pub peak_rss_mb: f64,
}

/// Sizes of the model.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BenchModel {
    /// Width.
    pub width: usize,
    /// Consensus heads.
    pub heads: usize,
    /// Layers of the sequence processor.
    pub layers: usize,
    /// Parameters.
    pub parameters: u64,
    /// Useful multiply-adds per walk position and update.
    pub macs_per_position: u64,
}

/// Size of the synthetic graph.
#[derive(Clone, Debug, Serialize)]
pub struct BenchGraph {
    /// Entities.
    pub entities: u32,
    /// Relations.
    pub relations: u32,
    /// Triples.
    pub triples: usize,
}

/// One configuration of the forward pass.
#[derive(Clone, Debug, Serialize)]
pub struct ForwardRow {
    /// Base walk count.
    pub n: u32,
    /// Ensemble passes.
    pub passes: u32,
    /// Queries at once.
    pub batch: usize,
    /// `f32` or `bf16`.
    pub precision: String,
    /// Threads.
    pub threads: usize,
    /// Milliseconds per query.
    pub ms_per_query: f64,
    /// Useful GFLOP/s.
    pub gflops: f64,
    /// Useful GFLOP/s over the f32 peak of as many threads.
    pub ratio: f64,
    /// Peak resident memory of the process during the row, in MB; 0 where the system does not tell.
    pub peak_rss_mb: f64,
    /// Milliseconds of thread time per query, by stage.
    pub stages: StageTimes,
}

/// Milliseconds of thread time per query.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct StageTimes {
    pub walk: f64,
    pub record: f64,
    pub project: f64,
    pub embed: f64,
    pub gru: f64,
    pub feed_forward: f64,
    pub consensus: f64,
    pub head: f64,
}

impl StageTimes {
    fn new(s: &Stages, queries: usize) -> StageTimes {
        let ms = |d: Duration| d.as_secs_f64() * 1e3 / queries as f64;
        StageTimes {
            walk: ms(s.walk),
            record: ms(s.record),
            project: ms(s.project),
            embed: ms(s.embed),
            gru: ms(s.gru),
            feed_forward: ms(s.feed_forward),
            consensus: ms(s.consensus),
            head: ms(s.head),
        }
    }

    fn total(&self) -> f64 {
        self.walk + self.record + self.project + self.embed + self.gru + self.feed_forward + self.consensus + self.head
    }

    /// Returns the share of the time that is not projections, embedding and sequence network.
    pub fn overhead(&self) -> f64 {
        (self.walk + self.record + self.consensus + self.head) / self.total()
    }
}

/// Makes a graph of FB15k237's size and skew: endpoints and relations drawn with density falling as a power of their rank.
pub fn synthetic_graph(entities: u32, relations: u32, triples: usize, seed: u64) -> Topology {
    let mut stream = Key { seed, pass: 0, update: 0, query: 0 }.stream(0);
    // u^4.5 of a uniform u. At n = 16 a query's walks then meet 10,930 nodes and an update's 3,853; on FB15k237 itself
    // they meet 10,182 and 3,807, so the synthetic graph is a little dearer.
    let mut skewed = |count: u32| {
        let u = (stream.draw() >> 11) as f64 / (1u64 << 53) as f64;
        ((u.powi(4) * u.sqrt() * f64::from(count)) as u32).min(count - 1)
    };
    let mut all = std::collections::HashSet::with_capacity(triples);
    while all.len() < triples {
        let (head, relation, tail) = (skewed(entities), skewed(relations), skewed(entities));
        // Ranks of heads and tails are shuffled apart, as hubs of one side are rarely hubs of the other.
        let tail = ((u64::from(tail) * 7919 + 13) % u64::from(entities)) as u32;
        all.insert(Triple { head, relation, tail });
    }
    Topology::build(entities, relations, all.into_iter().collect()).unwrap_or_else(|e| panic!("synthetic graph: {e}"))
}

/// Runs the benchmark; `progress` is told what is being measured, and ends it by returning false.
pub fn run(options: BenchOptions, progress: &mut dyn FnMut(&str) -> bool) -> Result<BenchReport, String> {
    let mut progress = |what: &str| if progress(what) { Ok(()) } else { Err("stopped".to_string()) };
    let level = Level::detect()?;
    let threads = options.threads.max(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
    progress("synthetic graph")?;
    // FB15k237: 14,541 entities, 237 relations, 272,115 training triples.
    let graph = synthetic_graph(14_541, 237, 272_115, 1);

    let short = options.time / 4;
    let mut peaks = [0.0f64; 2];
    let mut measure_peak = || {
        for (best, threads) in peaks.iter_mut().zip([1, threads]) {
            *best = best.max(peak::gflops(level, threads, short));
        }
        peaks
    };
    progress("multiply-add peak")?;
    measure_peak();
    progress("walks")?;
    let walk_moves_per_s_1t = bench_moves(&graph, options.time.as_secs_f64());

    let checkpoint = initial_weights(options.model, 0).map_err(|e| e.to_string())?;
    let meta = checkpoint.meta();
    let (mut forward, mut train) = (Vec::new(), Vec::new());
    for precision in [Precision::F32, Precision::Bf16] {
        let Some(engine) = Engine::new(level, precision) else { continue };
        if options.train {
            progress(&format!("training step {precision}, n = 16"))?;
            train.push(train_row(&checkpoint, engine, &graph, threads, 16, options.time)?);
            measure_peak();
            continue;
        }
        let model = Model::new(&checkpoint, engine).map_err(|e| e.to_string())?;
        for &(n, passes) in options.forward {
            let ensemble = if passes > 1 { format!(", P = {passes}") } else { String::new() };
            progress(&format!("forward {precision}, n = {n}{ensemble}"))?;
            forward.push(forward_row(&model, &graph, &pool, n, passes, options.time)?);
            measure_peak();
        }
    }
    let [peak_f32_gflops_1t, peak_f32_gflops] = measure_peak();
    forward.iter_mut().for_each(|row: &mut ForwardRow| row.ratio = row.gflops / peak_f32_gflops);
    train.iter_mut().for_each(|row: &mut TrainRow| row.ratio = row.gflops / peak_f32_gflops);
    Ok(BenchReport {
        version: env!("CARGO_PKG_VERSION"),
        simd: level.to_string(),
        native_bf16: level.has_native_bf16(),
        model: BenchModel {
            width: meta.width,
            heads: meta.heads,
            layers: meta.layers,
            parameters: meta.num_parameters(),
            macs_per_position: meta.macs_per_position(),
        },
        graph: BenchGraph {
            entities: graph.num_nodes(),
            relations: graph.num_relations(),
            triples: graph.num_triples(),
        },
        peak_f32_gflops,
        peak_f32_gflops_1t,
        walk_moves_per_s_1t,
        forward,
        train,
    })
}

/// Steps of a batch of 8 with 512 negatives each, the batch's triples hidden from the walks, as in pretraining.
fn train_row(
    checkpoint: &Checkpoint,
    engine: Engine,
    graph: &Topology,
    threads: usize,
    n: u32,
    time: Duration,
) -> Result<TrainRow, String> {
    const BATCH: usize = 8;
    const NEGATIVES: usize = 512;
    reset_peak_rss();
    let mut weights = checkpoint.weights.clone();
    let mut fast = FastGradient::new(engine, threads).map_err(|e| e.to_string())?;
    let size = weights.values.len();
    let (mut gradient, mut m, mut v) = (vec![0.0; size], vec![0.0; size], vec![0.0; size]);
    let mut draws = Key { seed: 1, pass: 0, update: 0, query: 0 }.stream(1);
    let mut best = Duration::MAX;
    let end = Instant::now() + time;
    let mut round = 0;
    while round < 3 || Instant::now() < end {
        let batch: Vec<Triple> =
            (0..BATCH).map(|_| graph.triple(draws.below(graph.num_triples() as u64) as u32)).collect();
        let mut negatives = || draws.below(u64::from(graph.num_nodes())) as u32;
        let examples: Vec<Example> = batch
            .iter()
            .map(|t| {
                let query = WalkQuery::Entity { head: t.head, relation: t.relation };
                Example::new(query, std::iter::once(t.tail).chain((0..NEGATIVES).map(|_| negatives())).collect())
            })
            .collect();
        let start = Instant::now();
        let mask = Mask::new(graph, &batch);
        let input = StepInput {
            view: View { topology: graph, mask: Some(&mask) },
            examples: &examples,
            walks: n,
            seed: 1,
            step: round,
            options: WalkOptions { length: weights.meta.length, ..WalkOptions::default() },
            loss: BaseLoss::SelfAdversarial { temperature: 1.0 }.into(),
        };
        fast.gradient(&weights, &input, &mut gradient).map_err(|e| e.to_string())?;
        AdamW::default().step(5e-4, u64::from(round) + 1, &mut weights.values, &gradient, &mut m, &mut v);
        if round > 0 {
            best = best.min(start.elapsed());
        }
        round += 1;
    }
    let meta = checkpoint.meta();
    let positions = 3 * u64::from(n) * meta.length as u64 * meta.updates as u64 * BATCH as u64;
    let seconds = best.as_secs_f64();
    Ok(TrainRow {
        n,
        batch: BATCH,
        precision: engine.precision().to_string(),
        threads,
        ms_per_step: seconds * 1e3,
        gflops: 3.0 * 2.0 * (meta.macs_per_position() * positions) as f64 / seconds / 1e9,
        ratio: 0.0,
        peak_rss_mb: peak_rss_mb(),
    })
}

fn forward_row(
    model: &Model,
    graph: &Topology,
    pool: &rayon::ThreadPool,
    n: u32,
    passes: u32,
    time: Duration,
) -> Result<ForwardRow, String> {
    const BATCH: usize = 8;
    reset_peak_rss();
    let asker = Asker::new(model, View { topology: graph, mask: None }, pool);
    let (mut best, mut stages) = (Duration::MAX, Stages::default());
    let begin = Instant::now();
    let mut round = 0;
    // The first round warms buffers and caches. Long rounds need no third.
    while round < 2 || begin.elapsed() < time || round < 3 && begin.elapsed() < 2 * time {
        let queries: Vec<WalkQuery> = graph
            .triples()
            .skip(round * 1009 % 200_000)
            .step_by(7919)
            .take(BATCH)
            .map(|t| WalkQuery::Entity { head: t.head, relation: t.relation })
            .collect();
        let ask = Ask { walks: n, passes, seed: round as u64, options: model.walk_options() };
        let start = Instant::now();
        let scores = asker.ask(&queries, ask).map_err(|e| e.to_string())?;
        let took = start.elapsed();
        if took < best && round > 0 {
            best = took;
            stages = Stages::default();
            scores.iter().for_each(|s| stages.add(&s.stages));
        }
        round += 1;
    }
    let meta = model.meta();
    let positions = 3 * u64::from(n * passes) * meta.length as u64 * meta.updates as u64;
    let seconds = best.as_secs_f64() / BATCH as f64;
    Ok(ForwardRow {
        n,
        passes,
        batch: BATCH,
        precision: model.engine().precision().to_string(),
        threads: pool.current_num_threads(),
        ms_per_query: seconds * 1e3,
        gflops: 2.0 * (meta.macs_per_position() * positions) as f64 / seconds / 1e9,
        ratio: 0.0,
        peak_rss_mb: peak_rss_mb(),
        stages: StageTimes::new(&stages, BATCH),
    })
}

/// Returns the peak resident memory of the process, or since a row began, in MB; 0 where the system does not tell.
pub fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}

/// Forgets the peak so far. Without the right to do so, the peak stays that of the whole process.
fn reset_peak_rss() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.forward.iter().map(|r| r.threads).chain(self.train.iter().map(|r| r.threads)).max();
        writeln!(f, "flock-kg {} · {} · {} threads", self.version, self.simd, threads.unwrap_or(0))?;
        writeln!(
            f,
            "f32 multiply-add peak   {:8.1} GFLOP/s   (one thread {:.1})",
            self.peak_f32_gflops, self.peak_f32_gflops_1t
        )?;
        writeln!(f, "walk moves, one thread  {:8.1} million/s", self.walk_moves_per_s_1t / 1e6)?;
        let BenchModel { width, heads, layers, .. } = self.model;
        if (width, heads, layers) != (64, 4, 1) {
            writeln!(f, "model                    width {width}, {heads} heads, {layers} layers")?;
        }
        let emulated = |p: &str| if p == "bf16" && !self.native_bf16 { "  (bf16 emulated)" } else { "" };
        if !self.train.is_empty() {
            writeln!(f, "\ntraining step, {} entities, {} triples", self.graph.entities, self.graph.triples)?;
            writeln!(f, "  n  batch   precision   ms/step   GFLOP/s  of peak  peak MB")?;
        }
        for row in &self.train {
            let (ms, rss) = (row.ms_per_step, row.peak_rss_mb);
            writeln!(
                f,
                "{:4} {:6}   {:<9} {ms:9.1} {:9.1} {:8.3} {rss:8.0}{}",
                row.n,
                row.batch,
                row.precision,
                row.gflops,
                row.ratio,
                emulated(&row.precision)
            )?;
        }
        if self.forward.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nforward, {} entities, {} triples, batch {}, P = 1",
            self.graph.entities,
            self.graph.triples,
            self.forward.first().map_or(0, |r| r.batch)
        )?;
        writeln!(f, "  n   precision  ms/query   GFLOP/s  of peak  peak MB  walk+record+consensus+head")?;
        for row in &self.forward {
            writeln!(
                f,
                "{:4}   {:<9} {:9.2} {:9.1} {:8.3} {:8.0}  {:5.1} %{}",
                row.n,
                row.precision,
                row.ms_per_query,
                row.gflops,
                row.ratio,
                row.peak_rss_mb,
                100.0 * row.stages.overhead(),
                emulated(&row.precision)
            )?;
        }
        writeln!(f, "\nthread time by stage, ms per query")?;
        writeln!(f, "  n   precision    walk  record  project  embed     gru  feed-fwd  consensus  head")?;
        for row in &self.forward {
            let s = &row.stages;
            writeln!(
                f,
                "{:4}   {:<9} {:7.2} {:7.2} {:8.2} {:6.2} {:7.2} {:9.2} {:10.2} {:5.2}",
                row.n, row.precision, s.walk, s.record, s.project, s.embed, s.gru, s.feed_forward, s.consensus, s.head
            )?;
        }
        Ok(())
    }
}
