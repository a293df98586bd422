//! `flock-kg complete`: the links that a graph most likely lacks.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use flock_kg::complete::{
    CompleteOptions, Completion, Links, MOST_LINKS, Order, Pairs, RankBy, Scope, Search, SearchEnd, SearchError,
    SearchLimits, SearchProgress, Sides, link_columns, write_link, write_links,
};
use flock_kg::records::grouped;
use flock_kg::{AskError, Graph, Inquiry};
use serde::Serialize;

use crate::shared::calibrations;
use crate::shared::failure::{Failure, error, json};
use crate::shared::interrupt::on_interrupt;
use crate::shared::load::{self, GraphArgs};
use crate::shared::models::ModelArgs;
use crate::shared::output::{OutputArgs, Records, beside, println};
use crate::shared::parse;
use crate::shared::progress::{CountBar, patiently, spoken};

/// Questions that are asked to see how long one takes.
const TRIED: usize = 16;

/// Arguments of `complete`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg complete data/medicines.tsv --relation treats --top 20
  flock-kg complete data/medicines.tsv --head metformin --explain
  flock-kg complete data/medicines.tsv --dry-run
  flock-kg complete data/medicines.tsv --budget 30m --out links.csv
  flock-kg complete big.tsv --shard 1/4 --out links-1.jsonl   # and 2/4, 3/4, 4/4 elsewhere, then
  flock-kg merge links-*.jsonl --out links.csv

Questions are asked about pairs of an entity and a relation; each scores all answers. Pairs that are expected to lack most links \
come first. A link that is listed has been asked for from both ends, as the tail of (head, relation, ?) and as the head of \
(?, relation, tail); its score is that of the mean of the two logits. tail_rank and head_rank are its ranks in these two questions \
among all that the graph does not have. specificity is its share of the odds among all answers, as the geometric mean of both \
questions: entities that score high everywhere have a low one. Links are ranked by it, or with --rank-by score by the score.

With --out (or --state) the work is written down every ten seconds. After a kill, the same command goes on where it was. Without \
a budget, the list does not depend on threads, interruptions or luck: the same graph, seed and options give the same list.")]
pub struct CompleteArgs {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Only links of this relation
    #[arg(long, short, value_name = "NAME")]
    pub relation: Option<String>,
    /// Only links of this head
    #[arg(long, value_name = "NAME")]
    pub head: Option<String>,
    /// Only links of this tail
    #[arg(long, value_name = "NAME")]
    pub tail: Option<String>,
    /// Links to list
    #[arg(long, short = 'k', value_name = "K", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=MOST_LINKS as i64))]
    pub top: u32,
    /// Entities to ask about: observed (those that the relation has in that place), compatible (and those that have something in
    /// common with them), all
    #[arg(long, value_name = "WHICH", default_value_t = Pairs::Compatible)]
    pub pairs: Pairs,
    /// Questions that look for links: tails, heads, both. Whichever they are, listed links are asked for from both ends
    #[arg(long, value_name = "WHICH", default_value_t = Search::Both)]
    pub search: Search,
    /// What links are ranked by: specificity, score
    #[arg(long, value_name = "WHAT", default_value_t = RankBy::Specificity)]
    pub rank_by: RankBy,
    /// Order of the questions: expected (most missing links first), random (to compare with)
    #[arg(long, value_name = "ORDER", default_value_t = Order::Expected, hide = true)]
    pub order: Order,
    /// Say how many questions there are and how long they take, and ask none
    #[arg(long)]
    pub dry_run: bool,
    /// Stop after so much time (90s, 30m, 8h); the best pairs come first, and time is kept for the other ends of the best links
    #[arg(long, value_name = "TIME", value_parser = parse::long_duration)]
    pub budget: Option<Duration>,
    /// Ask at most so many questions to look for links
    #[arg(long, value_name = "N", value_parser = parse::positive)]
    pub questions: Option<usize>,
    /// Do one part of the work, such as 1/4; merge puts the lists together
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(u32, u32)>,
    /// Write each link as soon as both of its ends were asked for and it is among the best so far, instead of a list at the end
    #[arg(long, conflicts_with = "explain")]
    pub stream: bool,
    /// Keep the work here, to go on after an interruption [default: FILE.state with --out FILE]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// One line of reason for each link: the path that weighed most
    #[arg(long, alias = "reasons")]
    pub explain: bool,
    /// Base walk count n: 3n walks for each question [default: by the size of the graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub walks: Option<u32>,
    /// Passes with fresh walks, whose logits are averaged
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub passes: u32,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Calibrations to use [default: GRAPH.calibration.json, if there is one]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Show ids instead of labels
    #[arg(long)]
    pub ids: bool,
    /// The whole list as one JSON object
    #[arg(long, conflicts_with_all = ["output", "stream"])]
    pub json: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub model: ModelArgs,
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let rule = || "expected a part of a number of parts, such as 1/4".to_string();
    let (index, of) = text.split_once('/').ok_or_else(rule)?;
    match (index.trim().parse::<u32>(), of.trim().parse::<u32>()) {
        (Ok(index), Ok(of)) if 1 <= index && index <= of => Ok((index - 1, of)),
        _ => Err(rule()),
    }
}

