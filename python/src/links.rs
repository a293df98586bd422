//! Missing links of a graph, and where given triples stand.

use std::path::PathBuf;

use flock_kg::BLANK;
use flock_kg::complete::{CompleteOptions, Completion, Scope, SearchLimits, link_columns, write_links};
use flock_kg::score::{
    Journal, TripleScores, existing, find_triple, find_triple_exactly, least_likely, sample, score_columns,
    write_scores,
};
use pyo3::prelude::*;
use serde_json::json;

use crate::ask::{Asking, NEAR_LOOKUPS, at_least_one, seconds, shown, skips, unused, warn_failures, warn_unused};
use crate::calibration::Calibration;
use crate::fault::Fault;
use crate::graph::Graph;
use crate::model::Model;
use crate::objects::value;
use crate::rows::{columns, rows};
use crate::table::{About, Table};
use crate::wait::{Control, wait};

/// The scores as a table.
fn scores_table(title: String, list: &TripleScores<'_>) -> Result<Table, Fault> {
    let mut info = value(list)?;
    info.as_object_mut().map(|fields| fields.remove("scores"));
    let seen: Vec<String> = score_columns(true, list.is_calibrated()).iter().map(|c| c.name.to_string()).collect();
    let columns = score_columns(false, list.is_calibrated());
    let quiet = columns.iter().map(|c| c.name.to_string()).filter(|name| !seen.contains(name)).collect();
    let about = About { title, quiet, shown: shown(&list.shown), info };
    Table::build(columns, about, |out| write_scores(out, list, false))
}

/// Removes the file that kept the scores: whoever called has them now.
fn done_with(py: Python<'_>, journal: Option<Journal>) -> PyResult<()> {
    journal.map_or(Ok(()), Journal::remove).map_err(|e| Fault::other(e.to_string()).raise(py))
}

