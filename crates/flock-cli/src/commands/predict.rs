//! `flock-kg predict`: one question, or a batch of them.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use flock_kg::answers::{Ranking, Reply, Request};
use flock_kg::budget::{Stopped, ask_within};
use flock_kg::calibrate::Calibrations;
use flock_kg::checkpoint::Task;
use flock_kg::ensemble::{Ask, Asker, Scores};
use flock_kg::explain::{ExplainOptions, evidence};
use flock_kg::graph::{Graph, Names};
use flock_kg::model::View;
use flock_kg::question::{Blank, Question};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::shared::batch::{self, Row};
use crate::shared::calibrations;
use crate::shared::failure::{Failure, error, json};
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::{self, ModelArgs, Models, NamedModel};
use crate::shared::parse;
use crate::shared::progress::batch_bar;
use crate::shared::table::{self, Align, grouped, printable, probability};

/// Arguments of `predict`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "flock-kg predict [OPTIONS] <GRAPH> <HEAD> <RELATION> <TAIL>      (one of the three is '?')\n       \
                      flock-kg predict [OPTIONS] <GRAPH> --queries <FILE>",
    after_help = "\
Examples:
  flock-kg predict data/countries.tsv Portugal borders '?'
  flock-kg predict data/countries.tsv '?' capital Lisbon --novel --top 3
  flock-kg predict data/countries.tsv Portugal '?' Spain --passes 8
  flock-kg predict data/countries.tsv Portugal continent '?' --budget 2s --explain
  printf 'Portugal\\tborders\\t?\\nFrance\\t?\\tSpain\\n' |
    flock-kg predict data/countries.tsv --queries - --json

Quote the '?': it is always the blank, even if something in the graph is called ?. A name that starts with - goes \
after --.

Rank = 1 + the number of candidates with a strictly higher score; candidates that no walk reached share one score.

With --json each query is one line: query, answers (rank, name, logit, probability, spread, visits, known), unreached, \
candidates, coverage, seed, walks, passes, model; with --explain answers have a reason, with --budget there is stopped, \
after calibrate there is calibration, or calibration_unused with the reason. A query of a batch that fails is reported on standard error (with \
--json also as a line with \"error\"), the others go on, and the exit status is 1.

The same query, seed and options give the same answer, alone or in a batch, on any number of threads; with --budget \
the clock decides how many passes there are."
)]
pub struct PredictArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Head entity, or '?'
    #[arg(required_unless_present = "queries")]
    pub head: Option<String>,
    /// Relation, or '?'
    #[arg(required_unless_present = "queries")]
    pub relation: Option<String>,
    /// Tail entity, or '?'
    #[arg(required_unless_present = "queries")]
    pub tail: Option<String>,
    /// Ask every row of a file: head, relation and tail separated by tabs (by commas if it is a .csv file), one
    /// of them ?; - for standard input. Answers come as they are ready, in the order of the rows
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["head", "relation", "tail"])]
    pub queries: Option<PathBuf>,
    /// Answers to list; 0 for all that a walk reached
    #[arg(long, short = 'k', value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Leave out answers that the graph already has
    #[arg(long)]
    pub novel: bool,
    /// Candidates: only the names in this file, one per line; all of them are ranked
    #[arg(long, value_name = "FILE")]
    pub among: Option<PathBuf>,
    /// Base walk count n: 3n walks for an entity, 4n for a relation [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks, whose logits are averaged; more are steadier and take longer [default: 1]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: Option<u32>,
    /// Add passes until so much time is up for each query (300ms, 2s) or the listed answers stop changing places;
    /// --passes is then the most
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub budget: Option<Duration>,
    /// One line of reason for each answer: the way from the query that weighed most
    #[arg(long)]
    pub explain: bool,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object per query
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Answers what was asked.
pub fn run(args: PredictArgs) -> Result<(), Failure> {
    let texts = match (&args.head, &args.relation, &args.tail) {
        (Some(head), Some(relation), Some(tail)) => Some([head.as_str(), relation, tail]),
        _ => None,
    };
    // Whatever can be refused without the graph is refused before it is loaded.
    if let Some(texts) = texts {
        Blank::find(texts).map_err(|e| Failure::Misuse("predict", e.to_string()))?;
    }
    let standard = [Some(&args.graph.graph), args.queries.as_ref(), args.among.as_ref()];
    if standard.into_iter().flatten().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::Misuse(
            "predict",
            "only one of GRAPH, --queries and --among can be standard input (-)".to_string(),
        ));
    }
    let models = Models::open(&args.model.model, models::engine(args.model.precision)?)?;
    let among = args.among.as_ref().map(Among::read).transpose()?;
    let rows = args.queries.as_deref().map(batch::read).transpose()?;
    let pool = models::pool(args.model.threads)?;
    let (graph, _) = load::graph(&args.graph)?;
    let calibrations = calibrations::find(args.calibration.as_deref(), &args.graph.graph)?;
    let session = Session {
        args: &args,
        graph: &graph,
        models: &models,
        pool: &pool,
        askers: Default::default(),
        among,
        calibrations: &calibrations,
        warned: OnceCell::new(),
    };

    match (texts, rows, &args.queries) {
        (Some(texts), ..) => {
            let question = Question::parse(&graph, texts).map_err(error)?;
            session.model(question.task())?;
            let scores = session.ask(&[question])?;
            let mut out = io::stdout().lock();
            for scores in &scores {
                session.write(&mut out, &question, scores)?;
            }
            Ok(out.flush()?)
        }
        (None, Some(rows), Some(path)) => {
            let bar = batch_bar(path);
            let counts = session.batch(rows, &bar);
            bar.finish_and_clear();
            match counts? {
                (0, _) => say!("warning: {}: no queries", path.display()),
                (_, 0) => {}
                (asked, failed) => {
                    say!("error: {failed} of {asked} queries failed");
                    return Err(Failure::Reported);
                }
            }
            Ok(())
        }
        _ => Err(Failure::Misuse("predict", "expected HEAD RELATION TAIL, or --queries FILE".to_string())),
    }
}

