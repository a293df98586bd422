//! `flock-kg eval`: ranks of held-out answers on benchmark datasets, or with `--holdout` on a graph of one's own.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use flock_kg::Predictor;
use flock_kg::eval::compare::{Style, caveat, compare};
use flock_kg::eval::datasets::{Dataset, DatasetGroup};
use flock_kg::eval::partial::PartialRun;
use flock_kg::eval::published::PublishedNumbers;
use flock_kg::eval::ranks::{self, RankRow};
use flock_kg::eval::results::write_text;
use flock_kg::eval::seeds::by_dataset;
use flock_kg::eval::sheet::Sheet;
use flock_kg::eval::{
    EvalError, Evaluation, RankMetrics, RankedEvaluation, SeedSummary, TieMetrics, bootstrap, evaluate, evaluate_seeds,
};
use flock_kg::model::checkpoint::Task;
use flock_kg::records::{Cell, Column, OutputFormat};

use crate::commands::holdout;
use crate::shared::failure::{Failure, error, json, message};
use crate::shared::interrupt::on_interrupt;
use crate::shared::load::ReadingArgs;
use crate::shared::models::ModelArgs;
use crate::shared::output::{OutputArgs, Records, check_format, output_format, print, println};
use crate::shared::parse;
use crate::shared::progress::EvalBar;
use crate::shared::protocol::{ProtocolArgs, find_datasets};
use crate::shared::published::Numbers;
use crate::shared::sheet::{print_beside, print_sheet};
use crate::shared::table::grouped;

/// Arguments of `eval`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg eval data/countries.tsv --holdout 0.1
  flock-kg eval path/to/dataset --limit 200
  flock-kg eval FB15k237Inductive_v1 --data DATA --model flock-entity.safetensors
  flock-kg eval Metafam CoDExSmall --data DATA --walks 16 --passes 1 --limit 200
  flock-kg eval inductive_er --data DATA --out results.json --compare published
  flock-kg eval Metafam --data DATA --passes 1 --seeds 5
  flock-kg eval inductive_er --data DATA --model a.safetensors --ranks a.tsv
  flock-kg eval inductive_er --data DATA --model b.safetensors --against a.tsv --without Metafam

With --holdout a seeded random share of a graph's own triples is hidden, both sides of each are asked for, and the result is one \
sentence and a row per relation. No triple is hidden that is the last one of an entity or a relation. Default: 1 pass, as \
predict has it, and at most 1000 of the hidden triples.

Ranks are filtered, and a tie counts against the answer: rank = 1 + the number of candidates that are not known to be true and \
score at least as high. Relations are ranked unfiltered, as published; --details and JSON have the filtered ranks too, and both \
other tie rules (realistic, optimistic), sides, relations, and what the walks reached.

With --seeds 5 every dataset is evaluated with five consecutive seeds of the walks, from --seed on. The tables have the mean over \
seeds and, after each ±, the standard deviation (n − 1); JSON has a result per seed. A sample (--limit) is that of the first seed, \
so that only walks differ.

