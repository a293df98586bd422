//! How good a model is: metrics, with the protocol behind them, beside published numbers.

use flock_kg::Task;
use flock_kg::eval::compare::{Style, caveat, compare};
use flock_kg::eval::published::{PublishedNumbers, PublishedSetting};
use flock_kg::eval::ranks::RankRow;
use flock_kg::eval::{HoldoutReport, RankMetrics, RankSummary, TieMetrics};
use flock_kg::records::{Cell, Column, typed};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::objects::{object, value};
use crate::table::{About, Table};

/// How good a model is on a graph or a dataset. Ties count against the answer, as published.
#[pyclass(frozen, module = "flock_kg")]
pub struct Evaluation {
    sentence: String,
    summary: RankSummary,
    info: Value,
    table: Py<Table>,
    ranks: Option<Py<Table>>,
    dataset: Option<Box<flock_kg::eval::Evaluation>>,
}

/// An evaluation that needs no interpreter yet.
pub struct Evaluated {
    sentence: String,
    summary: RankSummary,
    info: Value,
    table: Table,
    ranks: Option<Table>,
    dataset: Option<Box<flock_kg::eval::Evaluation>>,
}

/// A row for all questions, and one for each relation.
fn metrics_table(title: String, summary: &RankSummary, show: impl Fn(&str) -> String) -> Result<Table, Fault> {
    let mut columns = vec![Column::text("part"), Column::text("relation"), Column::integer("questions")];
    columns.extend(["mrr", "hits1", "hits3", "hits10", "mean_rank"].map(Column::number));
    columns.extend(["coverage", "mrr_realistic", "mrr_optimistic"].map(Column::number));
    let quiet = ["part", "mrr_realistic", "mrr_optimistic"].map(String::from).to_vec();
    let about = About { title, quiet, info: json!({}), ..About::default() };
    Table::build(columns, about, |out| {
        let mut write = |part: &str, relation: String, m: &TieMetrics, coverage: f64| {
            let RankMetrics { mrr, hits1, hits3, hits10, mean_rank, .. } = m.pessimistic;
            let mut row: Vec<Cell<'_>> = vec![part.into(), relation.into(), m.queries.into()];
            row.extend([mrr, hits1, hits3, hits10, mean_rank, coverage].map(Cell::from));
            row.extend([m.realistic.mrr, m.optimistic.mrr].map(Cell::from));
            out.row(&row)
        };
        write("all", "all".to_string(), &summary.all, summary.coverage)?;
        summary.relations.iter().try_for_each(|r| write("relation", show(&r.relation), &r.metrics, r.coverage))
    })
}

fn ranks_table(rows: impl Iterator<Item = RankRow>) -> Result<Table, Fault> {
    let mut columns = ["dataset", "task", "split", "head", "relation", "tail", "side"].map(Column::text).to_vec();
    columns.extend([Column::number("rank"), Column::integer("ties"), Column::number("score")]);
    columns.extend([Column::integer("candidates"), Column::truth("reached"), Column::truth("half_link")]);
    columns.push(Column::integer("distance"));
    let about = About { title: "ranks".to_string(), info: json!({}), ..About::default() };
    Table::build(columns, about, |out| {
        for row in rows {
            let [task, side] = [row.task.to_string(), format!("{:?}", row.side).to_lowercase()];
            let [head, relation, tail] = &row.triple;
            out.row(&[
                row.dataset.as_str().into(),
                task.into(),
                row.split.as_str().into(),
                head.as_str().into(),
                relation.as_str().into(),
                tail.as_str().into(),
                side.into(),
                row.rank.into(),
                row.ties.into(),
                row.score.into(),
                row.candidates.into(),
                row.reached.into(),
                row.stratum.half_link.into(),
                row.stratum.distance.into(),
            ])?;
        }
        Ok(())
    })
}

impl Evaluated {
    pub fn of_holdout(graph: &flock_kg::Graph, report: &HoldoutReport) -> Result<Evaluated, Fault> {
        let show = |name: &str| graph.shown(name).into_owned();
        let sentence = report.sentence(|name| format!("`{}`", show(name)));
        Ok(Evaluated {
            table: metrics_table(sentence.clone(), &report.summary, show)?,
            sentence,
            summary: report.summary.clone(),
            info: value(report)?,
            ranks: None,
            dataset: None,
        })
    }

