//! The models inside the program have learnt something: they predict triples held out of the bundled graphs, which they were
//! not trained on, and initial weights of the same sizes do not. The medicines are in order, and split by the documented rule.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use flock_kg::bundled::{MEDICINES, MEDICINES_WITHHELD, default_checkpoint, medicines, withheld_from_medicines};
use flock_kg::eval::datasets::{Dataset, Part, Split};
use flock_kg::eval::evaluate::{Choice, EvalSettings, evaluate};
use flock_kg::kernels::{Engine, Level, Precision};
use flock_kg::model::Model;
use flock_kg::model::checkpoint::{Checkpoint, Task};
use flock_kg::model::init::initial_weights;
use flock_kg::{ModelName, Predictor};

/// Every tenth triple is held out, the others are the graph.
fn hold_out(dir: &Path) -> Dataset {
    let text = include_str!("../data/countries.tsv");
    let part = |held: bool| -> String {
        let lines = text.lines().enumerate().filter(|(i, _)| (i % 10 == 4) == held);
        lines.map(|(_, line)| format!("{line}\n")).collect()
    };
    std::fs::write(dir.join(Part::Train.file()), part(false)).unwrap();
    for split in [Part::Valid, Part::Test] {
        std::fs::write(dir.join(split.file()), part(true)).unwrap();
    }
    Dataset::open(dir).unwrap()
}

fn mrr(dataset: &Dataset, checkpoint: &Checkpoint) -> f64 {
    let engine = Engine::new(Level::detect().unwrap(), Precision::F32).unwrap();
    let model = Model::new(checkpoint, engine).unwrap();
    assert_eq!(model.walk_options().balanced_on_query_relation, checkpoint.meta().balanced_on_query_relation);
    let task = checkpoint.meta().task;
    let name =
        ModelName { task, origin: "test".to_string(), sha256: checkpoint.hash.clone(), precision: "f32".to_string() };
    let (walks, passes) = (Choice::Given(8), Choice::Given(1));
    let settings = EvalSettings { split: Split::Test, walks, passes, seed: 0, limit: None };
    let pool = rayon::ThreadPoolBuilder::new().build().unwrap();
    evaluate(dataset, &model, &name, &settings, &pool, None, &mut |_| true).unwrap().summary.all.pessimistic.mrr
}

#[test]
fn bundled_models_predict_what_initial_weights_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = hold_out(dir.path());
    for (task, least) in [(Task::Entity, 0.5), (Task::Relation, 0.5)] {
        let bundled = default_checkpoint(task);
        assert_eq!(
            bundled.meta().balanced_on_query_relation,
            task == Task::Entity,
            "as configs/flock-{task}.toml says"
        );
        let untrained = initial_weights(bundled.meta().clone(), 0).unwrap();
        let [bundled, untrained] = [&bundled, &untrained].map(|checkpoint| mrr(&dataset, checkpoint));
        println!("{task}: MRR {bundled:.3}, untrained {untrained:.3}");
        assert!(bundled > least && untrained < bundled - 0.2, "{task}: MRR {bundled:.3}, untrained {untrained:.3}");
    }
}

fn links(text: &str) -> Vec<[&str; 3]> {
    text.lines().map(|line| line.split('\t').collect::<Vec<_>>().try_into().expect("three fields")).collect()
}

/// The relations as `docs/reference/graph.md` lists them.
const RELATIONS: [&str; 14] = [
    "acts by",
    "affects",
    "associated with",
    "causes side effect",
    "expressed in",
    "has symptom",
    "induces enzyme",
    "inhibits enzyme",
    "interacts with",
    "is a",
    "metabolised by",
    "part of pathway",
    "targets",
    "treats",
];

#[test]
fn the_medicines_are_in_order() {
    let (kept, withheld) = (links(MEDICINES), links(MEDICINES_WITHHELD));
    let all: BTreeSet<_> = kept.iter().chain(&withheld).collect();
    assert_eq!(all.len(), kept.len() + withheld.len(), "a link stands twice, or in both files");
    assert_eq!(kept.iter().map(|link| link[1]).collect::<BTreeSet<_>>(), RELATIONS.into());
    let entities: BTreeSet<_> = kept.iter().flat_map(|&[head, _, tail]| [head, tail]).collect();
    // The counts of docs/reference/graph.md.
    assert_eq!((kept.len(), withheld.len(), entities.len()), (3910, 264, 760));
    for link @ [head, relation, tail] in &all {
        assert!(entities.contains(head) && entities.contains(tail), "{link:?} names what the graph lacks");
        assert!(head != tail, "{link:?}");
        assert!(link.iter().all(|name| name.trim() == *name && !name.is_empty()), "{link:?} has spaces around a name");
        if *relation == "interacts with" {
            assert!(all.contains(&[*tail, *relation, *head]), "{link:?} goes one way only");
        }
    }
    // Names that differ only in case would be two entities for one thing.
    assert_eq!(entities.iter().map(|name| name.to_lowercase()).collect::<BTreeSet<_>>().len(), entities.len());
    let graph = medicines().unwrap();
    assert_eq!(graph.topology().num_triples() as usize, kept.len());
    assert_eq!(withheld_from_medicines().collect::<Vec<_>>(), withheld);
}

/// FNV-1a with 64 bits. `docs/reference/graph.md` names it, so that anyone can repeat the choice.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whoever adds a fact learns here which of the two files it belongs to.
#[test]
fn a_rule_chose_what_is_withheld() {
    // The published test vector of "foobar".
    assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    let (kept, withheld) = (links(MEDICINES), links(MEDICINES_WITHHELD));
    let mut facts_with: HashMap<&str, usize> = HashMap::new();
    for &[head, _, tail] in kept.iter().chain(&withheld) {
        *facts_with.entry(head).or_default() += 1;
        *facts_with.entry(tail).or_default() += 1;
    }
    let chosen = |[head, relation, tail]: [&str; 3]| {
        let percent = match relation {
            "treats" => 18,
            "targets" => 15,
            "causes side effect" => 10,
            _ => 0,
        };
        fnv1a(&[head, relation, tail].join("\t")) % 100 < percent && facts_with[head] >= 5 && facts_with[tail] >= 5
    };
    for link in kept {
        assert!(!chosen(link), "{link:?} belongs to medicines-withheld.tsv");
    }
    for link in withheld {
        assert!(chosen(link), "{link:?} belongs to medicines.tsv");
    }
}

/// The first eight withheld links of `treats`, each asked for its disease. By chance a list of ten would have one of the 760
/// entities in 1 of 76 cases; we ask for six in eight.
#[test]
fn withheld_links_of_the_medicines_are_found() {
    let graph = medicines().unwrap();
    let predictor = Predictor::bundled().unwrap();
    let inquiry = predictor.on(&graph).only_new(true).top(10);
    let asked: Vec<_> = withheld_from_medicines().filter(|link| link[1] == "treats").take(8).collect();
    let questions: Vec<_> = asked.iter().map(|&[drug, relation, _]| [drug, relation, "?"]).collect();
    let answers = inquiry.ask_many(&questions);
    let found: Vec<_> = answers
        .into_iter()
        .zip(&asked)
        .filter(|(answers, link)| answers.as_ref().unwrap().answers.iter().any(|answer| answer.name == link[2]))
        .map(|(_, link)| link)
        .collect();
    assert!(found.len() >= 6, "found only {found:?} of {asked:?}");
}
