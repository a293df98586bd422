//! Graphs: from files, frames, triples and graphs of other libraries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flock_kg::bundled;
use flock_kg::calibrate::Calibrations;
use flock_kg::graph::{
    self, Format, GraphBuilder, LoadOptions, LoadReport, NamedEdit, Remedy, load_batches, load_many, load_reader,
};
use flock_kg::records::{Cell, Column};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arrow;
use crate::calibration::Calibration;
use crate::fault::{Fault, load_hint};
use crate::rows::{Row, columns, rows};
use crate::table::{About, Table, escape};
use crate::wait::wait_or_leave;

/// A knowledge graph: triples of head, relation and tail, by name.
///
/// Graphs do not change: :meth:`add`, :meth:`remove` and :meth:`with_labels` return new ones.
///
/// >>> import flock_kg as fk
/// >>> graph = fk.Graph.from_triples([("Lisbon", "capital of", "Portugal"), ("Portugal", "borders", "Spain")])
/// >>> graph
/// Graph("graph": 3 entities, 2 relations, 2 triples)
/// >>> ("Portugal", "borders", "Spain") in graph
/// True
#[pyclass(frozen, module = "flock_kg")]
pub struct Graph {
    pub graph: Arc<flock_kg::Graph>,
    /// What it is called: its file, or `graph`.
    pub name: String,
    /// Where it is from, if it is from files and nothing was changed since.
    files: Option<Files>,
    /// How its files were understood.
    notes: Vec<String>,
    /// Its calibrations: those beside its file, or made since.
    calibrations: Mutex<Arc<Calibrations>>,
}

/// Files, and how they are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Files {
    paths: Vec<PathBuf>,
    format: Option<String>,
    columns: Option<String>,
    header: Option<bool>,
    lenient: bool,
    languages: Vec<String>,
    labels: Option<PathBuf>,
    page_size: Option<u32>,
    /// Whether a pickle has the paths instead of the triples.
    by_path: bool,
}

impl Files {
    fn options(&self) -> Result<LoadOptions, Fault> {
        let format = self.format.as_deref().map(str::parse::<Format>).transpose();
        let format =
            format.map_err(|e| Fault::argument(e.to_string(), format!("format= one of {}", Format::words())))?;
        let columns = self.columns.as_deref().map(str::parse).transpose();
        Ok(LoadOptions {
            format,
            lenient: self.lenient,
            header: self.header,
            columns: columns.map_err(|e: graph::BadColumns| Fault::other(e.to_string()))?,
            languages: self.languages.clone(),
            page_size: self.page_size,
            ..LoadOptions::default()
        })
    }

    /// The same for a process in another directory. Standard input and endpoints stay as they are.
    fn absolute(&self) -> Files {
        let one = |path: &PathBuf| match path.exists() {
            true => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            false => path.clone(),
        };
        Files { paths: self.paths.iter().map(one).collect(), labels: self.labels.as_ref().map(one), ..self.clone() }
    }

    fn name(&self) -> String {
        self.paths.iter().map(|path| graph::source_name(path)).collect::<Vec<_>>().join(", ")
    }

    /// Loads the graph. Returns it with notes, and with what should be warned of.
    fn load(self, options: &LoadOptions) -> Result<(Graph, Vec<String>), Fault> {
        let name = self.name();
        let (graph, report) = load_many(&self.paths, options)?;
        let (mut notes, mut warnings) = told(&name, &report);
        let graph = match &self.labels {
            Some(path) => {
                let (graph, labels) = graph.with_labels_from(path)?;
                if let Some(first) = &labels.first_unknown {
                    let (unknown, rows) = (labels.unknown, labels.rows);
                    let text = format!(
                        "{}: {unknown} of {rows} labels are for names that the graph does not have, such as {first:?}",
                        path.display()
                    );
                    if labels.labels == 0 { &mut warnings } else { &mut notes }.push(text);
                }
                graph
            }
            None => graph,
        };
        let calibrations = match &self.paths[..] {
            [path] if path != Path::new("-") => Calibrations::read(path)?,
            _ => Calibrations::default(),
        };
        let calibrations = Mutex::new(Arc::new(calibrations));
        Ok((Graph { graph: Arc::new(graph), name, files: Some(self), notes, calibrations }, warnings))
    }
}