    pub fn of_dataset(result: flock_kg::eval::RankedEvaluation, ranks: bool) -> Result<Evaluated, Fault> {
        let ranks = if ranks { Some(ranks_table(result.rows())?) } else { None };
        let e = result.evaluation;
        let m = e.summary.all.pessimistic;
        let sentence = format!(
            "{}, {} task, {} triples: MRR {:.4}, Hits@10 {:.4} (n = {}, P = {}, {} questions)",
            e.dataset, e.task, e.split, m.mrr, m.hits10, e.protocol.n, e.protocol.passes, e.summary.all.queries
        );
        Ok(Evaluated {
            table: metrics_table(sentence.clone(), &e.summary, |name| name.to_string())?,
            sentence,
            summary: e.summary.clone(),
            info: value(&e)?,
            ranks,
            dataset: Some(Box::new(e)),
        })
    }

    pub fn into_object(self, py: Python<'_>) -> PyResult<Evaluation> {
        let Evaluated { sentence, summary, info, table, ranks, dataset } = self;
        let ranks = ranks.map(|ranks| Py::new(py, ranks)).transpose()?;
        Ok(Evaluation { sentence, summary, info, table: Py::new(py, table)?, ranks, dataset })
    }
}

#[pymethods]
impl Evaluation {
    /// Mean reciprocal rank.
    #[getter]
    fn mrr(&self) -> f64 {
        self.summary.all.pessimistic.mrr
    }

    /// Share of answers that are the first.
    #[getter]
    fn hits1(&self) -> f64 {
        self.summary.all.pessimistic.hits1
    }

    /// Share of answers among the first 3.
    #[getter]
    fn hits3(&self) -> f64 {
        self.summary.all.pessimistic.hits3
    }

    /// Share of answers among the first 10.
    #[getter]
    fn hits10(&self) -> f64 {
        self.summary.all.pessimistic.hits10
    }

    /// Mean rank.
    #[getter]
    fn mean_rank(&self) -> f64 {
        self.summary.all.pessimistic.mean_rank
    }

    /// Share of answers that a walk reached.
    #[getter]
    fn coverage(&self) -> f64 {
        self.summary.coverage
    }

    /// What it says in one sentence.
    #[getter]
    fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Everything that is known of it: protocol, other tie rules, sides, strata, relations.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.info)
    }

    /// The metrics in all and by relation.
    #[getter]
    fn table(&self, py: Python<'_>) -> Py<Table> {
        self.table.clone_ref(py)
    }

    /// The rank of every answer, if it was asked for.
    #[getter]
    fn ranks(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.ranks.as_ref().map(|ranks| ranks.clone_ref(py))
    }

    /// Our numbers beside published ones: ``setting`` is ``"zero-shot"`` or ``"fine-tuned"``.
    #[pyo3(signature = (setting="zero-shot"))]
    fn beside_published(&self, py: Python<'_>, setting: &str) -> PyResult<Table> {
        let make = || -> Result<Table, Fault> {
            let Some(e) = &self.dataset else {
                let message = "a held-out share of one's own graph has no published numbers";
                return Err(Fault::argument(message, "evaluate_dataset(directory) of a benchmark dataset"));
            };
            let setting = match setting {
                "zero-shot" => PublishedSetting::ZeroShot,
                "fine-tuned" => PublishedSetting::FineTuned,
                other => {
                    let message = format!("found setting={other:?}");
                    return Err(Fault::argument(message, "setting=\"zero-shot\" or \"fine-tuned\""));
                }
            };
            let published = PublishedNumbers::built_in(e.task, setting);
            let sheet = compare(&[&**e], &published, Style::Plain);
            let (columns, rows) = typed(&sheet.header, &sheet.rows);
            let title = caveat(&[&**e]).unwrap_or_else(|| "beside published numbers".to_string());
            let about = About { title, info: json!({}), ..About::default() };
            Table::build(columns, about, |out| rows.iter().try_for_each(|row| out.row(row)))
        };
        make().map_err(|fault| fault.raise(py))
    }

    /// ``"entity"`` or ``"relation"``.
    #[getter]
    fn task(&self) -> String {
        let task = self.info.get("task").and_then(Value::as_str).unwrap_or_default();
        if task.is_empty() { Task::Entity.to_string() } else { task.to_string() }
    }

    fn __repr__(&self) -> &str {
        &self.sentence
    }

    fn _repr_html_(&self) -> String {
        self.table.get().html()
    }
}