/// The most bytes of a line of `--among`: no name in a graph is longer.
const MAX_NAME: u64 = 64 << 10;

/// The most bytes of `--among`, so that a stream without an end has one.
const MAX_AMONG: u64 = 256 << 20;

/// The names of `--among`, found in the graph when a question of their kind comes.
struct Among {
    file: String,
    names: Names,
    /// Where each name stands first.
    lines: Vec<u64>,
    ids: [OnceCell<Vec<u32>>; 2],
}

impl Among {
    fn read(path: &PathBuf) -> Result<Among, Failure> {
        let file = if path == Path::new("-") { "<stdin>".to_string() } else { path.display().to_string() };
        let cannot = |e: io::Error| format!("{file}: cannot read: {e}");
        let source: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(fs::File::open(path).map_err(cannot)?)
        };
        // One byte more than is taken tells an end from too much.
        let mut reader = BufReader::new(source.take(MAX_AMONG + 1));
        let (mut names, mut lines, mut row) = (Names::new(), Vec::new(), Vec::new());
        let mut total = 0;
        for line in 1u64.. {
            row.clear();
            let len = reader.by_ref().take(MAX_NAME + 1).read_until(b'\n', &mut row).map_err(cannot)? as u64;
            total += len;
            if len == 0 {
                break;
            }
            if len > MAX_NAME && !row.ends_with(b"\n") {
                let limit = MAX_NAME >> 10;
                return Err(format!(
                    "{file}:{line}: found a line of more than {limit} KiB, expected one name per line"
                )
                .into());
            }
            if total > MAX_AMONG {
                let limit = MAX_AMONG >> 20;
                return Err(format!(
                    "{file}:{line}: found more than {limit} MiB of names; hint: leave --among out to rank all"
                )
                .into());
            }
            let text = std::str::from_utf8(&row)
                .map_err(|_| format!("{file}:{line}: invalid UTF-8, expected one name per line"))?;
            let text = if line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            let name = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
            if !name.trim().is_empty() && names.intern(name) as usize == lines.len() {
                lines.push(line);
            }
        }
        if names.is_empty() {
            return Err(Failure::Error(format!("{file}: no names, expected one per line")));
        }
        Ok(Among { file, names, lines, ids: Default::default() })
    }

    fn ids(&self, graph: &Graph, task: Task) -> Result<&[u32], Failure> {
        let slot = &self.ids[task as usize];
        if let Some(ids) = slot.get() {
            return Ok(ids);
        }
        let mut ids = Vec::with_capacity(self.names.len());
        for (line, name) in self.lines.iter().zip(self.names.iter()) {
            let id = match task {
                Task::Entity => graph.parse_entity(name),
                Task::Relation => graph.parse_relation(name),
            };
            ids.push(id.map_err(|e| format!("{}:{line}: {e}", self.file))?);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(slot.get_or_init(|| ids))
    }
}

