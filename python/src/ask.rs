//! Questions: one, many, pass by pass; and the reasons for an answer.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flock_kg::explain::MAX_HOPS;
use flock_kg::model::files::write_atomically;
use flock_kg::records::{Cell, Column, RecordTableBuilder, RecordWriter, RowSink, answer_columns, write_answers};
use flock_kg::{Answers, AskError, BLANK, Blank, Calibrations, ExplainOptions, Inquiry, Predictor};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::explanation::{Explanation, Told};
use crate::fault::Fault;
use crate::graph::Graph;
use crate::model::Model;
use crate::objects::value;
use crate::rows::{Row, columns, rows};
use crate::table::{About, Table, output_format};
use crate::wait::{TICK, wait};

// Signatures write defaults out, so that Python can show them.
const _: () = assert!(MAX_HOPS == 4);

/// Near names are looked up for so many unknown names of a batch.
pub const NEAR_LOOKUPS: usize = 16;
/// So many groups of questions are asked together: fewer pauses between groups, and still soon done.
const GROUPS: usize = 16;

/// How questions are asked: the keyword arguments that most methods share.
#[derive(Clone, Default)]
pub struct Asking {
    pub walks: Option<u32>,
    pub passes: Option<u32>,
    pub seed: u64,
    pub calibrations: Arc<Calibrations>,
    pub ids: bool,
}

impl Asking {
    /// Checks the arguments. Without a calibration, that of the graph is used.
    pub fn new(
        graph: &Graph,
        walks: Option<u32>,
        passes: Option<u32>,
        seed: u64,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
    ) -> Result<Asking, Fault> {
        for (name, given, most) in [("walks", walks, 16_384), ("passes", passes, 4096)] {
            if given.is_some_and(|n| n == 0 || n > most) {
                let found = given.unwrap_or(0);
                return Err(Fault::argument(format!("found {name}={found}"), format!("{name}= from 1 to {most}")));
            }
        }
        let calibrations = match calibration {
            Some(given) => Arc::new(given.get().kept.clone()),
            None => graph.calibrations(),
        };
        Ok(Asking { walks, passes, seed, calibrations, ids })
    }

    /// An inquiry that asks so.
    pub fn on<'a>(
        &self,
        predictor: &'a Predictor,
        graph: &'a flock_kg::Graph,
        cancel: Option<&'a AtomicBool>,
    ) -> Inquiry<'a> {
        let mut inquiry = predictor.on(graph).seed(self.seed).calibrations(&self.calibrations).show_ids(self.ids);
        if let Some(walks) = self.walks {
            inquiry = inquiry.walks(walks);
        }
        if let Some(passes) = self.passes {
            inquiry = inquiry.passes(passes);
        }
        match cancel {
            Some(cancel) => inquiry.cancel(cancel),
            None => inquiry,
        }
    }
}

/// What is listed: the keyword arguments of questions.
#[derive(Clone, Default)]
struct Listed {
    top: usize,
    only_new: bool,
    among: Option<Vec<String>>,
    among_type: Vec<(String, String)>,
    among_range: Vec<String>,
    among_domain: Vec<String>,
    budget: Option<Duration>,
    reasons: bool,
    max_hops: usize,
}

impl Listed {
    /// Checks the arguments.
    fn new(top: usize, only_new: bool, budget: Option<f64>, reasons: bool, max_hops: usize) -> Result<Listed, Fault> {
        at_least_one("max_hops", Some(max_hops))?;
        let budget = seconds("budget", budget)?;
        Ok(Listed { top, only_new, budget, reasons, max_hops, ..Listed::default() })
    }

    /// The same with conditions on the candidates.
    fn among(
        self,
        among: Option<Vec<String>>,
        of_type: Option<OneOrMore<(String, String)>>,
        of_range: Option<OneOrMore<String>>,
        of_domain: Option<OneOrMore<String>>,
    ) -> Listed {
        let (among_type, among_range, among_domain) = (items(of_type), items(of_range), items(of_domain));
        Listed { among, among_type, among_range, among_domain, ..self }
    }

