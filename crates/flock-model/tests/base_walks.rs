//! The base walk rule against the paper's table of inference settings, every row of it.

use flock_model::base_walks::base_walks;
use flock_model::checkpoint::{Metadata, Task};

/// |V| and |E| of the graph walked at test time (the paper's statistics tables) and the base walk count n (its tables of
/// hyperparameters, which agree on n for entity and relation prediction). Ranges such as "FB v1--v4" are written out.
const PAPER: [(&str, u32, usize, u32); 57] = [
    // transductive: entities and train triples
    ("FB15k-237", 14541, 272115, 128),
    ("WN18RR", 40943, 86835, 128),
    ("CoDEx Small", 2034, 32888, 16),
    ("CoDEx Medium", 17050, 185584, 128),
    ("CoDEx Large", 77951, 551193, 512),
    ("NELL-995", 74536, 149678, 128),
    ("YAGO310", 123182, 1079040, 512),
    ("WDsinger", 10282, 16142, 16),
    ("NELL23k", 22925, 25445, 32),
    ("FB15k-237(10)", 11512, 27211, 32),
    ("FB15k-237(20)", 13166, 54423, 64),
    ("FB15k-237(50)", 14149, 136057, 64),
    ("Hetionet", 45158, 2025177, 512),
    ("DBpedia100k", 99604, 597572, 512),
    ("AristoV4", 44949, 242567, 256),
    ("ConceptNet100k", 78334, 100000, 128),
    // inductive in entities: the test graph
    ("FB v1", 1093, 1993, 16),
    ("FB v2", 1660, 4145, 16),
    ("FB v3", 2501, 7406, 16),
    ("FB v4", 3051, 11714, 16),
    ("WN v1", 922, 1618, 16),
    ("WN v2", 2757, 4011, 16),
    ("WN v3", 5084, 6327, 16),
    ("WN v4", 7084, 12334, 16),
    ("NL v1", 225, 833, 16),
    ("NL v2", 2086, 4586, 16),
    ("NL v3", 3566, 8048, 16),
    ("NL v4", 2795, 7073, 16),
    ("ILPC Small", 6653, 20960, 16),
    ("ILPC Large", 29246, 77044, 64),
    ("HM 1k", 9899, 18638, 16),
    ("HM 3k", 19218, 38285, 32),
    ("HM 5k", 23792, 48425, 64),
    ("HM Indigo", 14775, 250195, 128),
    // inductive in entities and relations: the test graph
    ("FB 25", 4097, 17147, 16),
    ("FB 50", 4445, 11636, 16),
    ("FB 75", 2792, 9316, 16),
    ("FB 100", 2624, 6987, 16),
    ("WK 25", 3228, 3391, 16),
    ("WK 50", 9328, 9672, 16),
    ("WK 75", 2722, 3430, 16),
    ("WK 100", 12136, 13487, 16),
    ("NL 0", 2026, 2287, 16),
    ("NL 25", 2146, 2230, 16),
    ("NL 50", 2335, 2576, 16),
    ("NL 75", 1578, 1818, 16),
    ("NL 100", 1709, 2378, 16),
    ("Wiki MT1 tax", 10000, 16526, 16),
    ("Wiki MT1 health", 10000, 14110, 16),
    ("Wiki MT2 org", 10000, 21976, 32),
    ("Wiki MT2 sci", 10000, 14852, 16),
    ("Wiki MT3 art", 10000, 28023, 32),
    ("Wiki MT3 infra", 10000, 21646, 32),
    ("Wiki MT4 sci", 10000, 12516, 16),
    ("Wiki MT4 health", 10000, 15337, 16),
    ("Metafam", 656, 7257, 16),
    ("FBNELL", 4752, 10685, 16),
];

#[test]
fn every_row_of_the_paper_without_exception() {
    let meta = Metadata::published(Task::Entity);
    assert_eq!(meta.mean_nodes, 24178.0);
    assert!((meta.mean_triples - 181511.333).abs() < 0.001);
    for (name, nodes, triples, n) in PAPER {
        assert_eq!(meta.base_walks(nodes, triples), n, "{name}");
    }
}

#[test]
fn a_model_may_ask_for_more_walks_on_small_graphs() {
    let meta = Metadata { n_least: 32, ..Metadata::published(Task::Entity) };
    for (name, nodes, triples, n) in PAPER {
        assert_eq!(meta.base_walks(nodes, triples), n.max(32), "{name}");
    }
}

#[test]
fn a_model_may_ask_for_more_walks_on_dense_graphs() {
    let meta = Metadata { n_per_degree: 2.0, ..Metadata::published(Task::Entity) };
    // 2 · 2|E|/|V|: 5.6 and 44.2, of which 16√2 = 22.6 < 44.2 < 32√2 = 45.3.
    assert_eq!((meta.base_walks(10_000, 14_110), meta.base_walks(656, 7_257)), (16, 32));
    // 2 · 2 · 32,888 / 2,034 = 64.7 on CoDExSmall. A graph never gets more than 128 for its density.
    assert_eq!((meta.base_walks(2_034, 32_888), meta.base_walks(1_708, 192_283)), (64, 128));
    // A large graph keeps what it gets for its size.
    assert_eq!(meta.base_walks(u32::MAX, 1 << 40), 512);
    assert_eq!((meta.base_walks(0, 0), meta.base_walks(1, 0)), (16, 16));
}

#[test]
fn the_border_is_at_the_square_root_of_two() {
    // With both means 1 and |V| = |E| = x, the harmonic mean is x and n = n_train·x: 1·22 < 16√2 = 22.63 < 1·23.
    let n = |x: u32| base_walks(1, 1.0, 1.0, x, x as usize);
    assert_eq!((n(22), n(23)), (16, 32));
    // 256√2 = 362.04
    assert_eq!((n(362), n(363)), (256, 512));
}

#[test]
fn the_count_stays_within_its_bounds() {
    let n = |nodes, triples| base_walks(128, 24178.0, 181511.3, nodes, triples);
    assert_eq!((n(0, 0), n(1, 0), n(0, 1), n(1, 1)), (16, 16, 16, 16));
    assert_eq!(n(u32::MAX, 1 << 40), 512);
}
