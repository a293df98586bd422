//! `flock-kg world`: writes a synthetic world, as pretraining makes them, as a dataset directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flock_kg::eval::chart::{self, Axis, Series};
use flock_kg::eval::results::write_text;
use flock_kg::graph::Triple;
use flock_kg::train::data::World;
use flock_kg::train::data::world::Rule;
use flock_kg::walk::Key;

use crate::shared::failure::{Failure, error, json};
use crate::shared::output::println;

/// Arguments of `world`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  flock-kg world --seed 7 --out runs/world-7
  flock-kg eval world-7 --data runs --passes 1
  flock-kg world --seed 7 --out runs/world-7 --svg world.svg

train.txt has the facts that can be seen, test.txt the ones that follow by rules and were left out, and meta.json the rules.")]
pub struct WorldArgs {
    /// Seed of the world
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Directory to write; its last part is the dataset's name
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write a picture of how often entities and relations occur to this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// What was made as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Makes a world and writes it.
pub fn run(args: WorldArgs) -> Result<(), Failure> {
    let world = World::new(Key { seed: args.seed, pass: 0, update: 0, query: 0 }, 1);
    let io = |e: std::io::Error| Failure::Error(format!("{}: {e}", args.out.display()));
    std::fs::create_dir_all(&args.out).map_err(io)?;
    let lines = |triples: &[Triple]| -> String {
        let line = |t: &Triple| {
            let (head, tail) = (world.entity_name(t.head), world.entity_name(t.tail));
            format!("{head}\t{}\t{tail}\n", World::relation_name(t.relation))
        };
        triples.iter().map(line).collect()
    };
    write_text(&args.out.join("train.txt"), &lines(&world.facts)).map_err(error)?;
    write_text(&args.out.join("test.txt"), &lines(&world.questions)).map_err(error)?;
    let name = args.out.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let meta = serde_json::json!({ "name": name, "source": "synthetic", "seed": args.seed, "rules": world.rules });
    write_text(&args.out.join("meta.json"), &(json(&meta)? + "\n")).map_err(error)?;
    if let Some(path) = &args.svg {
        write_text(path, &picture(&world, args.seed)).map_err(error)?;
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in &world.rules {
        *kinds.entry(kind(rule)).or_default() += 1;
    }
    if args.json {
        let (facts, questions) = (world.facts.len(), world.questions.len());
        let report = serde_json::json!({
            "dir": args.out, "seed": args.seed, "entities": world.entities, "relations": world.relations,
            "facts": facts, "questions": questions, "rules": kinds,
        });
        return println(&json(&report)?);
    }
    let rules: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println(&format!(
        "synthetic world, seed {}\n  entities   {}\n  relations  {}\n  facts      {}\n  questions  {} facts that follow and were left out\n  rules      {}\n  written to {}",
        args.seed,
        world.entities,
        world.relations,
        world.facts.len(),
        world.questions.len(),
        rules.join(", "),
        args.out.display()
    ))
}

fn kind(rule: &Rule) -> &'static str {
    match rule {
        Rule::Hierarchy { .. } => "hierarchy",
        Rule::Inversion { .. } => "inversion",
        Rule::Symmetry { .. } => "symmetry",
        Rule::Composition { body, .. } if body.len() == 2 => "composition of two",
        Rule::Composition { .. } => "composition of three",
        Rule::Exclusion { .. } => "exclusion",
    }
}

/// Facts of each entity and of each relation, the most frequent first, on two logarithmic axes.
fn picture(world: &World, seed: u64) -> String {
    let ranked = |mut counts: Vec<usize>| -> Vec<(f64, f64)> {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        (1..).zip(counts).filter(|(_, count)| *count > 0).map(|(rank, count)| (f64::from(rank), count as f64)).collect()
    };
    let mut entities = vec![0; world.entities as usize];
    let mut relations = vec![0; world.relations as usize];
    for fact in &world.facts {
        entities[fact.head as usize] += 1;
        entities[fact.tail as usize] += 1;
        relations[fact.relation as usize] += 1;
    }
    let series = [("entities", entities), ("relations", relations)].map(|(name, counts)| Series {
        name: name.to_string(),
        points: ranked(counts),
        ..Series::default()
    });
    let most = series.iter().flat_map(|s| &s.points).map(|p| p.1).fold(1.0, f64::max);
    let ticks = |most: f64| (0..=6).map(|p| 10f64.powi(p)).filter(|t| *t <= most * 1.5).collect::<Vec<f64>>();
    let subtitle = format!(
        "seed {seed}: {} entities, {} relations, {} facts, {} left out",
        world.entities,
        world.relations,
        world.facts.len(),
        world.questions.len()
    );
    let x = Axis::log("rank", ticks(f64::from(world.entities)));
    let y = Axis::log("facts", ticks(most));
    chart::lines("Facts of each entity and relation, by rank", &subtitle, &x, &y, &series)
}
