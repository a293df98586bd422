//! `flock-kg info`: what a graph is like, and what a query on it costs.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use flock_kg::graph::{Graph, LoadReport, NameKind, Topology};
use flock_kg::kernels::consensus::logit_columns;
use flock_kg::model::ensemble::{Ask, Asker};
use flock_kg::model::{Metadata, View};
use flock_kg::records::OutputFormat;
use flock_kg::walk::WalkQuery;
use flock_kg::{Predictor, Task};
use serde::Serialize;

use crate::shared::failure::{Failure, error, json};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::output::{OutputArgs, facts};
use crate::shared::table::{self, Align, grouped, printable};

/// Relations listed.
const TOP: usize = 5;
/// Walks are timed up to this base count; beyond it the time is scaled, since it grows with the walks.
const MAX_TIMED: u32 = 128;
/// Queries timed.
const TIMED: usize = 3;

/// Arguments of `info`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  flock-kg info data/countries.tsv\n  flock-kg info graph.nt.gz --json\n  flock-kg info data/countries.tsv --output csv\n  flock-kg info edges.csv nodes.csv"
)]
pub struct InfoArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Further files or directories of the same graph, as with --with
    #[arg(value_name = "FILE")]
    pub more: Vec<PathBuf>,
    /// Show ids instead of labels
    #[arg(long)]
    pub ids: bool,
    /// One JSON object
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// The JSON of the command.
#[derive(Serialize)]
struct InfoReport {
    file: String,
    format: String,
    files: Vec<FileShape>,
    graph: GraphShape,
    query: QueryCost,
}

/// A file, and how it was understood.
#[derive(Serialize)]
struct FileShape {
    file: String,
    format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<String>,
}

/// What the graph is like.
#[derive(Serialize)]
struct GraphShape {
    entities: u32,
    relations: u32,
    triples: usize,
    labels: LabelCounts,
    duplicates: u64,
    literals: u64,
    literals_by_predicate: Vec<PredicateCount>,
    about: u64,
    structure: u64,
    derived: u64,
    blank: u64,
    obsolete: u64,
    named_graphs: u64,
    undirected: u64,
    skipped: u64,
    degree: Degrees,
    isolated: usize,
    components: usize,
    largest_component: u32,
    self_loops: usize,
    top_relations: Vec<RelationCount>,
    bytes: usize,
}

/// Distinct neighbours per entity.
#[derive(Serialize)]
struct Degrees {
    min: u32,
    median: f64,
    mean: f64,
    max: u32,
}

/// How many names have a label.
#[derive(Serialize)]
struct LabelCounts {
    entities: usize,
    relations: usize,
}

/// A property and the number of its literals.
#[derive(Serialize)]
struct PredicateCount {
    name: String,
    literals: u64,
}

/// A relation and how often it occurs.
#[derive(Serialize)]
struct RelationCount {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    triples: usize,
}

/// What one query costs, in one pass.
#[derive(Serialize)]
struct QueryCost {
    task: Task,
    base_walks: u32,
    walks: usize,
    length: usize,
    seconds: f64,
    measured_at_base_walks: u32,
    measured_queries: usize,
    bytes: usize,
    threads: usize,
    simd: String,
    precision: String,
    model: String,
}

/// Describes the graph.
pub fn run(mut args: InfoArgs) -> Result<(), Failure> {
    args.output.check()?;
    let predictor = args.model.predictor()?;
    args.graph.with.append(&mut args.more);
    let (graph, loaded) = load::graph(&args.graph)?;
    let files = loaded.files.iter().map(|file| FileShape {
        file: file.file.clone(),
        format: file.format.to_string(),
        columns: file.table.as_ref().filter(|table| !table.used.is_empty()).map(ToString::to_string),
    });
    let report = InfoReport {
        file: flock_kg::graph::source_name(&args.graph.graph),
        format: loaded.format.to_string(),
        files: files.collect(),
        graph: GraphShape::new(&graph, &loaded),
        query: QueryCost::measure(&graph, &predictor)?,
    };
    if !args.json && args.output.format() != OutputFormat::Table {
        return facts(&args.output, &report);
    }
    let mut out = args.output.text()?;
    if args.json {
        writeln!(out, "{}", json(&report)?)?;
    } else {
        report.write(&mut out, |name| if args.ids { graph.display(name) } else { graph.shown(name) })?;
    }
    out.finish()
}