    fn on<'a>(&self, mut inquiry: Inquiry<'a>) -> Inquiry<'a> {
        inquiry = inquiry.top(self.top).only_new(self.only_new).reasons(self.reasons).max_hops(self.max_hops);
        if let Some(names) = &self.among {
            inquiry = inquiry.among(names);
        }
        for (relation, value) in &self.among_type {
            inquiry = inquiry.among_type(relation, value);
        }
        for relation in &self.among_range {
            inquiry = inquiry.among_range(relation);
        }
        for relation in &self.among_domain {
            inquiry = inquiry.among_domain(relation);
        }
        match self.budget {
            Some(time) => inquiry.budget(time),
            None => inquiry,
        }
    }
}

/// One item, or several.
#[derive(FromPyObject)]
pub enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

fn items<T>(given: Option<OneOrMore<T>>) -> Vec<T> {
    match given {
        None => Vec::new(),
        Some(OneOrMore::One(item)) => vec![item],
        Some(OneOrMore::More(items)) => items,
    }
}

/// A time in seconds.
pub fn seconds(name: &str, given: Option<f64>) -> Result<Option<Duration>, Fault> {
    let time = given.map(Duration::try_from_secs_f64).transpose();
    time.map_err(|e| Fault::argument(format!("{name}: {e}"), format!("{name}= a number of seconds")))
}

/// A number that is not 0.
pub fn at_least_one(name: &str, given: Option<usize>) -> Result<(), Fault> {
    match given {
        Some(0) => Err(Fault::argument(format!("found {name}=0"), format!("{name}= from 1"))),
        _ => Ok(()),
    }
}

/// A question as the library takes it: `?` for what was left open.
fn question(row: &Row) -> [&str; 3] {
    row.each_ref().map(|cell| cell.as_deref().unwrap_or(BLANK))
}

/// Answers as a table.
fn answers_table(graph: &flock_kg::Graph, answers: &Answers<'_>, reasons: bool) -> Result<Table, Fault> {
    let show = |name: &str| answers.show(name).to_string();
    let mut info = value(answers)?;
    info.as_object_mut().map(|fields| fields.remove("answers"));
    let mut quiet = ["head", "relation", "tail", "label", "probability_from"].map(String::from).to_vec();
    if answers.answers.iter().all(|a| a.spread.is_none()) {
        quiet.push("spread".to_string());
    }
    if answers.answers.iter().all(|a| a.visits.is_none()) {
        quiet.push("visits".to_string());
    }
    let about = About { title: answers.query.map(show).join("  "), quiet, shown: shown(&answers.shown), info };
    Table::build(answer_columns(reasons), about, |out| write_answers(out, graph, answers, reasons))
}

/// How names are shown, for a table that outlives the graph.
pub fn shown(names: &flock_kg::shown::ShownNames<'_>) -> HashMap<String, String> {
    names.iter().map(|(name, shown)| (name.to_string(), shown.clone())).collect()
}

/// Warns once for each reason why a calibration is not used.
pub fn warn_unused(py: Python<'_>, why: Option<&str>) -> PyResult<()> {
    let Some(why) = why else { return Ok(()) };
    let text = format!("{why}; hint: model.calibrate(graph) with the same walks= and passes=");
    let class = py.import("flock_kg.errors")?.getattr("CalibrationWarning")?;
    py.import("warnings")?.getattr("warn")?.call1((text, class, 1)).map(drop)
}

/// Whether rows that cannot be asked for are left out.
pub fn skips(on_error: &str) -> Result<bool, Fault> {
    match on_error {
        "raise" => Ok(false),
        "skip" => Ok(true),
        other => Err(Fault::argument(format!("found on_error={other:?}"), "on_error=\"raise\" or \"skip\"")),
    }
}

/// Warns of rows that were left out.
pub fn warn_failures(py: Python<'_>, what: &str, failures: &[Value], of: usize) -> PyResult<()> {
    let Some(first) = failures.first() else { return Ok(()) };
    let first = first["error"].as_str().unwrap_or_default();
    let text = format!("{} of {of} {what} failed, the first: {first}", failures.len());
    py.import("warnings")?.getattr("warn")?.call1((text, py.get_type::<PyUserWarning>(), 1)).map(drop)
}

/// What a table says about a calibration that was not used.
pub fn unused(info: &Value) -> Option<&str> {
    info.get("calibration_unused").and_then(Value::as_str)
}