With --out a run that is cut off goes on where it was when the same command is given again. The same seed and options give \
the same numbers on any number of threads.")]
pub struct EvalArgs {
    /// Datasets by name in --data, or their directories by path (train, valid and test as .txt, .tsv or .csv); a group
    /// (inductive_er, inductive_e, transductive, pretraining) or all stands for those of it in --data. With --holdout graph
    /// files
    #[arg(value_name = "DATASET", required = true)]
    pub datasets: Vec<String>,
    /// Directory with a directory per dataset
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Hide this share of a graph's own triples, such as 0.1, and ask for them
    #[arg(long, value_name = "SHARE", value_parser = parse::share, conflicts_with_all = ["data", "split", "compare", "ranks", "against", "details", "seeds"])]
    pub holdout: Option<f64>,
    /// What is predicted [default: what the models given predict, else entities]
    #[arg(long, value_enum)]
    pub task: Option<TaskArg>,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    /// Evaluate with so many seeds of the walks, from --seed on: mean and standard deviation
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Results as a JSON list on standard output
    #[arg(long)]
    pub json: bool,
    /// Write the results here too, as JSON; a run that is cut off goes on from FILE.partial
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Do not go on with a run that was cut off
    #[arg(long, requires = "out")]
    pub fresh: bool,
    /// Published numbers to put beside ours: published (built in: zero-shot ULTRA, TRIX and Flock),
    /// published-finetuned, or a CSV file; may be given again
    #[arg(long, value_name = "WHICH|FILE", value_parser = Numbers::parse)]
    pub compare: Vec<Numbers>,
    /// Write a row per question here: names, side, rank, score, candidates, reached, kind of question (TSV). With several
    /// --seeds a row per question and seed
    #[arg(long, value_name = "TSV")]
    pub ranks: Option<PathBuf>,
    /// Compare with the --ranks of another run, question by question, and say how sure the difference is. Seeds are joined
    /// if both runs have several, else averaged
    #[arg(long, value_name = "TSV")]
    pub against: Option<PathBuf>,
    /// With --against: the mean once more without this dataset; may be given again
    #[arg(long, value_name = "DATASET", requires = "against")]
    pub without: Vec<String>,
    /// Format of the tables
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = output_format(), conflicts_with = "json")]
    pub output: OutputFormat,
    /// More tables: tie rules, sides, answers reached, kinds of questions, relations
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// What is predicted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum TaskArg {
    /// (h, r, ?) and (?, r, t)
    Entity,
    /// (h, ?, t)
    Relation,
}

impl EvalArgs {
    /// The tasks to evaluate, for each of which there is a model.
    pub fn tasks(&self, predictor: &Predictor) -> Result<Vec<Task>, Failure> {
        let tasks = match self.task {
            Some(TaskArg::Entity) => vec![Task::Entity],
            Some(TaskArg::Relation) => vec![Task::Relation],
            None => predictor.default_tasks(),
        };
        for task in &tasks {
            predictor.model(*task).map_err(error)?;
        }
        Ok(tasks)
    }

    /// Where a run that is cut off goes on from.
    pub fn partial(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(out) = &self.out else { return Ok(None) };
        if out.is_dir() || out.file_name().is_none() {
            return Err(Failure::Error(format!("--out {}: is a directory, expected a file", out.display())));
        }
        Ok(Some(PartialRun::path(out)))
    }

    /// Whether the format has room for one table only. What is more goes to standard error then.
    fn is_one_table(&self) -> bool {
        self.json || matches!(self.output, OutputFormat::Tsv | OutputFormat::Jsonl | OutputFormat::Parquet)
    }
}

