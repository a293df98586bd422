//! Errors of the libraries as Python exceptions: classes of `flock_kg.errors`, with the remedy in Python's words.

use std::error::Error;

use flock_kg::calibrate::CalibrationError;
use flock_kg::candidates::CandidateError;
use flock_kg::complete::{MergeError, SearchError, StateError};
use flock_kg::eval::datasets::{DatasetError, DatasetRemedy};
use flock_kg::eval::published::PublishedError;
use flock_kg::eval::{EvalError, EvalRemedy};
use flock_kg::finetune::TrainingError;
use flock_kg::graph::{GraphError, LoadError, PackedError, Remedy, UnknownName};
use flock_kg::model::checkpoint::CheckpointError;
use flock_kg::records::RecordError;
use flock_kg::score::ScoreError;
use flock_kg::train::{ConfigError, TrainError, TrainRemedy};
use flock_kg::{AskError, AskRemedy, PredictorError};
use pyo3::prelude::*;

/// Why a call fails: the class of the exception, what happened, and what to do about it.
#[derive(Debug)]
pub struct Fault {
    class: &'static str,
    message: String,
    remedy: Option<String>,
    unknown: Option<Box<UnknownName>>,
}

impl Fault {
    fn new(class: &'static str, error: &dyn Error, remedy: Option<String>) -> Fault {
        Fault { class, message: error.to_string(), remedy, unknown: None }
    }

    /// An error of no class of its own.
    pub fn other(message: impl Into<String>) -> Fault {
        Fault { class: "FlockError", message: message.into(), remedy: None, unknown: None }
    }

    /// A file that is not there.
    pub fn missing(message: impl Into<String>) -> Fault {
        let remedy = Some("check the path".to_string());
        Fault { class: "ModelNotFoundError", message: message.into(), remedy, unknown: None }
    }

    /// A model file that cannot be used.
    pub fn model(message: impl Into<String>) -> Fault {
        Fault { class: "ModelError", message: message.into(), remedy: None, unknown: None }
    }

    /// A value that an argument does not take.
    pub fn argument(message: impl Into<String>, remedy: impl Into<String>) -> Fault {
        Fault { class: "QuestionError", message: message.into(), remedy: Some(remedy.into()), unknown: None }
    }

    /// The same after some words, such as the place where it happened.
    pub fn at(mut self, place: impl std::fmt::Display) -> Fault {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// What it says, with the remedy.
    pub fn text(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}; hint: {remedy}", self.message),
            None => self.message.clone(),
        }
    }

    /// The exception.
    pub fn raise(self, py: Python<'_>) -> PyErr {
        let made = || -> PyResult<PyErr> {
            let class = py.import("flock_kg.errors")?.getattr(self.class)?;
            let error = class.call1((self.text(),))?;
            error.setattr("remedy", self.remedy.as_deref())?;
            if let Some(unknown) = &self.unknown {
                error.setattr("kind", unknown.kind.to_string())?;
                error.setattr("name", &unknown.name)?;
                let near = if unknown.fits.is_empty() { &unknown.near } else { &unknown.fits };
                error.setattr("near", near.clone())?;
            }
            Ok(PyErr::from_value(error))
        };
        made().unwrap_or_else(|e| e)
    }
}

impl From<LoadError> for Fault {
    fn from(e: LoadError) -> Fault {
        let class = if let LoadError::NotFound { .. } = &e { "GraphNotFoundError" } else { "LoadError" };
        if let LoadError::NoSuchColumn { file, column, columns, .. } = &e
            && let Ok(number) = column.parse::<usize>()
            && !columns.contains(column)
        {
            // Errors count columns as people do, from 1.
            let message =
                format!("{file}: has no column {}, expected one of {}", number.saturating_sub(1), columns.join(", "));
            let remedy = Some("columns= counts from 0".to_string());
            return Fault { class, message, remedy, unknown: None };
        }
        if let LoadError::NoSuchColumn { remedy: None, .. } = &e {
            return Fault::new(class, &e, Some("columns= three of these names, or numbers from 0".to_string()));
        }
        if let LoadError::ColumnType { .. } = &e {
            let hint = "texts or whole numbers: frame.astype(str), or other columns=".to_string();
            return Fault::new(class, &e, Some(hint));
        }
        Fault::new(class, &e, e.remedy().map(|remedy| load_hint(&remedy)))
    }
}