#[pymethods]
impl Model {
    /// Answers a question: head, relation and tail, one of them ``None`` (or ``"?"``).
    ///
    /// A row for each answer, the best first: ``rank``, ``answer``, ``label``, ``probability``, ``logit`` and others. ``info``
    /// of the table has the rest: candidates, coverage, model, and ``probability_from``, which says what the probabilities are
    /// (``"graph"``: calibrated on this graph, ``"default"``: on others, ``"score"``: not calibrated).
    ///
    /// ``top`` answers are listed (0: all that a walk reached). More ``passes`` are steadier and take longer; with ``budget``
    /// (seconds) there are as many as fit. ``only_new`` leaves out what the graph has. Candidates can be limited to names
    /// (``among``), to x with (x, relation, value) in the graph (``among_type``), to tails or to heads of a relation
    /// (``among_range``, ``among_domain``). ``reasons`` adds the path that weighed most.
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> answers = model.predict(graph, "Spain", "official_language", None, top=1)
    /// >>> [(row["rank"], row["answer"]) for row in answers]
    /// [(1, 'Spanish')]
    /// >>> model.predict(graph, "Lisbon", None, "Portugal", top=1)["answer"]
    /// ['located_in']
    #[pyo3(signature = (graph, head, relation, tail, *, top=10, passes=None, walks=None, seed=0, budget=None, only_new=false,
        among=None, among_type=None, among_range=None, among_domain=None, reasons=false, max_hops=4, calibration=None,
        ids=false))]
    fn predict(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        head: Option<String>,
        relation: Option<String>,
        tail: Option<String>,
        top: usize,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        budget: Option<f64>,
        only_new: bool,
        among: Option<Vec<String>>,
        among_type: Option<OneOrMore<(String, String)>>,
        among_range: Option<OneOrMore<String>>,
        among_domain: Option<OneOrMore<String>>,
        reasons: bool,
        max_hops: usize,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
    ) -> PyResult<Table> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            let asking = Asking::new(graph, walks, passes, seed, calibration, ids)?;
            let listed = Listed::new(top, only_new, budget, reasons, max_hops)?;
            let listed = listed.among(among, among_type, among_range, among_domain);
            Ok((asking, listed, self.predictor()?))
        };
        let (asking, listed, predictor) = make().map_err(|fault| fault.raise(py))?;
        let row: Row = [head, relation, tail];
        let table = wait(py, None, "", |control| {
            let inquiry = listed.on(asking.on(&predictor, &graph.graph, Some(&control.cancel)));
            let answers = inquiry.ask(question(&row))?;
            answers_table(&graph.graph, &answers, reasons)
        })?;
        warn_unused(py, unused(&table.about.info))?;
        Ok(table)
    }

    /// Answers a question pass by pass: an iterator of tables, the last of them final.
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> [table.info["passes"] for table in model.stream(graph, "Spain", "borders", None, passes=3)]
    /// [1, 2, 3]
    #[pyo3(signature = (graph, head, relation, tail, *, top=10, passes=None, walks=None, seed=0, budget=None, only_new=false,
        reasons=false, max_hops=4, calibration=None, ids=false))]
    fn stream(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        head: Option<String>,
        relation: Option<String>,
        tail: Option<String>,
        top: usize,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        budget: Option<f64>,
        only_new: bool,
        reasons: bool,
        max_hops: usize,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
    ) -> PyResult<AnswerStream> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            let asking = Asking::new(graph, walks, passes, seed, calibration, ids)?;
            let listed = Listed::new(top, only_new, budget, reasons, max_hops)?;
            Ok((asking, listed, self.predictor()?))
        };
        let (asking, listed, predictor) = make().map_err(|fault| fault.raise(py))?;
        let (graph, row) = (graph.graph.clone(), [head, relation, tail]);
        let cancel = Arc::new(AtomicBool::new(false));
        // One pass ahead of whoever reads.
        let (send, passes) = sync_channel(1);
        let flag = cancel.clone();
        std::thread::spawn(move || {
            let inquiry = listed.on(asking.on(&predictor, &graph, Some(&flag)));
            match inquiry.stream(question(&row)) {
                Err(e) => _ = send.send(Err(e.into())),
                Ok(stream) => {
                    for answers in stream {
                        let table =
                            answers.map_err(Fault::from).and_then(|answers| answers_table(&graph, &answers, reasons));
                        if send.send(table.map(Some)).is_err() {
                            return;
                        }
                    }
                    // Told apart from a thread that is gone.
                    let _ = send.send(Ok(None));
                }
            }
        });
        Ok(AnswerStream { passes: Some(Mutex::new(passes)), cancel, warned: false })
    }

    /// Answers many questions: a frame with head, relation and tail, or tuples; the blank is null, ``None`` or ``"?"``.
    ///
    /// A row for each answer, as :meth:`predict` has them, with the number of its ``question`` (from 0) in front. A question
    /// that cannot be asked raises before any is asked; with ``on_error="skip"`` it is left out, and listed in
    /// ``info["failures"]``. With ``out`` the rows go to a file (.csv, .tsv, .jsonl, .parquet) as they come, so that memory does
    /// not grow with the answers; the number of rows is returned, and what failed is in ``OUT.failures.jsonl``.
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> questions = [("Spain", "official_language", None), (None, "capital", "Tokyo")]
    /// >>> model.predict_many(graph, questions, top=1)["answer"]
    /// ['Spanish', 'Japan']
    #[pyo3(signature = (graph, questions, *, columns=None, top=10, passes=None, walks=None, seed=0, budget=None, only_new=false,
        among=None, among_type=None, among_range=None, among_domain=None, reasons=false, max_hops=4, calibration=None,
        ids=false, on_error="raise", out=None, progress=None))]
    fn predict_many<'py>(
        &self,
        py: Python<'py>,
        graph: &Bound<'py, Graph>,
        questions: &Bound<'py, PyAny>,
        columns: Option<&Bound<'py, PyAny>>,
        top: usize,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        budget: Option<f64>,
        only_new: bool,
        among: Option<Vec<String>>,
        among_type: Option<OneOrMore<(String, String)>>,
        among_range: Option<OneOrMore<String>>,
        among_domain: Option<OneOrMore<String>>,
        reasons: bool,
        max_hops: usize,
        calibration: Option<&Bound<'py, Calibration>>,
        ids: bool,
        on_error: &str,
        out: Option<PathBuf>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let graph = graph.get();
        let rows = rows(questions, self::columns(columns)?, "questions")?;
        let make = || -> Result<_, Fault> {
            let asking = Asking::new(graph, walks, passes, seed, calibration, ids)?;
            let listed = Listed::new(top, only_new, budget, reasons, max_hops)?;
            let listed = listed.among(among, among_type, among_range, among_domain);
            let skip = skips(on_error)?;
            let mut columns = vec![Column::integer("question")];
            columns.extend(answer_columns(reasons));
            let sink = match &out {
                Some(path) => ManySink::file(path.clone(), output_format(path, None, "")?, columns)?,
                None => ManySink::Table(RecordTableBuilder::new(columns)?),
            };
            Ok((asking, listed, self.predictor()?, skip, sink))
        };
        let (asking, listed, predictor, skip, mut sink) = make().map_err(|fault| fault.raise(py))?;
        let (sink, batch) = wait(py, progress, "questions", |control| {
            let inquiry =
                listed.on(asking.on(&predictor, &graph.graph, Some(&control.cancel))).near_names(NEAR_LOOKUPS);
            let mut batch = Batch::new(skip);
            if !skip {
                // Whatever cannot be asked is said before anything is.
                for (at, row) in rows.iter().enumerate() {
                    inquiry.plan(question(row)).map_err(|e| Fault::from(e).at(format!("question {at}")))?;
                }
            }
            control.tell(0, rows.len());
            let size = inquiry.group_size() * if listed.budget.is_some() { 1 } else { GROUPS };
            for (group, first) in rows.chunks(size).zip((0..).step_by(size)) {
                let asked: Vec<[&str; 3]> = group.iter().map(question).collect();
                for (answers, at) in inquiry.ask_many(&asked).into_iter().zip(first..) {
                    match answers {
                        Ok(answers) => {
                            batch.note(&answers);
                            sink.write(at, &graph.graph, &answers, reasons)?;
                        }
                        Err(AskError::Cancelled) => return Err(AskError::Cancelled.into()),
                        Err(e) => batch.fail(at, &rows[at], e.into())?,
                    }
                }
                control.tell(first + group.len(), rows.len());
            }
            Ok((sink.finish()?, batch))
        })?;
        // Written before a warning is raised as an error.
        if let Some(path) = &out {
            let mut name = path.as_os_str().to_owned();
            name.push(".failures.jsonl");
            let lines: String = batch.failures.iter().map(|failure| format!("{failure}\n")).collect();
            let written = match (lines.is_empty(), &PathBuf::from(&name)) {
                (false, file) => write_atomically(file, lines.as_bytes()),
                // Those of an earlier call would be taken for these.
                (true, file) => match std::fs::remove_file(file) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                    removed => removed,
                },
            };
            written.map_err(|e| Fault::other(format!("{}: {e}", name.display())).raise(py))?;
        }
        warn_failures(py, "questions", &batch.failures, rows.len())?;
        batch.info.values().try_for_each(|info| warn_unused(py, unused(info)))?;
        let count = sink.rows();
        match sink {
            FinishedSink::File { .. } => count.into_bound_py_any(py),
            FinishedSink::Table(records) => {
                let quiet = ["question", "label", "probability_from", "spread"].map(String::from).to_vec();
                let title = format!("answers to {} questions", rows.len());
                // What the questions have in common, as of the first kind of them; and for each kind.
                let mut info = batch.info.values().next().cloned().unwrap_or_else(|| json!({}));
                info["tasks"] = Value::Object(batch.info);
                info["questions"] = rows.len().into();
                info["failures"] = Value::Array(batch.failures);
                let about = About { title, quiet, shown: batch.shown, info };
                Table { records, about }.into_bound_py_any(py)
            }
        }
    }

    /// Says why a triple has its score: the paths by which walks carried the answer.
    ///
    /// ``blank`` says which part is the answer. ``check`` hides the edges of the best reasons and asks again, which takes
    /// several times longer. In a notebook the explanation shows itself as a picture.
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> model.explain(graph, "Portugal", "borders", "Spain", check=False).reasons[0]["reason"]
    /// 'Portugal ←borders— Spain'
    #[pyo3(signature = (graph, head, relation, tail, *, blank="tail", top=5, max_hops=4, updates=2, hide=3, draws=3,
        check=true, passes=None, walks=None, seed=0, calibration=None, ids=false))]
    fn explain(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        head: String,
        relation: String,
        tail: String,
        blank: &str,
        top: usize,
        max_hops: usize,
        updates: usize,
        hide: usize,
        draws: u32,
        check: bool,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
    ) -> PyResult<Explanation> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            let blank: Blank =
                blank.parse().map_err(|e: String| Fault::argument(format!("found blank={blank:?}"), e))?;
            for (name, given) in [("top", top), ("max_hops", max_hops), ("updates", updates), ("hide", hide)] {
                at_least_one(name, Some(given))?;
            }
            Ok((Asking::new(graph, walks, passes, seed, calibration, ids)?, blank, self.predictor()?))
        };
        let (asking, blank, predictor) = make().map_err(|fault| fault.raise(py))?;
        let options = ExplainOptions { top, check, updates, hide, draws, max_hops };
        let (told, unused) = wait(py, None, "", |control| {
            let inquiry = asking.on(&predictor, &graph.graph, Some(&control.cancel));
            let explanation = inquiry.explain([head, relation, tail], blank, &options)?;
            Ok((Told::new(&explanation)?, explanation.calibration_unused))
        })?;
        warn_unused(py, unused.as_deref())?;
        told.into_object(py)
    }
}

