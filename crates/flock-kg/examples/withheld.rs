//! How many withheld links `complete` finds: hides a tenth of a relation's triples and looks for them among the best k.
//!
//! `cargo run --release --example withheld -- GRAPH RELATION [SEED]`, or `-` for all relations at once. Prints one line for each
//! order of questions and each share of them that is asked.

use std::collections::HashSet;
use std::time::Instant;

use flock_kg::complete::{CompleteOptions, Completion, Order, Pairs, RankBy, Scope, Search};
use flock_kg::graph::{GraphBuilder, Triple};
use flock_kg::{Graph, Predictor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(relation)) = (args.next(), args.next()) else {
        return Err("expected GRAPH RELATION [SEED]".into());
    };
    let seed: u64 = args.next().map_or(Ok(0), |text| text.parse())?;
    let whole = Graph::open(&file)?;
    let of = if relation == "-" { None } else { Some(whole.parse_relation(&relation)?) };
    let (graph, withheld) = hide(&whole, of, seed)?;
    println!("{} triples, {} withheld", graph.topology().num_triples(), withheld.len());

    let predictor = Predictor::bundled()?;
    let name = of.map(|id| whole.relations().get(id));
    let scope = Scope { relation: name, ..Scope::default() };
    println!(
        "pairs       search order     by           asked      s   found in the top 100   500  1000  of {}",
        withheld.len()
    );
    for pairs in [Pairs::Compatible, Pairs::Observed] {
        for search in [Search::Both, Search::Tails, Search::Heads] {
            for order in [Order::Expected, Order::Random] {
                for share in [0.25, 0.5, 1.0] {
                    let options = CompleteOptions { pairs, sides: search, order, ..CompleteOptions::default() };
                    let all = Completion::new(graph.topology(), options.clone().within(&graph, &scope)?);
                    let questions = (all.progress().planned as f64 * share).ceil() as usize;
                    for rank_by in [RankBy::Score, RankBy::Specificity] {
                        if share == 1.0 && order == Order::Random {
                            continue; // all questions find the same in any order
                        }
                        let options =
                            CompleteOptions { questions, rank_by, ..options.clone() }.within(&graph, &scope)?;
                        let mut work = Completion::new(graph.topology(), options);
                        let inquiry = predictor.on(&graph);
                        let begin = Instant::now();
                        let size = inquiry.step_size()?;
                        while inquiry.advance(&mut work, size, false)? > 0 {}
                        let seconds = begin.elapsed().as_secs_f64();
                        let links = inquiry.links(&work)?.links;
                        let found = |k: usize| {
                            let top = links.iter().take(k);
                            top.filter(|l| withheld.contains(&l.triple().map(str::to_string))).count()
                        };
                        println!(
                            "{:<11} {:<6} {:<9} {:<12} {:>5} {:>6.1}                 {:>5} {:>5} {:>5}",
                            pairs.to_string(),
                            search.to_string(),
                            order.to_string(),
                            rank_by.to_string(),
                            work.progress().asked,
                            seconds,
                            found(100),
                            found(500),
                            found(1000)
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

/// Head, relation and tail.
type Names = [String; 3];

/// The graph without a tenth of a relation's triples (or of all), and those. No entity is lost.
fn hide(
    whole: &Graph,
    relation: Option<u32>,
    seed: u64,
) -> Result<(Graph, HashSet<Names>), Box<dyn std::error::Error>> {
    let name = |t: Triple| {
        [whole.entities().get(t.head), whole.relations().get(t.relation), whole.entities().get(t.tail)]
            .map(str::to_string)
    };
    let mut degrees = vec![0u32; whole.topology().num_nodes() as usize];
    for t in whole.topology().triples() {
        degrees[t.head as usize] += 1;
        degrees[t.tail as usize] += 1;
    }
    let (mut builder, mut withheld) = (GraphBuilder::new(), HashSet::new());
    for (i, t) in whole.topology().triples().enumerate() {
        // SplitMix64 of the triple's number: one in ten.
        let mut x = (i as u64 ^ (seed << 32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let spared = degrees[t.head as usize] > 1 && degrees[t.tail as usize] > 1;
        if relation.is_none_or(|r| r == t.relation) && (x ^ (x >> 31)).is_multiple_of(10) && spared {
            degrees[t.head as usize] -= 1;
            degrees[t.tail as usize] -= 1;
            withheld.insert(name(t));
        } else {
            let [head, relation, tail] = name(t);
            builder.add(&head, &relation, &tail);
        }
    }
    Ok((builder.finish()?, withheld))
}