/// What to do about a file or frame, in Python's words. Columns count from 0.
pub fn load_hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::FromJson => "write a line for each triple, or name the format=".to_string(),
        Remedy::SayHeader => "header=True if it is, header=False if it is a triple".to_string(),
        Remedy::NameFormat => format!("format= one of {}", flock_kg::graph::Format::words()),
        Remedy::Format { format, why } => format!("format=\"{format}\" ({why})"),
        Remedy::Columns { columns, names, or_quote } => {
            let quote = if *or_quote { ", or quote names that contain commas" } else { "" };
            let chosen = columns.map(|at| match names.get(at) {
                Some(name) => format!("{name:?}"),
                None => at.to_string(),
            });
            let chosen = format!("columns=({})", chosen.join(", "));
            match &names[..] {
                [] => format!("{chosen}{quote}"),
                names => format!("there are columns {}: try {chosen}{quote}", names.join(", ")),
            }
        }
        Remedy::FewerColumns => "columns= counts from 0".to_string(),
        Remedy::NameKeys => "columns= with the keys of head, relation and tail".to_string(),
        Remedy::AddEdges => "give a list of files, one of them with edges".to_string(),
        Remedy::NoColumns => "leave columns= and header= out, or give format=\"tsv\" or \"csv\"".to_string(),
        Remedy::SmallerPages => "a smaller page_size=, or try again later".to_string(),
        Remedy::FillOrSkip => "fill it in, or leave such rows out with lenient=True".to_string(),
        other => other.to_string(),
    }
}

impl From<GraphError> for Fault {
    fn from(e: GraphError) -> Fault {
        Fault::new("LoadError", &e, None)
    }
}

impl From<PackedError> for Fault {
    fn from(e: PackedError) -> Fault {
        Fault::new("LoadError", &e, e.remedy().map(|remedy| load_hint(&remedy)))
    }
}

impl From<UnknownName> for Fault {
    fn from(e: UnknownName) -> Fault {
        let fault = Fault::new("UnknownNameError", &e, None);
        // Its own words may end in one.
        let (message, remedy) = match fault.message.split_once("; hint: ") {
            Some((message, remedy)) => (message.to_string(), Some(remedy.to_string())),
            None => (fault.message, None),
        };
        Fault { class: fault.class, message, remedy, unknown: Some(Box::new(e)) }
    }
}

impl From<AskError> for Fault {
    fn from(e: AskError) -> Fault {
        match e {
            AskError::Unknown(unknown) => unknown.into(),
            AskError::Predictor(e) => (*e).into(),
            AskError::Candidate(CandidateError::Unknown { condition, unknown }) => {
                Fault::from(*unknown).at(format!("candidates {condition}"))
            }
            AskError::Candidate(CandidateError::NoneKnown { unknown, .. }) => Fault::from(*unknown).at("among"),
            AskError::Candidate(e) => {
                let hint = match &e {
                    CandidateError::Nothing { .. } => {
                        Some("leave one of among=, among_type=, among_range=, among_domain= out")
                    }
                    CandidateError::NotRelations { .. } => {
                        Some("ask for a head or a tail, or leave among_type=, among_range= and among_domain= out")
                    }
                    _ => None,
                };
                Fault::new("QuestionError", &e, hint.map(String::from))
            }
            AskError::NoCandidates => Fault::new("QuestionError", &e, Some("among=None ranks all".to_string())),
            AskError::NoModel { task, .. } => {
                let hint = format!("Model.from_file(…) with a file trained for the {task} task, or Model.bundled()");
                Fault::new("ModelError", &e, Some(hint))
            }
            AskError::Model(_) | AskError::NotFinite(_) => Fault::new("ModelError", &e, None),
            e => {
                let hint = e.remedy().and_then(|remedy| match remedy {
                    AskRemedy::AddBlank => {
                        Some("None (or \"?\") where the answer goes; Model.score(graph, triples) is for whole triples")
                    }
                    AskRemedy::NameTheOthers => Some("name the other two"),
                    AskRemedy::NameAllThree => Some("name head, relation and tail; blank= says which is the answer"),
                    _ => None,
                });
                Fault::new("QuestionError", &e, hint.map(String::from))
            }
        }
    }
}