#[pymethods]
impl Model {
    /// The seconds that the library alone takes to ask a question so many times, for `benches/overhead.py`.
    fn _seconds_of_asking(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        question: (String, String, String),
        walks: u32,
        count: u32,
    ) -> PyResult<f64> {
        let graph = graph.get();
        let predictor = self.predictor().map_err(|fault| fault.raise(py))?;
        let asked = py.detach(|| -> Result<Duration, Fault> {
            let clock = Instant::now();
            for _ in 0..count {
                let inquiry = predictor.on(&graph.graph).walks(walks).top(10);
                std::hint::black_box(inquiry.ask([&question.0, &question.1, &question.2])?);
            }
            Ok(clock.elapsed())
        });
        asked.map(|time| time.as_secs_f64()).map_err(|fault| fault.raise(py))
    }
}

/// What a batch says besides its rows.
struct Batch {
    skip: bool,
    failures: Vec<Value>,
    shown: HashMap<String, String>,
    info: serde_json::Map<String, Value>, // by task
}

impl Batch {
    fn new(skip: bool) -> Batch {
        Batch { skip, failures: Vec::new(), shown: HashMap::new(), info: serde_json::Map::new() }
    }

    /// Remembers how names are shown, and once how everything was asked.
    fn note(&mut self, answers: &Answers<'_>) {
        self.shown.extend(shown(&answers.shown));
        let task = answers.model.task.to_string();
        if !self.info.contains_key(&task) {
            let Answers { seed, walks, passes, model, probability_from, calibration_unused, .. } = answers;
            let info = json!({
                "seed": seed, "walks": walks, "passes": passes, "model": model,
                "probability_from": probability_from, "calibration_unused": calibration_unused,
            });
            self.info.insert(task, info);
        }
    }