/// What is to be said about loading: how files were understood, and what may have gone wrong.
fn told(name: &str, report: &LoadReport) -> (Vec<String>, Vec<String>) {
    let mut notes = report.notes();
    notes.extend(report.left_out().map(|what| format!("{name}: left out: {what}")));
    notes.extend(report.understood().map(|what| format!("{name}: {what}")));
    let warnings = report.warnings().into_iter().map(|warning| match warning.remedy() {
        // Rows are only left out if that was asked for.
        Some(Remedy::FillOrSkip) => warning.to_string(),
        Some(remedy) => format!("{warning}; hint: {}", load_hint(&remedy)),
        None => warning.to_string(),
    });
    (notes, warnings.collect())
}

fn warn(py: Python<'_>, warnings: &[String]) -> PyResult<()> {
    let class = py.import("flock_kg.errors")?.getattr("GraphWarning")?;
    let warn = py.import("warnings")?.getattr("warn")?;
    warnings.iter().try_for_each(|text| warn.call1((text, &class, 1)).map(drop))
}

impl Graph {
    /// A graph that is from no file.
    pub fn made(graph: flock_kg::Graph, name: &str) -> Graph {
        let calibrations = Mutex::new(Arc::new(Calibrations::default()));
        Graph { graph: Arc::new(graph), name: name.to_string(), files: None, notes: Vec::new(), calibrations }
    }

    /// The graph after a change, with the calibrations of this one: they hold for about the same graph.
    fn changed(&self, graph: flock_kg::Graph) -> Graph {
        let (calibrations, notes) = (Mutex::new(self.calibrations()), self.notes.clone());
        Graph { calibrations, notes, ..Graph::made(graph, &self.name) }
    }

    /// Its calibrations.
    pub fn calibrations(&self) -> Arc<Calibrations> {
        self.calibrations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces its calibrations.
    pub fn set_calibrations(&self, calibrations: Calibrations) {
        *self.calibrations.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(calibrations);
    }

    /// The file that its calibrations are kept beside.
    pub fn file(&self) -> Option<&Path> {
        match self.files.as_ref().map(|files| &files.paths[..]) {
            Some([path]) if path != Path::new("-") => Some(path),
            _ => None,
        }
    }

    fn from_frame(
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyAny>>,
        lenient: bool,
    ) -> PyResult<Graph> {
        let reader = arrow::reader(frame)?;
        let options = LoadOptions { columns: columns(given)?, lenient, ..LoadOptions::default() };
        let (graph, warnings) = wait_or_leave(py, move || {
            let (graph, report) = load_batches("frame", reader, &options)?;
            let (notes, warnings) = told("frame", &report);
            Ok((Graph { notes, ..Graph::made(graph, "frame") }, warnings))
        })?;
        warn(py, &warnings)?;
        Ok(graph)
    }

    fn from_rows(py: Python<'_>, rows: Vec<Row>, labels: Option<HashMap<String, String>>) -> PyResult<Graph> {
        wait_or_leave(py, move || {
            let mut builder = GraphBuilder::new();
            for (at, row) in rows.iter().enumerate() {
                let [Some(head), Some(relation), Some(tail)] = row.each_ref().map(|cell| cell.as_deref()) else {
                    let message = format!("triples: row {at} has no head, relation or tail");
                    return Err(Fault::argument(message, "three texts in every row"));
                };
                if [head, relation, tail].contains(&"") {
                    let message = format!("triples: row {at} has an empty name");
                    return Err(Fault::argument(message, "fill it in, or leave the row out"));
                }
                builder.add(head, relation, tail);
            }
            let graph = builder.finish()?;
            Ok(Graph::made(with_labels(graph, labels), "graph"))
        })
    }
}

fn with_labels(graph: flock_kg::Graph, labels: Option<HashMap<String, String>>) -> flock_kg::Graph {
    match labels {
        Some(labels) => graph.with_labels(labels.iter().map(|(name, label)| (name.as_str(), label.as_str()))),
        None => graph,
    }
}

/// One path, or several.
fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    match given.extract::<PathBuf>() {
        Ok(path) => Ok(vec![path]),
        Err(_) => given.extract::<Vec<PathBuf>>(),
    }
}

