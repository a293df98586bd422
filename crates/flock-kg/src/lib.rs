//! Predicts missing links in any knowledge graph, with one pretrained model.
//!
//! Three nouns: a [`Graph`] of names, a [`Predictor`] with its models, and [`Answers`].
//!
#![cfg_attr(feature = "bundled", doc = "```")]
#![cfg_attr(not(feature = "bundled"), doc = "```ignore")]
//! let graph = flock_kg::Graph::open("data/countries.tsv")?;
//! let predictor = flock_kg::Predictor::bundled()?;
//! for answer in predictor.on(&graph).ask(["Spain", "official_language", "?"])?.top(5) {
//!     println!("{:<12} {:.2}", answer.name, answer.probability);
//! }
//! # let answers = predictor.on(&graph).ask(["Spain", "official_language", "?"])?;
//! # assert_eq!(answers.top(1)[0].name, "Spanish");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How to ask is said between `on` and `ask`, with the methods of [`Inquiry`]: walks, passes, seed, budget, candidates, reasons.
//! [`Inquiry::ask_all`] answers many questions, [`Inquiry::stream`] one question pass by pass, [`Inquiry::score`] tells about a given
//! triple, [`Inquiry::explain`] says why. Models, precision and threads are chosen with [`Predictor::builder`].
//!
//! Behind the facade are rooms of their own: [`graph`], [`walk`], [`kernels`], [`model`], and with the features `train`
//! and `eval` (both on by default) [`train`] and [`eval`]. Feature `bundled`, also on by default, has the models inside the program.

mod answers;
#[cfg(feature = "bundled")]
pub mod bundled;
pub mod calibrate;
pub mod candidates;
mod column;
pub mod complete;
mod error;
pub mod explain;
#[cfg(feature = "train")]
pub mod finetune;
mod fingerprint;
mod inquiry;
mod passes;
mod plan;
pub mod predictor;
mod question;
pub mod ranking;
pub mod records;
#[cfg(feature = "train")]
pub mod reproduce;
pub mod score;
pub mod shown;

pub use answers::{Answer, Answers};
pub use calibrate::{CalibrateOptions, Calibrations};
pub use candidates::Candidates;
pub use error::{AskError, AskRemedy, PredictorError};
pub use explain::{ExplainOptions, Explanation};
pub use fingerprint::graph_fingerprint;
pub use flock_graph::Graph;
pub use flock_kernels::Precision;
pub use flock_model::ModelName;
pub use flock_model::checkpoint::Task;
pub use inquiry::{AnswerStream, EXPLAIN_PASSES, ExplainPlan, Inquiry, MOST_PASSES, STREAM_PASSES};
pub use passes::{Passes, StopReason};
pub use plan::Plan;
pub use predictor::{NamedModel, Predictor, PredictorBuilder};
pub use question::{BLANK, Blank, Question};

#[cfg(feature = "eval")]
pub use flock_eval as eval;
pub use flock_graph as graph;
pub use flock_kernels as kernels;
pub use flock_model as model;
#[cfg(feature = "train")]
pub use flock_train as train;
pub use flock_walk as walk;

// Compiles and runs the example of the README.
#[cfg(all(doctest, feature = "bundled"))]
#[doc = include_str!("../README.md")]
struct Readme;