/// Evaluates.
pub fn run(args: EvalArgs) -> Result<(), Failure> {
    // Whatever can be refused is refused before the first query is asked.
    check_format(args.output, None)?;
    if let Some(share) = args.holdout {
        return holdout::run(args, share);
    }
    if args.reading.is_given() {
        let message = "--format and what else says how to read a graph file is for --holdout; hint: --output is the format of tables";
        return Err(Failure::Misuse("eval", message.to_string()));
    }
    if args.details && args.is_one_table() {
        let message =
            format!("--details prints several tables, and {} is one; hint: --output table, md or csv", args.output);
        return Err(Failure::Misuse("eval", message));
    }
    let datasets = find_datasets(args.data.as_deref(), &args.datasets)?;
    let mut published = Vec::new();
    for numbers in &args.compare {
        published.extend(numbers.load()?.into_iter().map(|(task, table)| (numbers, task, table)));
    }
    let theirs = args.against.as_deref().map(ranks::read).transpose().map_err(error)?;
    let predictor = args.model.predictor()?;
    let tasks = args.tasks(&predictor)?;
    let partial = args.partial()?;
    let mut record = partial.as_deref().map(|path| PartialRun::open(path, args.fresh)).transpose().map_err(error)?;
    let stop = on_interrupt("stopping after these queries")?;

    // With a file to write there is work to do even if nobody reads the table any more.
    let heard = |said: Result<(), Failure>| match said {
        Err(Failure::PipeClosed) if args.out.is_some() || args.ranks.is_some() => Ok(()),
        said => said,
    };
    let mut results: Vec<Evaluation> = Vec::new();
    let mut ranked: Vec<RankRow> = Vec::new();
    let mut table = ResultsTable::new(&args, &datasets)?;
    for (number, (dataset, task)) in datasets.iter().flat_map(|d| tasks.iter().map(move |t| (d, *t))).enumerate() {
        let named = predictor.model(task).map_err(error)?;
        let bar = |seed: u64| {
            let seed = if args.seeds > 1 { format!(", seed {seed}") } else { String::new() };
            EvalBar::new(format!("{} ({}/{}){seed}", dataset.name, number + 1, datasets.len() * tasks.len()))
        };
        let settings = args.protocol.settings();
        let mut progress = (settings.seed, bar(settings.seed));
        let mut watch = |seed: u64, p: evaluate::EvalProgress| {
            if progress.0 != seed {
                progress.1.end();
                progress = (seed, bar(seed));
            }
            progress.1.tell(p, &stop)
        };
        let mut done = |result: &RankedEvaluation| {
            if args.ranks.is_some() || theirs.is_some() {
                ranked.extend(result.rows());
            }
        };
        let result = evaluate_seeds(
            dataset,
            &named.model,
            &named.name,
            &settings,
            args.seeds,
            predictor.pool(),
            record.as_mut(),
            None,
            &mut watch,
            &mut done,
        );
        progress.1.end();
        let result = match result {
            Err(EvalError::Stopped) => stopped(partial.as_deref()),
            result => result.map_err(|e| Failure::Error(format!("{}: {}", dataset.name, message(&e))))?,
        };
        let first = results.len();
        results.extend(result.runs);
        for line in &results[first].differences {
            say!("warning: {} is not as published: {line}", dataset.name);
        }
        if let Some(out) = &args.out {
            flock_kg::eval::results::write(out, &results).map_err(error)?;
        }
        heard(table.add(&results[first..], &result.summary))?;
    }
    let mut tables = || -> Result<(), Failure> {
        table.end(&results)?;
        if args.details {
            results.iter().try_for_each(|e| details(e, args.output))?;
        }
        for (numbers, task, published) in &published {
            let of: Vec<&Evaluation> = results.iter().filter(|e| task.is_none_or(|task| task == e.task)).collect();
            // A built-in table is chosen by the task; a file is always shown.
            if !of.is_empty() || matches!(numbers, Numbers::File(_)) {
                comparison(&numbers.name(), published, &of, &args)?;
            }
        }
        match &theirs {
            Some(theirs) => against(&ranked, theirs, &args),
            None => Ok(()),
        }
    };
    if let Some(path) = &args.ranks {
        write_ranks(path, &ranked)?;
    }
    heard(tables())?;
    match record {
        Some(record) => record.remove().map_err(error),
        None => Ok(()),
    }
}

/// Says how to go on, and ends as an interrupted program does.
pub fn stopped(partial: Option<&Path>) -> ! {
    match partial {
        Some(path) => say!("stopped; the same command goes on from {}", path.display()),
        None => say!("stopped; hint: with --out FILE the same command would go on from here"),
    }
    std::process::exit(130)
}

/// The main table, a row as soon as a dataset is done.
struct ResultsTable {
    format: Option<OutputFormat>, // none: JSON
    records: Option<Records>,     // for formats of one table: a row per dataset, no means
    name: usize,                  // width of the names
    sampled: bool,
    seeds: bool, // whether there are several
    count: usize,
}