    fn fail(&mut self, at: usize, row: &Row, fault: Fault) -> Result<(), Fault> {
        let fault = fault.at(format!("question {at}"));
        if !self.skip {
            return Err(fault);
        }
        self.failures.push(json!({ "question": at, "query": question(row), "error": fault.text() }));
        Ok(())
    }
}

/// Where the answers to many questions go.
enum ManySink {
    Table(RecordTableBuilder),
    File { path: PathBuf, part: PartFile, out: Box<RecordWriter<std::fs::File>> },
}

/// A file that is removed unless it got another name.
struct PartFile(PathBuf);

impl Drop for PartFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The same when all are there.
enum FinishedSink {
    Table(flock_kg::records::RecordTable),
    File { rows: u64 },
}

impl ManySink {
    /// A file that has its name when it is whole.
    fn file(path: PathBuf, format: flock_kg::records::OutputFormat, columns: Vec<Column>) -> Result<ManySink, Fault> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PartFile(PathBuf::from(part));
        let file = std::fs::File::create(&part.0).map_err(|e| Fault::other(format!("{}: {e}", part.0.display())))?;
        Ok(ManySink::File { path, part, out: Box::new(RecordWriter::new(format, columns, file)?) })
    }

    fn write(&mut self, at: usize, graph: &flock_kg::Graph, answers: &Answers<'_>, reasons: bool) -> Result<(), Fault> {
        let out: &mut dyn RowSink = match self {
            ManySink::Table(table) => table,
            ManySink::File { out, .. } => &mut **out,
        };
        Ok(write_answers(&mut Numbered { at, out }, graph, answers, reasons)?)
    }

    fn finish(self) -> Result<FinishedSink, Fault> {
        match self {
            ManySink::Table(table) => Ok(FinishedSink::Table(table.finish()?)),
            ManySink::File { path, part, out } => {
                let rows = out.rows();
                let mut file = out.finish()?;
                let named = file.flush().and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&part.0, &path));
                named.map_err(|e| Fault::other(format!("{}: {e}", path.display())))?;
                Ok(FinishedSink::File { rows })
            }
        }
    }
}

