//! The commands, a file for each: its arguments (`XArgs`) and what it does with them (`run`).

pub mod analyse;
pub mod bench;
pub mod calibrate;
pub mod checkpoint;
pub mod complete;
pub mod completions;
pub mod datasets;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod finetune;
pub mod holdout;
pub mod import;
pub mod info;
pub mod man;
pub mod merge;
pub mod petals;
pub mod predict;
pub mod pretrain;
pub mod reproduce;
pub mod score;
pub mod serve;
pub mod world;

use clap::{Parser, Subcommand};

use crate::shared::failure::Failure;

use analyse::AnalyseArgs;
use bench::BenchArgs;
use calibrate::CalibrateArgs;
use checkpoint::CheckpointArgs;
use complete::CompleteArgs;
use completions::CompletionsArgs;
use datasets::DatasetsArgs;
use doctor::DoctorArgs;
use eval::EvalArgs;
use explain::ExplainArgs;
use finetune::FinetuneArgs;
use import::ImportArgs;
use info::InfoArgs;
use man::ManArgs;
use merge::MergeArgs;
use petals::PetalsArgs;
use predict::PredictArgs;
use pretrain::PretrainArgs;
use reproduce::ReproduceArgs;
use score::ScoreArgs;
use serve::ServeArgs;
use world::WorldArgs;

/// Predicts missing links in any knowledge graph.
#[derive(Parser, Debug)]
#[command(
    name = "flock-kg",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = "\
Examples:
  flock-kg complete data/medicines.tsv --relation treats --top 10
  flock-kg predict data/countries.tsv Portugal borders '?'
  flock-kg info data/countries.tsv
  flock-kg doctor

The environment variable FLOCK_SIMD=portable|avx2|avx512 forces an instruction set."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Answer (head, relation, ?), (?, relation, tail) or (head, ?, tail)
    Predict(PredictArgs),
    /// List the links that a graph most likely lacks
    Complete(Box<CompleteArgs>),
    /// Put lists of complete together
    Merge(MergeArgs),
    /// Score given triples, or find the least likely ones of a graph
    Score(Box<ScoreArgs>),
    /// Show the reasons for an answer, and check them by hiding their edges
    Explain(ExplainArgs),
    /// Fit probabilities to held-out edges of a graph
    Calibrate(CalibrateArgs),
    /// Serve a graph over HTTP, with a page to ask in
    Serve(ServeArgs),
    /// Describe a graph, and what a query on it costs
    Info(InfoArgs),
    /// Turn a PyTorch checkpoint into a safetensors file
    Import(ImportArgs),
    /// Make a checkpoint from others: averaged, in half precision, wider, or with another walk rule
    Checkpoint(CheckpointArgs),
    /// Show what this machine offers and test that answers come out right
    Doctor(DoctorArgs),
    /// Train a model from its beginnings on one or more graphs
    Pretrain(Box<PretrainArgs>),
    /// Train a model further on one graph
    Finetune(Box<FinetuneArgs>),
    /// Train on the Petals graphs, which test what a model can tell apart
    Petals(Box<PetalsArgs>),
    /// Write a synthetic world, as pretraining makes them, as a dataset
    World(WorldArgs),
    /// Rank held-out answers of benchmark datasets
    Eval(Box<EvalArgs>),
    /// List, check or fetch benchmark datasets
    Datasets(Box<DatasetsArgs>),
    /// Draw the paper's analyses: passes, walks, ablations, relation embeddings, density
    Analyse(Box<AnalyseArgs>),
    /// Make the paper's tables and figures anew, with the published numbers beside ours
    Reproduce(Box<ReproduceArgs>),
    /// Measure speed against this machine's peak
    Bench(BenchArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

impl Command {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Command::Predict(args) => predict::run(args),
            Command::Complete(args) => complete::run(*args),
            Command::Merge(args) => merge::run(args),
            Command::Score(args) => score::run(*args),
            Command::Explain(args) => explain::run(args),
            Command::Calibrate(args) => calibrate::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Info(args) => info::run(args),
            Command::Import(args) => import::run(args),
            Command::Checkpoint(args) => checkpoint::run(args),
            Command::Doctor(args) => doctor::run(args),
            Command::Pretrain(args) => pretrain::run(*args),
            Command::Finetune(args) => finetune::run(*args),
            Command::Petals(args) => petals::run(*args),
            Command::World(args) => world::run(args),
            Command::Eval(args) => eval::run(*args),
            Command::Datasets(args) => datasets::run(*args),
            Command::Analyse(args) => analyse::run(*args),
            Command::Reproduce(args) => reproduce::run(*args),
            Command::Bench(args) => bench::run(args),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
        }
    }
}