const TITLES: [&str; 12] =
    ["dataset", "task", "queries", "n", "P", "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "coverage", "seconds"];

/// The columns of a row per dataset, for programs.
fn result_columns(seeds: bool) -> Vec<Column> {
    let mut columns = vec![Column::text("dataset"), Column::text("task"), Column::text("split"), Column::text("group")];
    columns.extend(["queries", "n", "passes"].map(Column::integer));
    columns.extend(METRICS.map(Column::number));
    columns.extend(["mrr_interval", "coverage", "seconds"].map(Column::number));
    if seeds {
        columns.push(Column::integer("seeds"));
        columns.extend(METRICS.map(|metric| Column::number(format!("{metric}_deviation"))));
    }
    columns
}

/// The columns of metrics.
pub const METRICS: [&str; 5] = ["mrr", "hits1", "hits3", "hits10", "mean_rank"];

/// The cells of those columns.
pub fn metric_cells(m: &RankMetrics) -> [Cell<'static>; 5] {
    [m.mrr, m.hits1, m.hits3, m.hits10, m.mean_rank].map(Cell::from)
}

fn result_row<'a>(runs: &'a [Evaluation], over_seeds: &SeedSummary) -> Vec<Cell<'a>> {
    let e = &runs[0];
    let names = [e.task.to_string(), e.split.to_string(), e.group.to_string()];
    let mut row = vec![Cell::from(e.dataset.as_str())];
    row.extend(names.map(Cell::from));
    row.extend([e.summary.all.queries.into(), e.protocol.n.into(), e.protocol.passes.into()]);
    row.extend(metric_cells(&over_seeds.mean));
    let (coverage, seconds) = coverage_and_seconds(runs);
    row.extend([e.summary.interval.map(|i| i.mrr).into(), coverage.into(), seconds.into()]);
    if runs.len() > 1 {
        row.push(runs.len().into());
        row.extend(metric_cells(&over_seeds.deviation));
    }
    row
}

/// The mean coverage of the seeds, and the time of all.
fn coverage_and_seconds(runs: &[Evaluation]) -> (f64, f64) {
    let coverage = runs.iter().map(|e| e.summary.coverage).sum::<f64>() / runs.len() as f64;
    (coverage, runs.iter().map(|e| e.seconds).sum())
}

impl ResultsTable {
    fn new(args: &EvalArgs, datasets: &[Dataset]) -> Result<ResultsTable, Failure> {
        let longest = datasets.iter().map(|d| d.name.len()).max().unwrap_or(0);
        let format = (!args.json).then_some(args.output);
        let records = match args.json || !args.is_one_table() {
            true => None,
            false => Some(OutputArgs { output: Some(args.output), out: None }.records(result_columns(args.seeds > 1))?),
        };
        Ok(ResultsTable {
            format,
            records,
            name: longest.max("mean transductive (13)".len()),
            sampled: args.protocol.limit.is_some(),
            seeds: args.seeds > 1,
            count: 0,
        })
    }

    /// Adds the runs of a dataset, one for each seed.
    fn add(&mut self, runs: &[Evaluation], over_seeds: &SeedSummary) -> Result<(), Failure> {
        self.count += 1;
        if let Some(records) = &mut self.records {
            records.row(&result_row(runs, over_seeds))?;
            return records.flush();
        }
        let e = &runs[0];
        match self.format {
            None => {
                let before = if self.count == 1 { "[\n" } else { ",\n" };
                let objects = runs.iter().map(json).collect::<Result<Vec<String>, _>>()?;
                return print(&format!("{before}{}", objects.join(",\n")));
            }
            Some(format) if self.count == 1 => {
                let mut titles: Vec<String> = TITLES.map(String::from).to_vec();
                if self.seeds {
                    let metrics: Vec<String> = titles.splice(5..10, []).filter(|title| title != "mean rank").collect();
                    let pairs = metrics.into_iter().flat_map(|title| [title.clone(), format!("{title} ±")]);
                    let pairs: Vec<String> = std::iter::once("seeds".to_string()).chain(pairs).collect();
                    titles.splice(5..5, pairs);
                }
                if self.sampled {
                    titles.insert(if self.seeds { 8 } else { 6 }, "±95 %".to_string());
                }
                self.line(format, &titles)?;
                if format == OutputFormat::Md {
                    println(&format!("|---|---|{}", "---:|".repeat(titles.len() - 2)))?;
                }
            }
            Some(_) => {}
        }
        let interval = e.summary.interval.map_or("–".to_string(), |i| format!("{:.4}", i.mrr));
        let first = [
            e.dataset.clone(),
            e.task.to_string(),
            e.summary.all.queries.to_string(),
            e.protocol.n.to_string(),
            e.protocol.passes.to_string(),
        ];
        let (coverage, seconds) = coverage_and_seconds(runs);
        self.row(&first, over_seeds, interval, Some(coverage), Some(seconds))
    }

