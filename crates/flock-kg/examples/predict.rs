//! Lesson 1: load a graph, ask a question, read the answers.
//!
//! ```text
//! cargo run --release --example predict
//! ```

use flock_kg::{Graph, Predictor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Any file of triples: TSV, CSV, N-Triples, Turtle, RDF/XML, packed or not.
    let graph = Graph::open(concat!(env!("CARGO_MANIFEST_DIR"), "/data/countries.tsv"))?;
    // The models that ship with the library. They have never seen this graph.
    let predictor = Predictor::bundled()?;

    // `?` stands for what is asked: a tail, a head or a relation.
    for question in [["Spain", "official_language", "?"], ["?", "capital", "Vienna"], ["France", "?", "Spain"]] {
        let answers = predictor.on(&graph).passes(4).ask(question)?;
        println!("{}", answers.query.join("  "));
        for answer in answers.top(3) {
            let known = if answer.known { "  (in the graph)" } else { "" };
            println!("  {:>3}. {:<18} {:.3}{known}", answer.rank, answer.name, answer.probability);
        }
    }

    // Links that are not in the graph yet, among candidates of your own choice.
    let inquiry = predictor.on(&graph).passes(4).only_new(true).among(["Italy", "Morocco", "Norway"]);
    println!("new neighbours of Spain, of three");
    for answer in inquiry.ask(["Spain", "borders", "?"])? {
        println!("  {:>3}. {:<18} {:.3}", answer.rank, answer.name, answer.probability);
    }
    Ok(())
}