impl GraphShape {
    fn new(graph: &Graph, loaded: &LoadReport) -> GraphShape {
        let topology = graph.topology();
        let (components, largest_component) = components(topology);
        let mut relations: Vec<u32> = (0..topology.num_relations()).collect();
        let count = |r: &u32| topology.relation_range(*r).len();
        relations.sort_by_key(|r| std::cmp::Reverse(count(r)));
        relations.truncate(TOP);
        let top = relations.iter().map(|r| RelationCount {
            name: graph.relations().get(*r).into(),
            label: graph.labels().relation(*r).map(str::to_string),
            triples: count(r),
        });
        let labels = |kind| graph.labels().of(kind).len();
        GraphShape {
            entities: topology.num_nodes(),
            relations: topology.num_relations(),
            triples: topology.num_triples(),
            labels: LabelCounts { entities: labels(NameKind::Entity), relations: labels(NameKind::Relation) },
            duplicates: loaded.duplicates,
            literals: loaded.literals,
            literals_by_predicate: (loaded.literals_by_predicate.iter())
                .map(|(name, literals)| PredicateCount { name: name.clone(), literals: *literals })
                .collect(),
            about: loaded.about,
            structure: loaded.structure,
            derived: loaded.derived,
            blank: loaded.blank,
            obsolete: loaded.obsolete,
            named_graphs: loaded.graphs,
            undirected: loaded.undirected,
            skipped: loaded.skipped,
            degree: Degrees::new(topology),
            isolated: (0..topology.num_nodes()).filter(|&v| topology.degree(v) == 0).count(),
            components,
            largest_component,
            self_loops: topology.triples().filter(|t| t.head == t.tail).count(),
            top_relations: top.collect(),
            bytes: graph.memory_bytes(),
        }
    }
}

impl Degrees {
    fn new(topology: &Topology) -> Degrees {
        let mut all: Vec<u32> = (0..topology.num_nodes()).map(|v| topology.degree(v)).collect();
        all.sort_unstable();
        let n = all.len().max(1);
        let at = |i: usize| all.get(i).copied().unwrap_or(0);
        Degrees {
            min: at(0),
            median: (f64::from(at((n - 1) / 2)) + f64::from(at(n / 2))) / 2.0,
            mean: all.iter().map(|&d| f64::from(d)).sum::<f64>() / n as f64,
            max: at(n - 1),
        }
    }
}

/// How many connected components there are, and the size of the largest: union-find with path halving, by size.
fn components(topology: &Topology) -> (usize, u32) {
    let mut parent: Vec<u32> = (0..topology.num_nodes()).collect();
    let mut size = vec![1u32; parent.len()];
    let mut count = parent.len();
    let root = |parent: &mut Vec<u32>, mut v: u32| {
        while parent[v as usize] != v {
            parent[v as usize] = parent[parent[v as usize] as usize];
            v = parent[v as usize];
        }
        v
    };
    for triple in topology.triples() {
        let (a, b) = (root(&mut parent, triple.head), root(&mut parent, triple.tail));
        if a != b {
            let (small, large) = if size[a as usize] < size[b as usize] { (a, b) } else { (b, a) };
            parent[small as usize] = large;
            size[large as usize] += size[small as usize];
            count -= 1;
        }
    }
    (count, size.into_iter().max().unwrap_or(0))
}

impl QueryCost {
    /// Asks a few queries of this graph's own edges.
    fn measure(graph: &Graph, predictor: &Predictor) -> Result<QueryCost, Failure> {
        let (topology, pool) = (graph.topology(), predictor.pool());
        let named = predictor.model(Task::Entity).or_else(|_| predictor.model(Task::Relation)).map_err(error)?;
        let (model, task) = (&named.model, named.name.task);
        let base_walks = named.base_walks(graph);
        let timed = base_walks.min(MAX_TIMED);
        let ask = Ask { walks: timed, passes: 1, seed: 0, options: model.walk_options() };
        let asker = Asker::new(model, View { topology, mask: None }, pool);
        let (mut seconds, mut bytes, mut walks) = (Vec::new(), 0, 0);
        // From the middle of TIMED equal shares of the triples; the first is asked once more before, to warm up.
        for i in [0, 0, 1, 2] {
            let at = topology.num_triples() * (2 * i + 1) / (2 * TIMED);
            let triple = topology.triple(at as u32);
            let query = match task {
                Task::Entity => WalkQuery::Entity { head: triple.head, relation: triple.relation },
                Task::Relation => WalkQuery::Relation { head: triple.head, tail: triple.tail },
            };
            let start = Instant::now();
            let scores = asker.ask(&[query], ask).map_err(error)?;
            seconds.push(start.elapsed().as_secs_f64());
            walks = query.num_walks(base_walks);
            let positions = walks * model.meta().length;
            let reached = scores.iter().map(|s| s.reached.len()).max().unwrap_or(0);
            bytes = bytes.max(query_bytes(model.meta(), positions, reached.min(positions)));
        }
        let mut seconds = seconds.split_off(1);
        seconds.sort_by(f64::total_cmp);
        Ok(QueryCost {
            task,
            base_walks,
            walks,
            length: model.meta().length,
            seconds: seconds[seconds.len() / 2] * f64::from(base_walks) / f64::from(timed),
            measured_at_base_walks: timed,
            measured_queries: seconds.len(),
            bytes,
            threads: pool.current_num_threads(),
            simd: model.engine().level().to_string(),
            precision: named.name.precision.clone(),
            model: named.name.origin.clone(),
        })
    }
}