#[pymethods]
impl Model {
    /// Lists the links that the graph most likely lacks: of a relation, of a head, of a tail, or of all.
    ///
    /// A row for each link, the best first: ``head``, ``relation``, ``tail``, ``score``, ``specificity`` and others. Links are
    /// ranked by ``specificity``, their share of the odds among all answers from both ends, or by ``score``. ``pairs`` says
    /// which entities are asked about: ``"observed"``, ``"compatible"`` or ``"all"``; ``search`` whether by ``"tails"``,
    /// ``"heads"`` or ``"both"``. ``budget`` is a time in seconds. With ``state`` the work is kept in a file, and the same call
    /// goes on from it. ``shard=(i, n)`` does one part of n.
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> links = model.complete(graph, relation="borders", head="Spain", top=3)
    /// >>> set(links["head"]), len(links)
    /// ({'Spain'}, 3)
    #[pyo3(signature = (graph, *, relation=None, head=None, tail=None, top=1000, pairs="compatible", search="both",
        rank_by="specificity", order="expected", questions=0, shard=None, budget=None, reasons=false, state=None, passes=None,
        walks=None, seed=0, calibration=None, ids=false, progress=None))]
    fn complete(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        relation: Option<&str>,
        head: Option<&str>,
        tail: Option<&str>,
        top: usize,
        pairs: &str,
        search: &str,
        rank_by: &str,
        order: &str,
        questions: usize,
        shard: Option<(u32, u32)>,
        budget: Option<f64>,
        reasons: bool,
        state: Option<PathBuf>,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            let word = |name: &str, text: &str, e: String| Fault::argument(format!("found {name}={text:?}"), e);
            let shard = shard.unwrap_or((0, 1));
            if shard.0 >= shard.1 {
                let of = shard.1.max(1);
                let hint = format!("shard=(0, {of}) to ({}, {of})", of - 1);
                return Err(Fault::argument(format!("found shard={shard:?}"), hint));
            }
            if top == 0 || top > flock_kg::complete::MOST_LINKS {
                let most = flock_kg::complete::MOST_LINKS;
                return Err(Fault::argument(format!("found top={top}"), format!("top= from 1 to {most}")));
            }
            let options = CompleteOptions {
                top,
                pairs: pairs.parse().map_err(|e| word("pairs", pairs, e))?,
                sides: search.parse().map_err(|e| word("search", search, e))?,
                rank_by: rank_by.parse().map_err(|e| word("rank_by", rank_by, e))?,
                order: order.parse().map_err(|e| word("order", order, e))?,
                questions,
                shard,
                ..CompleteOptions::default()
            };
            let options = options.within(&graph.graph, &Scope { relation, head, tail })?;
            let asking = Asking::new(graph, walks, passes, seed, calibration, ids)?;
            Ok((options, asking, seconds("budget", budget)?, self.predictor()?))
        };
        let (options, asking, budget, predictor) = make().map_err(|fault| fault.raise(py))?;
        let scope: Vec<&str> = [head, relation, tail].into_iter().map(|name| name.unwrap_or("?")).collect();
        let table = wait(py, progress, "questions", |control: &Control| {
            let inquiry = asking.on(&predictor, &graph.graph, Some(&control.cancel));
            let mut work = Completion::new(graph.graph.topology(), options);
            let limits = SearchLimits { budget, state: state.as_deref(), stop: &control.cancel };
            let end = inquiry.search(&mut work, &limits, &mut |_, progress| -> Result<(), Fault> {
                control.tell(progress.now, progress.total);
                Ok(())
            })?;
            let list = inquiry.reasons(reasons).links(&work)?;
            let mut info = value(&list)?;
            info.as_object_mut().map(|fields| fields.remove("links"));
            info["in_time"] = end.in_time.into();
            let people = link_columns(reasons, true, list.is_calibrated());
            let columns = link_columns(reasons, false, list.is_calibrated());
            let is_quiet = |name: &String| people.iter().all(|c| c.name != *name);
            let quiet = columns.iter().map(|c| c.name.to_string()).filter(is_quiet).collect();
            let title = format!("missing links: {}", scope.join("  "));
            let about = About { title, quiet, shown: shown(&list.shown), info };
            Table::build(columns, about, |out| write_links(out, &list, reasons, false))
        })?;
        warn_unused(py, unused(&table.about.info))?;
        Ok(table)
    }

    /// Says where given triples stand among their alternatives, from both ends.
    ///
    /// A row for each triple: ``score``, and ``tail_rank`` and ``head_rank`` with percentiles. A triple that the graph has is
    /// hidden from the walks.
    ///
    /// >>> import flock_kg as fk
    /// >>> model, graph = fk.Model.bundled(), fk.Graph.bundled()
    /// >>> model.score(graph, [("Portugal", "borders", "Spain")])[0]["tail_rank"]
    /// 1
    #[pyo3(signature = (graph, triples, *, columns=None, passes=None, walks=None, seed=0, state=None, calibration=None, ids=false,
        on_error="raise", progress=None))]
    fn score(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        triples: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        state: Option<PathBuf>,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
        on_error: &str,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let graph = graph.get();
        let rows = rows(triples, self::columns(columns)?, "triples")?;
        let skip = skips(on_error).map_err(|fault| fault.raise(py))?;
        let look_up = || -> Result<_, Fault> {
            let (mut found, mut failures) = (Vec::with_capacity(rows.len()), Vec::new());
            for (at, row) in rows.iter().enumerate() {
                let texts = row.each_ref().map(|cell| cell.as_deref().unwrap_or(BLANK));
                let triple = if texts.contains(&BLANK) {
                    let hint = "three names; Model.predict(graph, …) is for questions";
                    Err(Fault::argument("a part of the triple is left open", hint))
                } else if failures.len() < NEAR_LOOKUPS {
                    find_triple(&graph.graph, texts).map_err(Fault::from)
                } else {
                    find_triple_exactly(&graph.graph, texts, NEAR_LOOKUPS).map_err(Fault::from)
                };
                match triple.map_err(|fault| fault.at(format!("triple {at}"))) {
                    Ok(triple) => found.push(triple),
                    Err(fault) if skip => failures.push(json!({ "triple": at, "names": texts, "error": fault.text() })),
                    Err(fault) => return Err(fault),
                }
            }
            Ok((found, failures))
        };
        let (found, failures) = py.detach(look_up).map_err(|fault| fault.raise(py))?;
        let asking = Asking::new(graph, walks, passes, seed, calibration, ids).map_err(|fault| fault.raise(py))?;
        let predictor = self.predictor().map_err(|fault| fault.raise(py))?;
        let (mut table, journal) = wait(py, progress, "triples", |control: &Control| {
            let inquiry = asking.on(&predictor, &graph.graph, Some(&control.cancel));
            let run = inquiry.score_all(&found, state.as_deref(), &control.cancel, &mut |_, done| {
                control.tell(done, found.len());
            })?;
            let table = scores_table(format!("{} triples", found.len()), &inquiry.named_scores(&run.scored)?)?;
            Ok((table, run.journal))
        })?;
        warn_failures(py, "triples", &failures, rows.len())?;
        table.about.info["failures"] = failures.into();
        warn_unused(py, unused(&table.about.info))?;
        done_with(py, journal)?;
        Ok(table)
    }

    /// Lists the triples of the graph that are the least likely: wrong ones are often among them.
    ///
    /// Asks about all triples, about those of a ``relation``, or about a ``sample`` of so many.
    #[pyo3(signature = (graph, *, relation=None, sample=None, top=100, passes=None, walks=None, seed=0, state=None,
        calibration=None, ids=false, progress=None))]
    fn doubtful(
        &self,
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        relation: Option<&str>,
        sample: Option<usize>,
        top: usize,
        passes: Option<u32>,
        walks: Option<u32>,
        seed: u64,
        state: Option<PathBuf>,
        calibration: Option<&Bound<'_, Calibration>>,
        ids: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let graph = graph.get();
        let make = || -> Result<_, Fault> {
            at_least_one("top", Some(top))?;
            at_least_one("sample", sample)?;
            let mut triples = existing(&graph.graph, relation)?;
            if let Some(count) = sample {
                triples = self::sample(&triples, count, seed);
            }
            Ok((triples, Asking::new(graph, walks, passes, seed, calibration, ids)?, self.predictor()?))
        };
        let (triples, asking, predictor) = make().map_err(|fault| fault.raise(py))?;
        let (table, journal) = wait(py, progress, "triples", |control: &Control| {
            let inquiry = asking.on(&predictor, &graph.graph, Some(&control.cancel));
            let run = inquiry.score_all(&triples, state.as_deref(), &control.cancel, &mut |_, done| {
                control.tell(done, triples.len());
            })?;
            let scored = least_likely(run.scored, top);
            let title = format!("the least likely of {} triples", triples.len());
            let table = scores_table(title, &inquiry.named_scores(&scored)?)?;
            Ok((table, run.journal))
        })?;
        warn_unused(py, unused(&table.about.info))?;
        done_with(py, journal)?;
        Ok(table)
    }
}