/// Looks for missing links.
pub fn run(args: CompleteArgs) -> Result<(), Failure> {
    args.output.check()?;
    let predictor = args.model.predictor()?;
    let calibrations = calibrations::find(args.calibration.as_deref(), &args.graph.graph)?;
    let (graph, _) = load::graph(&args.graph)?;
    let stop = on_interrupt("stopping after this step")?;
    let mut inquiry =
        predictor.on(&graph).seed(args.seed).passes(args.passes).calibrations(&calibrations).show_ids(args.ids);
    if let Some(walks) = args.walks {
        inquiry = inquiry.walks(walks);
    }
    let options = options(&args, &graph)?;
    let mut work = Completion::new(graph.topology(), options);
    if args.dry_run {
        return dry_run(&args, &graph, &inquiry, &mut work);
    }
    let planned = work.progress().planned;
    if planned == 0 {
        say!("note: nothing fits: no question is worth asking; hint: --pairs all");
    }
    let path = args.state.clone().or_else(|| args.output.out.as_deref().map(|out| beside(out, ".state")));
    let limits = SearchLimits { budget: args.budget, state: path.as_deref(), stop: &stop };
    let mut stream = None;
    let bar = CountBar::new("questions", None);
    let end = inquiry.search(&mut work, &limits, &mut |work, progress: SearchProgress| -> Result<(), Failure> {
        if progress.now > 0 {
            bar.set(progress.now as u64, progress.total as u64);
        } else if let (Some(before), Some(path)) = (progress.before, &path) {
            let before = grouped(before as u64);
            bar.suspend(|| say!("note: {}: going on after {before} questions", path.display()));
        }
        if args.stream {
            let list = inquiry.links(work).map_err(error)?;
            match &mut stream {
                None => stream = Some(LinkStream::new(&args, &list)?),
                Some(stream) => stream.write(&list)?,
            }
        }
        Ok(())
    });
    bar.end();
    let SearchEnd { in_time, interrupted } = end?;
    let progress = work.progress();
    if interrupted {
        match &path {
            Some(path) => say!("note: the work is kept in {}: the same command goes on", path.display()),
            None => say!("note: stopped early; hint: with --out FILE or --state FILE the same command would go on"),
        }
    } else if !in_time {
        say!(
            "note: time was up with {} of {} questions left{}",
            grouped(progress.left as u64),
            grouped(progress.planned as u64),
            if path.is_some() { "; hint: the same command with a longer --budget goes on" } else { "" }
        );
    }
    match stream {
        Some(stream) => stream.finish()?,
        None => {
            let explained = inquiry.reasons(args.explain).cancel(&stop);
            let links = || explained.links(&work);
            let list = if args.explain { patiently("looking for reasons", links) } else { links() };
            let list = match list {
                Err(AskError::Cancelled) => {
                    say!("note: stopped while looking for reasons: the list is without them");
                    explained.reasons(false).links(&work)
                }
                list => list,
            };
            write(&args, &list.map_err(error)?)?;
        }
    }
    // A list that is whole needs no state; one that time has cut short may be taken up with more of it.
    if !interrupted && in_time && args.state.is_none() {
        path.iter().for_each(|path| _ = std::fs::remove_file(path));
    }
    if interrupted { Err(Failure::Reported) } else { Ok(()) }
}

/// Links as they are found, each once.
struct LinkStream {
    records: Records,
    seen: HashSet<[String; 3]>,
    people: bool,
}

impl LinkStream {
    /// Begins with what there is. `list` also says what the probabilities are.
    fn new(args: &CompleteArgs, list: &Links<'_>) -> Result<LinkStream, Failure> {
        warn_unused(args, list);
        let records = args.output.records(columns(args, list.is_calibrated()))?;
        let mut stream = LinkStream { records, seen: HashSet::new(), people: is_for_people(args) };
        stream.write(list)?;
        Ok(stream)
    }

    fn write(&mut self, list: &Links<'_>) -> Result<(), Failure> {
        for link in list.links.iter().filter(|l| l.sides == Sides::Both) {
            if self.seen.insert(link.triple().map(str::to_string)) {
                let (show, from) = (|name: &str| show(list, name), list.probability_from);
                write_link(self.records.writer(), link, from, &show, false, self.people)?;
            }
        }
        self.records.flush()
    }

    fn finish(self) -> Result<(), Failure> {
        self.records.finish()
    }
}

fn warn_unused(args: &CompleteArgs, list: &Links<'_>) {
    if let Some(why) = &list.calibration_unused {
        calibrations::warn_unused(args.calibration.as_deref(), &args.graph.graph, why);
    }
}