/// The buffers of a pass, about. A position has its sequence state (D) and logits in `f32`, 22 bytes of raw walk and
/// record, and two `u32` each in the node and the type groups. A node met has four rows of D (state, projection, pooled,
/// query) in tables with room to grow by half, and entries in hash tables and score lists.
fn query_bytes(meta: &Metadata, positions: usize, met: usize) -> usize {
    let (width, logits) = (meta.width, logit_columns(meta.heads));
    positions * (4 * (width + logits) + 22 + 16) + met * (4 * 4 * width * 3 / 2 + 256)
}

impl InfoReport {
    fn write<'a>(&'a self, out: &mut dyn Write, show: impl Fn(&'a str) -> Cow<'a, str>) -> io::Result<()> {
        let (g, q) = (&self.graph, &self.query);
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |what: &str, value: String| rows.push(vec![what.to_string(), value]);
        let one = [format!("{} ({})", self.file, self.format)];
        let several = self.files.iter().map(|file| format!("{} ({})", file.file, file.format));
        let files = if self.files.len() == 1 { one.to_vec() } else { several.collect() };
        for (i, (shown, file)) in files.iter().zip(&self.files).enumerate() {
            row(if i == 0 { "graph" } else { "" }, shown.clone());
            if let Some(columns) = &file.columns {
                row("", columns.clone());
            }
        }
        row("entities", grouped(g.entities.into()));
        row("relations", grouped(g.relations.into()));
        let left_out = [
            (g.derived, "from class expressions"),
            (g.undirected, "undirected"),
            (g.named_graphs, "named graphs merged"),
            (g.duplicates, "duplicates dropped"),
            (g.literals, "literals skipped"),
            (g.about, "statements about statements skipped"),
            (g.structure, "statements of class expressions and lists skipped"),
            (g.blank, "statements with blank nodes skipped"),
            (g.obsolete, "obsolete terms skipped"),
            (g.skipped, "bad rows skipped"),
        ];
        let left_out = left_out.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("; {what}: {}", grouped(*n)));
        row("triples", format!("{}{}", grouped(g.triples as u64), left_out.collect::<String>()));
        if g.labels.entities + g.labels.relations > 0 {
            let of = |labels: usize, all: u32| format!("{} of {}", grouped(labels as u64), grouped(all.into()));
            let (entities, relations) = (of(g.labels.entities, g.entities), of(g.labels.relations, g.relations));
            row("labels", format!("{entities} entities, {relations} relations"));
        }
        let counts: Vec<String> = g.literals_by_predicate.iter().map(|p| grouped(p.literals)).collect();
        let width = counts.first().map_or(0, String::len);
        for (i, (count, property)) in counts.iter().zip(&g.literals_by_predicate).enumerate() {
            let name = show(&property.name);
            row(if i == 0 { "literals" } else { "" }, format!("{count:>width$}  {}", printable(&name)));
        }
        let d = &g.degree;
        row(
            "neighbours",
            format!("min {}, median {}, mean {:.1}, max {}", d.min, d.median, d.mean, grouped(d.max.into())),
        );
        row("isolated", grouped(g.isolated as u64));
        let share = 100.0 * f64::from(g.largest_component) / f64::from(g.entities.max(1));
        row("components", format!("{}; the largest has {share:.1} % of the entities", grouped(g.components as u64)));
        row("self-loops", grouped(g.self_loops as u64));
        let counts: Vec<String> = g.top_relations.iter().map(|r| grouped(r.triples as u64)).collect();
        let width = counts.first().map_or(0, String::len);
        for (i, (count, top)) in counts.iter().zip(&g.top_relations).enumerate() {
            let name = show(&top.name);
            row(if i == 0 { "top relations" } else { "" }, format!("{count:>width$}  {}", printable(&name)));
        }
        row("in memory", size(g.bytes));
        row("", String::new());
        row("base walks n", format!("{}, by the rule for a graph of this size", q.base_walks));
        row(
            &format!("{} query", q.task),
            format!("{} walks of {} positions a pass", grouped(q.walks as u64), q.length),
        );
        let how = if q.measured_at_base_walks < q.base_walks {
            format!("scaled up from n = {}", q.measured_at_base_walks)
        } else {
            "measured".to_string()
        };
        row(
            "time",
            format!(
                "{} a pass ({how}, median of {} queries; {} threads, {}, {}, {} model)",
                pass_time(q.seconds),
                q.measured_queries,
                q.threads,
                q.simd,
                q.precision,
                q.model
            ),
        );
        row("memory", format!("{} for a query in work, about, besides the graph", size(q.bytes)));
        table::write(out, &[Align::Left, Align::Left], &rows)
    }
}

fn pass_time(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        _ => format!("{seconds:.1} s"),
    }
}

fn size(bytes: usize) -> String {
    match bytes as f64 / 1e6 {
        mb if mb < 0.1 => format!("{:.0} kB", mb * 1e3),
        mb if mb < 10.0 => format!("{mb:.1} MB"),
        mb if mb < 10_000.0 => format!("{mb:.0} MB"),
        mb => format!("{:.1} GB", mb / 1e3),
    }
}
