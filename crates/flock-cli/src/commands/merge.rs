//! `flock-kg merge`: one list of links from several.

use std::path::PathBuf;

use flock_kg::complete::{RankBy, link_columns, merge, read_links};
use flock_kg::records::OutputFormat;

use crate::shared::failure::{Failure, error};
use crate::shared::output::OutputArgs;
use crate::shared::parse;

/// Arguments of `merge`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg complete big.tsv --shard 1/2 --out links-1.jsonl
  flock-kg complete big.tsv --shard 2/2 --out links-2.jsonl
  flock-kg merge links-1.jsonl links-2.jsonl --top 1000 --out links.csv

A link that is in several lists counts once.")]
pub struct MergeArgs {
    /// Lists that complete has written: .csv, .tsv or .jsonl
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Links to list
    #[arg(long, short = 'k', value_name = "K", default_value = "1000", value_parser = parse::positive)]
    pub top: usize,
    /// What links are ranked by: specificity, score
    #[arg(long, value_name = "WHAT", default_value_t = RankBy::Specificity)]
    pub rank_by: RankBy,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Merges the lists.
pub fn run(args: MergeArgs) -> Result<(), Failure> {
    args.output.check()?;
    let lists = args.files.iter().map(|file| read_links(file)).collect::<Result<Vec<_>, _>>().map_err(error)?;
    let links = merge(lists, args.rank_by, args.top);
    let reasons = links.iter().any(|link| link.reason.is_some());
    let people = matches!(args.output.format(), OutputFormat::Table | OutputFormat::Md);
    let calibrated = links.iter().any(|link| link.probability_from == "graph");
    let mut records = args.output.records(link_columns(reasons, people, calibrated))?;
    for link in &links {
        link.write(records.writer(), reasons, people, calibrated)?;
    }
    records.finish()
}