#[pymethods]
impl Graph {
    /// Reads a graph file, a directory of them, several files, or a SPARQL endpoint (``sparql:URL``).
    ///
    /// TSV, CSV, JSON lines, Parquet, Arrow, RDF in any syntax, OBO, OWL and GraphML, plain or packed (.gz, .zst). The
    /// format, the header and the columns are found by themselves; ``format``, ``header`` and ``columns`` (names, or numbers
    /// from 0) decide otherwise. ``lenient`` leaves malformed rows out. ``labels`` is a file of names and labels, ``languages``
    /// are those of labels in RDF, the best first. ``notes`` of the graph say how the files were understood, and what looks
    /// wrong is a :class:`flock_kg.errors.GraphWarning`.
    ///
    /// A pickle of the graph has its content; with ``pickle="path"`` it has the path, and the file is read again.
    #[classmethod]
    #[pyo3(signature = (path, *, format=None, columns=None, header=None, lenient=false, languages=None, labels=None,
        page_size=None, pickle="content"))]
    fn from_file(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        format: Option<String>,
        columns: Option<&Bound<'_, PyAny>>,
        header: Option<bool>,
        lenient: bool,
        languages: Option<Vec<String>>,
        labels: Option<PathBuf>,
        page_size: Option<u32>,
        pickle: &str,
    ) -> PyResult<Graph> {
        let by_path = match pickle {
            "path" => true,
            "content" => false,
            other => {
                let message = format!("found pickle={other:?}, expected \"content\" or \"path\"");
                return Err(Fault::argument(message, "\"content\" carries the triples, \"path\" reads the file again")
                    .raise(py));
            }
        };
        let files = Files {
            paths: paths(path)?,
            format,
            columns: crate::rows::columns(columns)?.map(|columns| columns.to_string()),
            header,
            lenient,
            languages: languages.unwrap_or_default(),
            labels,
            page_size,
            by_path,
        };
        let (graph, warnings) = wait_or_leave(py, move || {
            let options = files.options()?;
            files.load(&options)
        })?;
        warn(py, &warnings)?;
        Ok(graph)
    }

    /// Makes a graph of tuples (head, relation, tail), or of a frame with three such columns.
    ///
    /// >>> import flock_kg as fk
    /// >>> fk.Graph.from_triples([("Q42", "P31", "Q5")], labels={"Q42": "Douglas Adams"}).label("Q42")
    /// 'Douglas Adams'
    #[classmethod]
    #[pyo3(signature = (triples, *, labels=None))]
    fn from_triples(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        triples: &Bound<'_, PyAny>,
        labels: Option<HashMap<String, String>>,
    ) -> PyResult<Graph> {
        Graph::from_rows(py, rows(triples, None, "triples")?, labels)
    }

    /// Takes a table of any library that has the Arrow PyCapsule interface: pyarrow, polars, duckdb and others.
    ///
    /// Columns are found by their names; ``columns`` chooses them by name or by number from 0.
    #[classmethod]
    #[pyo3(signature = (frame, *, columns=None, lenient=false))]
    fn from_arrow(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        lenient: bool,
    ) -> PyResult<Graph> {
        let frame = py.import("flock_kg._adapters")?.call_method1("require_frame", (frame,))?;
        Graph::from_frame(py, &frame, columns, lenient)
    }

    /// Takes a frame of pandas. Columns are found by their names; the index is no part of a triple.
    ///
    /// >>> import flock_kg as fk
    /// >>> import pandas as pd
    /// >>> frame = pd.DataFrame({"head": ["Lisbon"], "relation": ["capital of"], "tail": ["Portugal"]})
    /// >>> fk.Graph.from_pandas(frame)
    /// Graph("frame": 2 entities, 1 relations, 1 triples)
    #[classmethod]
    #[pyo3(signature = (frame, *, columns=None, lenient=false))]
    fn from_pandas(
        class: &Bound<'_, PyType>,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        lenient: bool,
    ) -> PyResult<Graph> {
        Graph::from_arrow(class, py, frame, columns, lenient)
    }

    /// Takes a frame of polars, lazy or not. Columns are found by their names.
    #[classmethod]
    #[pyo3(signature = (frame, *, columns=None, lenient=false))]
    fn from_polars(
        class: &Bound<'_, PyType>,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        lenient: bool,
    ) -> PyResult<Graph> {
        Graph::from_arrow(class, py, frame, columns, lenient)
    }

    /// Takes a graph of networkx, whose edges name their relation.
    ///
    /// The relation is the attribute ``relation`` of an edge, the key of a multigraph if it is a text, or ``default``. An edge
    /// without direction is read as it is listed. The node attribute ``label`` becomes a label.
    #[classmethod]
    #[pyo3(signature = (graph, *, relation="relation", default=None))]
    fn from_networkx(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        graph: &Bound<'_, PyAny>,
        relation: &str,
        default: Option<&str>,
    ) -> PyResult<Graph> {
        let adapted = py.import("flock_kg._adapters")?.call_method1("networkx", (graph, relation, default))?;
        let (triples, labels): (Bound<'_, PyAny>, HashMap<String, String>) = adapted.extract()?;
        Graph::from_rows(py, rows(&triples, None, "networkx")?, Some(labels))
    }

    /// Takes a graph or dataset of rdflib. Literals are left out, but for labels.
    #[classmethod]
    #[pyo3(signature = (graph, *, languages=None))]
    fn from_rdflib(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        graph: &Bound<'_, PyAny>,
        languages: Option<Vec<String>>,
    ) -> PyResult<Graph> {
        let adapted = py.import("flock_kg._adapters")?.call_method1("rdflib", (graph,))?;
        let (text, format): (Vec<u8>, String) = adapted.extract()?;
        let (graph, warnings) = wait_or_leave(py, move || {
            let format = format.parse::<Format>().map_err(|e| Fault::other(e.to_string()))?;
            let languages = languages.unwrap_or_default();
            let options = LoadOptions { format: Some(format), languages, ..LoadOptions::default() };
            let (graph, report) = load_reader("rdflib", &text[..], &options)?;
            let (notes, warnings) = told("rdflib", &report);
            Ok((Graph { notes, ..Graph::made(graph, "rdflib") }, warnings))
        })?;
        warn(py, &warnings)?;
        Ok(graph)
    }

    /// Takes a triples factory of PyKEEN, or a dataset, of which the training triples.
    #[classmethod]
    fn from_pykeen(_class: &Bound<'_, PyType>, py: Python<'_>, factory: &Bound<'_, PyAny>) -> PyResult<Graph> {
        let triples = py.import("flock_kg._adapters")?.call_method1("pykeen", (factory,))?;
        Graph::from_rows(py, rows(&triples, None, "pykeen")?, None)
    }

    /// One of the small graphs inside the package: ``"countries"``, or ``"medicines"`` (an example, not medical advice).
    #[classmethod]
    #[pyo3(signature = (name="countries"))]
    fn bundled(_class: &Bound<'_, PyType>, py: Python<'_>, name: &str) -> PyResult<Graph> {
        let loaded = match name {
            "countries" => bundled::graph(),
            "medicines" => bundled::medicines(),
            other => {
                let message = format!("no bundled graph {other:?}");
                return Err(Fault::argument(message, "\"countries\" or \"medicines\"").raise(py));
            }
        };
        Ok(Graph::made(loaded.map_err(|e| Fault::from(e).raise(py))?, name))
    }

    /// What the graph is called: its file, or where it is from.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many entities there are.
    #[getter]
    fn num_entities(&self) -> u32 {
        self.graph.topology().num_nodes()
    }

    /// How many relations there are.
    #[getter]
    fn num_relations(&self) -> u32 {
        self.graph.topology().num_relations()
    }

    /// How many triples there are.
    #[getter]
    fn num_triples(&self) -> usize {
        self.graph.topology().num_triples()
    }

    /// The names of all entities.
    #[getter]
    fn entities(&self) -> Vec<&str> {
        self.graph.entities().iter().collect()
    }

    /// The names of all relations.
    #[getter]
    fn relations(&self) -> Vec<&str> {
        self.graph.relations().iter().collect()
    }

    /// How the files were understood: columns that were used, and what was left out.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The calibration of this graph: from the file beside it, or made since by :meth:`Model.calibrate`.
    #[getter]
    fn calibration(&self) -> Option<Calibration> {
        Calibration::of(&self.calibrations(), self.file().map(Calibrations::path))
    }

    /// All triples, as a table of head, relation and tail.
    fn triples(&self, py: Python<'_>) -> PyResult<Table> {
        let graph = &self.graph;
        let about = About { title: self.name.clone(), info: json!({}), ..About::default() };
        let columns = ["head", "relation", "tail"].map(Column::text).to_vec();
        let table = Table::build(columns, about, |out| {
            graph.topology().triples().try_for_each(|t| {
                let names =
                    [graph.entities().get(t.head), graph.relations().get(t.relation), graph.entities().get(t.tail)];
                out.row(&names.map(Cell::from))
            })
        });
        table.map_err(|fault| fault.raise(py))
    }

    /// The name of an entity that a text stands for: a name, an IRI or a label, in any case.
    ///
    /// >>> import flock_kg as fk
    /// >>> fk.Graph.bundled().find_entity("spain")
    /// 'Spain'
    fn find_entity(&self, py: Python<'_>, text: &str) -> PyResult<&str> {
        let id = self.graph.parse_entity(text).map_err(|e| Fault::from(e).raise(py))?;
        Ok(self.graph.entities().get(id))
    }

    /// The name of a relation that a text stands for.
    fn find_relation(&self, py: Python<'_>, text: &str) -> PyResult<&str> {
        let id = self.graph.parse_relation(text).map_err(|e| Fault::from(e).raise(py))?;
        Ok(self.graph.relations().get(id))
    }

    /// What people call an entity or a relation, if the graph says so.
    fn label(&self, name: &str) -> Option<&str> {
        self.graph.label(name)
    }

    /// The same graph with some more labels, by full names.
    fn with_labels(&self, labels: HashMap<String, String>) -> Graph {
        self.changed(with_labels((*self.graph).clone(), Some(labels)))
    }

    /// The graph with some more triples. This one does not change, and both share memory.
    ///
    /// >>> import flock_kg as fk
    /// >>> graph = fk.Graph.bundled()
    /// >>> len(graph.add([("Atlantis", "continent", "Europe")])) - len(graph)
    /// 1
    fn add(&self, py: Python<'_>, triples: &Bound<'_, PyAny>) -> PyResult<Graph> {
        self.edited(py, triples, true)
    }

    /// The graph without some triples. Names stay, and triples that it does not have are no error.
    fn remove(&self, py: Python<'_>, triples: &Bound<'_, PyAny>) -> PyResult<Graph> {
        self.edited(py, triples, false)
    }

    fn __len__(&self) -> usize {
        self.num_triples()
    }

    fn __contains__(&self, triple: &Bound<'_, PyAny>) -> bool {
        let Ok((head, relation, tail)) = triple.extract::<(String, String, String)>() else { return false };
        let (entities, relations) = (self.graph.entities(), self.graph.relations());
        let ids = (entities.id(&head), relations.id(&relation), entities.id(&tail));
        let (Some(head), Some(relation), Some(tail)) = ids else { return false };
        self.graph.topology().triple_id(graph::Triple { head, relation, tail }).is_some()
    }

    fn __repr__(&self) -> String {
        let (entities, relations, triples) = (self.num_entities(), self.num_relations(), self.num_triples());
        format!("Graph({:?}: {entities} entities, {relations} relations, {triples} triples)", self.name)
    }

    fn _repr_html_(&self) -> String {
        let row = |what: &str, value: String| {
            format!(
                "<tr><th style=\"text-align:left\">{what}</th><td style=\"text-align:left\">{}</td></tr>",
                escape(&value)
            )
        };
        let graph = &self.graph;
        let mut counts: Vec<(usize, &str)> = (0..self.num_relations())
            .map(|r| (graph.topology().relation_range(r).len(), graph.relations().get(r)))
            .collect();
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let most: Vec<String> =
            counts.iter().take(5).map(|(count, name)| format!("{} ({count})", graph.shown(name))).collect();
        let mut body = row("entities", self.num_entities().to_string());
        body += &row("relations", format!("{}, most often {}", self.num_relations(), most.join(", ")));
        body += &row("triples", self.num_triples().to_string());
        if !graph.labels().is_empty() {
            body += &row("labels", "yes".to_string());
        }
        for note in &self.notes {
            body += &row("note", note.clone());
        }
        let caption = escape(&self.name);
        format!("<table class=\"flock-kg\"><caption style=\"text-align:left\">{caption}</caption>{body}</table>")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("flock_kg._flock_kg")?.getattr("_graph_from_state")?;
        let calibrations = self.calibrations().to_text();
        let files = self.files.as_ref().filter(|files| files.by_path);
        let (bytes, files) = match files {
            Some(files) => {
                let sum = flock_kg::graph_fingerprint(&self.graph);
                (sum.to_le_bytes().to_vec(), Some(serde_json::to_string(&files.absolute())))
            }
            None => (py.detach(|| self.graph.to_bytes()), None),
        };
        let files = files.transpose().map_err(|e| Fault::other(e.to_string()).raise(py))?;
        let state = (PyBytes::new(py, &bytes), &self.name, &self.notes, calibrations, files);
        Ok((make, state.into_pyobject(py)?))
    }
}