    fn row(
        &self,
        first: &[String; 5],
        over_seeds: &SeedSummary,
        interval: String,
        coverage: Option<f64>,
        seconds: Option<f64>,
    ) -> Result<(), Failure> {
        let Some(format) = self.format else { return Ok(()) };
        let digits = |x: f64| format!("{x:.4}");
        let mut cells = first.to_vec();
        let SeedSummary { seeds, mean: m, deviation: d } = over_seeds;
        let pair = |mean: f64, deviation: f64| match self.seeds {
            true => vec![digits(mean), digits(deviation)],
            false => vec![digits(mean)],
        };
        if self.seeds {
            cells.push(seeds.len().to_string());
        }
        cells.extend(pair(m.mrr, d.mrr));
        if self.sampled {
            cells.push(interval);
        }
        cells
            .extend([(m.hits1, d.hits1), (m.hits3, d.hits3), (m.hits10, d.hits10)].iter().flat_map(|x| pair(x.0, x.1)));
        if !self.seeds {
            cells.push(format!("{:.1}", m.mean_rank));
        }
        cells.push(coverage.map_or(String::new(), digits));
        cells.push(seconds.map_or(String::new(), |s| format!("{s:.1}")));
        self.line(format, &cells)
    }

    fn line(&self, format: OutputFormat, cells: &[String]) -> Result<(), Failure> {
        let text = match format {
            OutputFormat::Table => {
                let pad = |(i, cell): (usize, &String)| match i {
                    0 => format!("{cell:<w$}", w = self.name),
                    1 => format!("{cell:<w$}", w = if i == 1 { 8 } else { 9 }),
                    _ => format!("{cell:>w$}", w = if i == 1 { 8 } else { 9 }),
                };
                cells.iter().enumerate().map(pad).collect::<Vec<_>>().join(" ").trim_end().to_string()
            }
            OutputFormat::Md => format!("| {} |", cells.join(" | ")),
            _ => cells.join(","),
        };
        println(&text)
    }

    /// Means over groups, each dataset counting the same.
    fn end(&mut self, results: &[Evaluation]) -> Result<(), Failure> {
        if let Some(records) = self.records.take() {
            return records.finish();
        }
        if self.format.is_none() {
            return print(if self.count == 0 { "[]\n" } else { "\n]\n" });
        }
        for task in [Task::Entity, Task::Relation] {
            let of = |keep: &dyn Fn(DatasetGroup) -> bool| -> Vec<&Evaluation> {
                results.iter().filter(|e| e.task == task && keep(e.group)).collect()
            };
            for group in DatasetGroup::ALL {
                self.mean(&format!("mean {group}"), task, &of(&|g| g == group))?;
            }
            let all = of(&|g| g != DatasetGroup::Pretraining);
            let groups = DatasetGroup::ALL.iter().filter(|g| all.iter().any(|e| e.group == **g)).count();
            if groups > 1 {
                self.mean("mean", task, &all)?;
            }
        }
        Ok(())
    }

    fn mean(&self, name: &str, task: Task, of: &[&Evaluation]) -> Result<(), Failure> {
        let datasets = by_dataset(of);
        let (count, Some(over_seeds)) = (datasets.len(), SeedSummary::new(of)) else { return Ok(()) };
        if count < 2 {
            return Ok(());
        }
        let first = [format!("{name} ({count})"), task.to_string(), String::new(), String::new(), String::new()];
        // Samples of different datasets are independent.
        let halves = datasets.iter().map(|runs| runs[0].summary.interval.map_or(0.0, |i| i.mrr).powi(2));
        let half = halves.sum::<f64>().sqrt() / count as f64;
        let coverage = of.iter().map(|e| e.summary.coverage).sum::<f64>() / of.len() as f64;
        self.row(&first, &over_seeds, format!("{half:.4}"), Some(coverage), None)
    }
}