fn options(args: &CompleteArgs, graph: &Graph) -> Result<CompleteOptions, Failure> {
    let scope = Scope { relation: args.relation.as_deref(), head: args.head.as_deref(), tail: args.tail.as_deref() };
    let options = CompleteOptions {
        top: args.top as usize,
        pairs: args.pairs,
        sides: args.search,
        rank_by: args.rank_by,
        order: args.order,
        questions: args.questions.unwrap_or(0),
        shard: args.shard.unwrap_or((0, 1)),
        ..CompleteOptions::default()
    };
    options.within(graph, &scope).map_err(error)
}

impl From<SearchError> for Failure {
    fn from(e: SearchError) -> Failure {
        match e {
            SearchError::OtherState { .. } => {
                Failure::Error(format!("{e}; hint: remove it to begin anew, or give the options it was made with"))
            }
            e => error(e),
        }
    }
}

fn is_for_people(args: &CompleteArgs) -> bool {
    use flock_kg::records::OutputFormat;
    matches!(args.output.format(), OutputFormat::Table | OutputFormat::Md)
}

fn columns(args: &CompleteArgs, calibrated: bool) -> Vec<flock_kg::records::Column> {
    link_columns(args.explain && !args.stream, is_for_people(args), calibrated)
}

fn show(list: &Links<'_>, name: &str) -> String {
    list.shown.get(name).map_or(name, String::as_str).to_string()
}

fn write(args: &CompleteArgs, list: &Links<'_>) -> Result<(), Failure> {
    warn_unused(args, list);
    if args.json {
        let mut out = args.output.text()?;
        writeln!(out, "{}", json(list)?)?;
        return out.finish();
    }
    let mut records = args.output.records(columns(args, list.is_calibrated()))?;
    write_links(records.writer(), list, args.explain, is_for_people(args))?;
    records.finish()
}

/// What `--dry-run` says.
#[derive(Serialize)]
struct Forecast<'a> {
    questions: usize,
    beyond: usize,
    seconds_per_question: f64,
    seconds: f64,
    other_ends: usize,
    places: Vec<ForecastPlace<'a>>,
}

#[derive(Serialize)]
struct ForecastPlace<'a> {
    relation: &'a str,
    asks_for: &'static str,
    observed: usize,
    questions: usize,
}

fn dry_run(args: &CompleteArgs, graph: &Graph, inquiry: &Inquiry<'_>, work: &mut Completion) -> Result<(), Failure> {
    let (topology, questions) = (graph.topology(), work.progress().planned);
    let place = |place: &flock_kg::complete::PlaceOutline| {
        let tails = place.relation < topology.num_relations();
        let relation = if tails { place.relation } else { topology.inverse(place.relation) };
        ForecastPlace {
            relation: graph.relations().get(relation),
            asks_for: if tails { "tails" } else { "heads" },
            observed: place.observed,
            questions: place.questions,
        }
    };
    let mut places: Vec<ForecastPlace<'_>> = work.places().iter().map(place).collect();
    places.sort_by_key(|p| std::cmp::Reverse(p.questions));
    // The first one warms up, and does not count.
    inquiry.advance(work, 1, false).map_err(error)?;
    let begin = Instant::now();
    let tried = inquiry.advance(work, TRIED, false).map_err(error)?;
    let per_question = begin.elapsed().as_secs_f64() / tried.max(1) as f64;
    // Each link of the list may lack its other end.
    let entities = graph.topology().num_nodes() as usize;
    let other_ends = (args.top as usize).min(questions.saturating_mul(entities));
    let forecast = Forecast {
        questions,
        beyond: work.beyond(),
        seconds_per_question: per_question,
        seconds: per_question * questions as f64,
        other_ends,
        places,
    };
    if args.json {
        return println(&json(&forecast)?);
    }
    let time = |count: usize| spoken(Duration::from_secs_f64(per_question * count as f64));
    let mut words = format!(
        "{} questions, about {} here, and up to about {} more ({}) for the other ends of the best links",
        grouped(questions as u64),
        time(questions),
        grouped(other_ends as u64),
        time(other_ends)
    );
    if forecast.beyond > 0 {
        let beyond = grouped(forecast.beyond as u64);
        words += &format!("\n{beyond} more would be worth asking, beyond the most that are planned");
    }
    if let Some(budget) = args.budget {
        let in_time = (budget.as_secs_f64() / per_question.max(1e-9)) as usize;
        words += &format!("\n{} of them fit into {}", grouped(in_time.min(questions) as u64), spoken(budget));
    }
    // Beside a table people read them; a file of records is for programs.
    if is_for_people(args) && args.output.out.is_none() {
        println(&words)?
    } else {
        say!("{words}")
    }
    use flock_kg::records::{Cell, Column};
    let columns = vec![
        Column::text("relation"),
        Column::text("asks_for"),
        Column::integer("observed"),
        Column::integer("questions"),
    ];
    let mut records = args.output.records(columns)?;
    for p in &forecast.places {
        records.row(&[Cell::from(p.relation), p.asks_for.into(), p.observed.into(), p.questions.into()])?;
    }
    records.finish()
}