/// A graph, its models and the options of the command line.
struct Session<'a> {
    args: &'a PredictArgs,
    graph: &'a Graph,
    models: &'a Models,
    pool: &'a rayon::ThreadPool,
    askers: [OnceCell<Asker<'a>>; 2],
    among: Option<Among>,
    calibrations: &'a Calibrations,
    warned: OnceCell<()>, // that they are not used
}

/// The scores of a question and how many passes they took.
struct Answered {
    scores: Scores,
    passes: u32,
    stopped: Option<Stopped>,
}

/// The most passes that reasons are looked for in: they hardly change after.
const EXPLAINED_PASSES: u32 = 4;

/// A query of a batch that has no answer.
#[derive(Serialize)]
struct FailedRow<'a> {
    query: &'a [String],
    line: u64,
    error: &'a str,
}

impl<'a> Session<'a> {
    fn model(&self, task: Task) -> Result<&'a NamedModel, Failure> {
        self.models.get(task)
    }

    /// The candidates of `--among`; a name in it that is none fails every question of its kind.
    fn among(&self, task: Task) -> Result<Option<&[u32]>, Failure> {
        self.among.as_ref().map(|among| among.ids(self.graph, task)).transpose()
    }

    fn how(&self, loaded: &NamedModel) -> Ask {
        let topology = self.graph.topology();
        let rule = || loaded.model.meta().base_walks(topology.num_nodes(), topology.num_triples());
        Ask {
            walks: self.args.walks.unwrap_or_else(rule),
            passes: self.args.passes.unwrap_or(if self.args.budget.is_some() { 4096 } else { 1 }),
            seed: self.args.seed,
            options: loaded.model.walk_options(),
        }
    }

    /// Scores for each question, the model of whose task is there.
    fn ask(&self, questions: &[Question]) -> Result<Vec<Answered>, Failure> {
        let mut answered: HashMap<usize, Answered> = HashMap::new();
        for task in [Task::Entity, Task::Relation] {
            let picked: Vec<usize> = (0..questions.len()).filter(|&i| questions[i].task() == task).collect();
            if picked.is_empty() {
                continue;
            }
            let loaded = self.model(task)?;
            self.among(task)?;
            let view = View { topology: self.graph.topology(), mask: None };
            let asker = self.askers[task as usize].get_or_init(|| Asker::new(&loaded.model, view, self.pool));
            let ask = self.how(loaded);
            if let Some(time) = self.args.budget {
                for i in picked {
                    let (scores, passes, stopped) =
                        ask_within(asker, &questions[i].query, ask, time, |s| self.top(&questions[i], s))
                            .map_err(error)?;
                    answered.insert(i, Answered { scores, passes, stopped: Some(stopped) });
                }
                continue;
            }
            let queries: Vec<_> = picked.iter().map(|&i| questions[i].query).collect();
            let scores = asker.ask(&queries, ask).map_err(error)?.into_iter();
            let passes = ask.passes;
            answered.extend(picked.into_iter().zip(scores.map(|scores| Answered { scores, passes, stopped: None })));
        }
        Ok((0..questions.len()).filter_map(|i| answered.remove(&i)).collect())
    }

    fn request(&self, task: Task) -> Result<Request<'_>, Failure> {
        Ok(Request { top: self.args.top, novel: self.args.novel, among: self.among(task)? })
    }

    /// The ids that would be listed, in order. What cannot be ranked is reported when it is written.
    fn top(&self, question: &Question, scores: &Scores) -> Vec<u32> {
        let topology = self.graph.topology();
        let Ok(request) = self.request(question.task()) else { return Vec::new() };
        let ranking = Ranking::new(scores, question.num_candidates(topology), &question.known(topology), &request);
        ranking.map_or_else(|_| Vec::new(), |r| r.answers.iter().map(|a| a.id).collect())
    }

    /// One reason for each answer of a reply.
    fn with_reasons<'r>(&'r self, reply: Reply<'r>, question: &Question, ask: Ask) -> Result<Reply<'r>, Failure> {
        let model = &self.model(question.task())?.model;
        let view = View { topology: self.graph.topology(), mask: None };
        let ids: Vec<u32> = reply.answers.iter().map(|a| a.id).collect();
        let ask = Ask { passes: ask.passes.min(EXPLAINED_PASSES), ..ask };
        let options = ExplainOptions::default();
        let found = self
            .pool
            .install(|| evidence(&|| true, model, view, &question.query, ask, &ids, &options))
            .map_err(error)?;
        let found: Vec<_> = found.into_iter().map(|(_, evidence)| evidence).collect();
        Ok(reply.with_reasons(self.graph, &found))
    }

    fn write(&self, out: &mut dyn Write, question: &Question, answered: &Answered) -> Result<(), Failure> {
        let task = question.task();
        let loaded = self.model(task)?;
        let ask = Ask { passes: answered.passes, ..self.how(loaded) };
        let mut reply = Reply::new(self.graph, question, &answered.scores, &self.request(task)?, &ask, &loaded.name)
            .map_err(error)?;
        reply.stopped = answered.stopped.map(Stopped::word);
        if let Some(calibration) = self.calibrations.of(task) {
            reply = reply.calibrated(calibration, self.graph.topology());
        }
        if let Some(why) = &reply.calibration_unused
            && self.warned.set(()).is_ok()
        {
            calibrations::warn_unused(self.args.calibration.as_deref(), &self.args.graph.graph, why);
        }
        if self.args.explain {
            reply = self.with_reasons(reply, question, ask)?;
        }
        if self.args.json {
            writeln!(out, "{}", json(&reply)?)?;
        } else {
            self.write_table(out, &reply)?;
        }
        Ok(())
    }

    fn write_table(&self, out: &mut dyn Write, reply: &Reply<'_>) -> io::Result<()> {
        let show = |name: &str| printable(&self.graph.display(name)).into_owned();
        writeln!(out, "{}", reply.query.map(show).join("  "))?;
        let entity = reply.model.task == Task::Entity;
        let mut header = vec!["rank", if entity { "entity" } else { "relation" }, "probability", "logit", "spread"];
        let mut aligns = vec![Align::Right, Align::Left, Align::Right, Align::Right, Align::Right];
        if entity {
            header.push("visits");
            aligns.push(Align::Right);
        }
        header.push("");
        aligns.push(Align::Left);
        if self.args.explain {
            header.push("reason");
            aligns.push(Align::Left);
        }
        let mut rows = vec![header.into_iter().map(str::to_string).collect::<Vec<_>>()];
        for a in &reply.answers {
            let spread = a.spread.map_or_else(|| "–".to_string(), |spread| format!("{spread:.3}"));
            let mut row = vec![
                grouped(a.rank.into()),
                show(a.name),
                probability(a.probability),
                format!("{:+.3}", a.logit),
                spread,
            ];
            row.extend(a.visits.map(|v| grouped(v.into())));
            row.push(if a.known { "known" } else { "" }.to_string());
            if self.args.explain {
                row.push(a.reason.as_ref().map_or_else(|| "–".to_string(), |reason| reason.brief(show)));
            }
            rows.push(row);
        }
        table::write(out, &aligns, &rows)?;
        if let Some(why) = reply.stopped {
            let why = match why {
                "time" => "time was up",
                "steady" => "these answers had stopped changing places",
                _ => "no more were allowed",
            };
            writeln!(out, "{} passes: {why}", grouped(reply.passes.into()))?;
        }
        if let Some(c) = &reply.calibration {
            writeln!(
                out,
                "probabilities are calibrated on this graph: expected error {:.3}, {:.3} without ({} held-out questions)",
                c.error_after,
                c.error_before,
                grouped(c.queries as u64)
            )?;
        }
        let (u, what) = (&reply.unreached, if entity { "entities" } else { "relations" });
        if u.count > 0 {
            writeln!(
                out,
                "{} of {} {what} were not reached by any walk; they share probability {} (rank {})",
                grouped(u.count.into()),
                grouped(reply.candidates.into()),
                probability(u.probability),
                grouped(u.rank.into())
            )?;
        }
        Ok(())
    }

    /// Answers rows as they come, in their order, a group at a time: as many as keep all threads busy, fewer if no more
    /// are there yet, so that a program that asks one by one gets its answer at once. Counts the rows, and those that failed.
    fn batch(&self, rows: Receiver<Result<Row, String>>, bar: &ProgressBar) -> Result<(u64, u64), Failure> {
        let size = (2 * self.pool.current_num_threads()).div_ceil(self.args.passes.unwrap_or(1) as usize);
        let (mut asked, mut failed) = (0u64, 0u64);
        while let Ok(first) = rows.recv() {
            let mut group = vec![first?];
            let mut broken = None;
            while group.len() < size
                && broken.is_none()
                && let Ok(next) = rows.try_recv()
            {
                match next {
                    Ok(row) => group.push(row),
                    Err(problem) => broken = Some(problem),
                }
            }
            let questions: Vec<Result<Question, String>> = group.iter().map(|row| self.question(row)).collect();
            let good: Vec<Question> = questions.iter().flatten().copied().collect();
            let mut scores = self.ask(&good)?.into_iter();
            // Into memory first, then out in one piece, around the progress bar.
            let mut text = Vec::new();
            for (row, question) in group.iter().zip(&questions) {
                match question {
                    Ok(question) => {
                        if !self.args.json && asked > failed {
                            writeln!(text)?;
                        }
                        if let Some(scores) = scores.next() {
                            self.write(&mut text, question, &scores)?;
                        }
                    }
                    Err(problem) => {
                        failed += 1;
                        bar.suspend(|| say!("error: {}: {problem}", row.place));
                        if self.args.json {
                            writeln!(
                                text,
                                "{}",
                                json(&FailedRow { query: &row.fields, line: row.line, error: problem })?
                            )?;
                        }
                    }
                }
                asked += 1;
            }
            bar.suspend(|| {
                let mut out = io::stdout().lock();
                out.write_all(&text).and_then(|()| out.flush())
            })?;
            bar.inc(group.len() as u64);
            // What was read before the file broke off has been answered.
            if let Some(problem) = broken {
                return Err(Failure::Error(problem));
            }
        }
        Ok((asked, failed))
    }

    /// The question of a row that a model can answer.
    fn question(&self, row: &Row) -> Result<Question, String> {
        if let Some(problem) = &row.problem {
            return Err(problem.clone());
        }
        let [head, relation, tail] = &row.fields[..] else { return Err("expected 3 fields".to_string()) };
        let question = Question::parse(self.graph, [head, relation, tail]).map_err(|e| e.to_string())?;
        match self.model(question.task()).and_then(|_| self.among(question.task())) {
            Err(Failure::Error(problem)) => Err(problem),
            _ => Ok(question),
        }
    }
}