impl From<PredictorError> for Fault {
    fn from(e: PredictorError) -> Fault {
        let hint = match &e {
            PredictorError::SameTask { .. } => Some("give one file for each task"),
            PredictorError::Threads { .. } => Some("fewer threads="),
            PredictorError::Calibration(_) => Some("calibrate again, or remove the file"),
            _ => None,
        };
        Fault::new("ModelError", &e, hint.map(String::from))
    }
}

impl From<CheckpointError> for Fault {
    fn from(e: CheckpointError) -> Fault {
        Fault::new("ModelError", &e, None)
    }
}

impl From<CalibrationError> for Fault {
    fn from(e: CalibrationError) -> Fault {
        match e {
            CalibrationError::Ask(e) => (*e).into(),
            e => {
                let hint = match &e {
                    CalibrationError::TooFew { .. } => Some("a larger queries= or top=, or a larger graph"),
                    CalibrationError::Format { .. } => Some("calibrate again, or remove the file"),
                    _ => None,
                };
                Fault::new("CalibrationError", &e, hint.map(String::from))
            }
        }
    }
}

impl From<SearchError> for Fault {
    fn from(e: SearchError) -> Fault {
        match e {
            SearchError::Ask(e) => e.into(),
            SearchError::State(e) => e.into(),
            e => {
                let hint = "remove it to begin anew, or give the options it was made with";
                Fault::new("StateError", &e, Some(hint.to_string()))
            }
        }
    }
}

impl From<StateError> for Fault {
    fn from(e: StateError) -> Fault {
        let hint = (!matches!(e, StateError::Io { .. }))
            .then(|| "another state=, or remove the file to begin anew".to_string());
        Fault::new("StateError", &e, hint)
    }
}

impl From<ScoreError> for Fault {
    fn from(e: ScoreError) -> Fault {
        match e {
            ScoreError::Ask(e) => e.into(),
            e => {
                let hint = "remove it to begin anew, or give the options it was made with";
                Fault::new("StateError", &e, Some(hint.to_string()))
            }
        }
    }
}

impl From<RecordError> for Fault {
    fn from(e: RecordError) -> Fault {
        Fault::new("FlockError", &e, None)
    }
}

impl From<MergeError> for Fault {
    fn from(e: MergeError) -> Fault {
        Fault::new("FlockError", &e, None)
    }
}

impl From<EvalError> for Fault {
    fn from(e: EvalError) -> Fault {
        Fault::new("DatasetError", &e, e.remedy().map(|remedy| eval_hint(&remedy)))
    }
}

impl From<DatasetError> for Fault {
    fn from(e: DatasetError) -> Fault {
        EvalError::from(e).into()
    }
}

impl From<PublishedError> for Fault {
    fn from(e: PublishedError) -> Fault {
        Fault::new("DatasetError", &e, None)
    }
}

fn eval_hint(remedy: &EvalRemedy) -> String {
    match remedy {
        EvalRemedy::OtherFile => "another out=".to_string(),
        EvalRemedy::OtherFileOrOverwrite => "another out=, or fresh=True to overwrite it".to_string(),
        EvalRemedy::StartOver => "fresh=True to start anew".to_string(),
        EvalRemedy::SameOptions => {
            "the same options to go on with it, fresh=True to start anew, or another out=".to_string()
        }
        EvalRemedy::Dataset(DatasetRemedy::PredictOther(split)) => format!("split=\"{split}\""),
        other => other.to_string(),
    }
}

impl From<TrainError> for Fault {
    fn from(e: TrainError) -> Fault {
        let hint = e.remedy().map(|remedy| match remedy {
            TrainRemedy::Eval(remedy) => eval_hint(&remedy),
            TrainRemedy::SameValue | TrainRemedy::SameGraphs | TrainRemedy::OtherDirectory | TrainRemedy::Wait => {
                format!("{remedy} (out=)")
            }
            TrainRemedy::LowerRate => "a lower rate=, or settings={\"optimiser.clip\": 1}".to_string(),
            other => other.to_string(),
        });
        Fault::new("TrainingError", &e, hint)
    }
}

impl From<TrainingError> for Fault {
    fn from(e: TrainingError) -> Fault {
        match e {
            TrainingError::Run(e) => e.into(),
            TrainingError::Machine(e) => (*e).into(),
            e => Fault::new("TrainingError", &e, None),
        }
    }
}

impl From<ConfigError> for Fault {
    fn from(e: ConfigError) -> Fault {
        Fault::new("TrainingError", &e, None)
    }
}