/// Tie rules, sides, reached answers and relations of one dataset.
fn details(e: &Evaluation, format: OutputFormat) -> Result<(), Failure> {
    let seed = e.over_seeds.as_ref().map_or(String::new(), |_| format!(", seed {}", e.protocol.seed));
    let title = format!("{}, {}, {}{seed}: {} distinct queries", e.dataset, e.task, e.split, grouped(e.asked as u64));
    println(&match format {
        OutputFormat::Md => format!("\n**{title}**\n"),
        OutputFormat::Csv => format!("\n# {title}"),
        _ => format!("\n{title}"),
    })?;
    let header = ["what", "queries", "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "coverage"];
    let mut sheet = Sheet { header: header.map(String::from).to_vec(), rows: Vec::new() };
    let mut add = |what: &str, queries: usize, m: &RankMetrics, coverage: Option<f64>| {
        let number = |x: f64| format!("{x:.4}");
        let mut row = vec![what.to_string(), queries.to_string(), number(m.mrr), number(m.hits1), number(m.hits3)];
        row.extend([number(m.hits10), format!("{:.1}", m.mean_rank), coverage.map_or(String::new(), number)]);
        sheet.rows.push(row);
    };
    let c = &e.summary;
    let mut three = |what: &str, t: &TieMetrics| {
        add(&format!("{what}, pessimistic"), t.queries, &t.pessimistic, None);
        add(&format!("{what}, realistic"), t.queries, &t.realistic, None);
        add(&format!("{what}, optimistic"), t.queries, &t.optimistic, None);
    };
    three(if e.protocol.filtered { "all" } else { "all, unfiltered" }, &c.all);
    if let Some(filtered) = &c.filtered {
        three("all, filtered", filtered);
    }
    three("reached", &c.reached);
    for (side, t) in &c.sides {
        add(&format!("{side:?}").to_lowercase(), t.queries, &t.pessimistic, None);
    }
    for (kind, t) in &c.strata.half_link {
        let what = if kind == "half_link" { "answer has such an edge" } else { "answer has no such edge" };
        add(what, t.queries, &t.pessimistic, None);
    }
    for (distance, t) in &c.strata.distance {
        add(&format!("distance {distance}"), t.queries, &t.pessimistic, None);
    }
    for r in &c.relations {
        add(&format!("relation {}", r.relation), r.metrics.queries, &r.metrics.pessimistic, Some(r.coverage));
    }
    print_sheet(&sheet, format)
}

/// Ours beside published numbers.
fn comparison(name: &str, published: &PublishedNumbers, of: &[&Evaluation], args: &EvalArgs) -> Result<(), Failure> {
    let caveat = caveat(of).map_or(String::new(), |caveat| format!("; {caveat}"));
    if args.is_one_table() {
        // Standard output is the list; who asked for both still sees the comparison.
        say!("beside {name}{caveat}");
        say!("{}", compare(of, published, Style::Marked("**", "**")).markdown().trim_end());
        return Ok(());
    }
    println(&match args.output {
        OutputFormat::Table => format!("\nbeside {name}, * the best{caveat}"),
        OutputFormat::Md => format!("\nbeside {name}{caveat}\n"),
        _ => String::new(),
    })?;
    print_beside(of, published, args.output)
}

/// Writes the file of `--ranks`, whole or not at all.
fn write_ranks(path: &Path, rows: &[RankRow]) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    ranks::write_header(&mut bytes, rows)?;
    rows.iter().try_for_each(|row| ranks::write_row(&mut bytes, row))?;
    let text = String::from_utf8(bytes).map_err(error)?;
    write_text(path, &text).map_err(error)
}

/// The differences from another run's ranks.
fn against(ours: &[RankRow], theirs: &[RankRow], args: &EvalArgs) -> Result<(), Failure> {
    let pairs = ranks::pair(ours, theirs);
    if pairs.unpaired > 0 {
        say!("warning: {} questions are in one run only; they are left out", grouped(pairs.unpaired as u64));
    }
    if pairs.datasets.is_empty() {
        return Err(Failure::Error(
            "--against: no question in common; hint: the same datasets, split, --limit and --seed".to_string(),
        ));
    }
    let sheet = bootstrap::sheet(&bootstrap::differences(&pairs, &args.without, args.protocol.seed));
    if args.is_one_table() {
        say!("{}", sheet.markdown().trim_end());
        return Ok(());
    }
    println("")?;
    print_sheet(&sheet, args.output)
}