impl FinishedSink {
    fn rows(&self) -> u64 {
        match self {
            FinishedSink::Table(records) => records.len() as u64,
            FinishedSink::File { rows } => *rows,
        }
    }
}

/// Puts the number of the question before each row.
struct Numbered<'o> {
    at: usize,
    out: &'o mut dyn RowSink,
}

impl RowSink for Numbered<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), flock_kg::records::RecordError> {
        let mut row = vec![Cell::from(self.at)];
        row.extend_from_slice(cells);
        self.out.row(&row)
    }
}

/// The answers after a pass; nothing after the last.
type NextPass = Result<Option<Table>, Fault>;

/// Answers after each pass.
#[pyclass(module = "flock_kg")]
pub struct AnswerStream {
    passes: Option<Mutex<Receiver<NextPass>>>,
    cancel: Arc<AtomicBool>,
    warned: bool, // of a calibration that is not used
}

#[pymethods]
impl AnswerStream {
    fn __iter__(stream: PyRef<'_, Self>) -> PyRef<'_, Self> {
        stream
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Table>> {
        let Some(passes) = &self.passes else { return Ok(None) };
        loop {
            // Before each pass: whoever collects short ones in a loop of C looks at no signal.
            if let Err(e) = py.check_signals() {
                self.cancel.store(true, Ordering::Relaxed);
                self.passes = None;
                return Err(e);
            }
            match py.detach(|| lock(passes).recv_timeout(TICK)) {
                Ok(Ok(Some(table))) => {
                    if !std::mem::replace(&mut self.warned, true) {
                        warn_unused(py, unused(&table.about.info))?;
                    }
                    return Ok(Some(table));
                }
                Ok(Ok(None)) => {
                    self.passes = None;
                    return Ok(None);
                }
                Ok(Err(fault)) => {
                    self.passes = None;
                    return Err(fault.raise(py));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.passes = None;
                    return Err(Fault::other("the stream broke off").raise(py));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

fn lock<T>(passes: &Mutex<T>) -> MutexGuard<'_, T> {
    passes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}