impl Graph {
    fn edited(&self, py: Python<'_>, triples: &Bound<'_, PyAny>, present: bool) -> PyResult<Graph> {
        let rows = rows(triples, None, "triples")?;
        let mut edits = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let [Some(head), Some(relation), Some(tail)] = row.each_ref().map(|cell| cell.as_deref()) else {
                let message = format!("triples: row {at} has no head, relation or tail");
                return Err(Fault::argument(message, "three texts in every row").raise(py));
            };
            if present && [head, relation, tail].contains(&"") {
                let message = format!("triples: row {at} has an empty name");
                return Err(Fault::argument(message, "fill it in, or leave the row out").raise(py));
            }
            edits.push(NamedEdit { triple: [head, relation, tail], present });
        }
        let edited = py.detach(|| self.graph.edited(&edits));
        Ok(self.changed(edited.map_err(|e| Fault::from(e).raise(py))?))
    }
}

/// A graph from its pickle: its triples, or the files they are in and a sum over them.
#[pyfunction]
pub fn _graph_from_state(
    py: Python<'_>,
    bytes: &[u8],
    name: String,
    notes: Vec<String>,
    calibrations: &str,
    files: Option<&str>,
) -> PyResult<Graph> {
    let calibrations = Calibrations::from_text("pickle", calibrations).map_err(|e| Fault::from(e).raise(py))?;
    let make = || -> Result<Graph, Fault> {
        let Some(files) = files else {
            return Ok(Graph { notes, ..Graph::made(flock_kg::Graph::from_bytes(bytes)?, &name) });
        };
        let files: Files = serde_json::from_str(files).map_err(|e| Fault::other(e.to_string()))?;
        let options = files.options()?;
        let (graph, _) = files.load(&options)?;
        if flock_kg::graph_fingerprint(&graph.graph).to_le_bytes() != bytes {
            let message = format!("{name}: the file has other triples than when the graph was pickled");
            return Err(Fault::argument(message, "load it anew, or pickle=\"content\""));
        }
        Ok(graph)
    };
    let graph = py.detach(make).map_err(|fault| fault.raise(py))?;
    graph.set_calibrations(calibrations);
    Ok(graph)
}
