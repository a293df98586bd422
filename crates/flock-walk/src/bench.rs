//! Measures how fast this machine draws walks.

use crate::{Key, Starts, WalkOptions, WalkQuery, sample_from};
use flock_graph::Topology;
use std::time::{Duration, Instant};

/// Returns the moves per second of one thread, on entity queries from random heads with n = 128 and
/// 128 positions. Measures slices of about a millisecond for `seconds` seconds, at least one, and
/// returns the best. So other work on the machine matters less.
pub fn bench_moves(topology: &Topology, seconds: f64) -> f64 {
    let options = WalkOptions::default();
    let n = 128;
    let walks = 3 * n as usize;
    let entries = walks * options.length;
    let (mut nodes, mut types, mut dirs) = (vec![0; entries], vec![0; entries], vec![0; entries]);
    let mut heads = Key { seed: 1, pass: 0, update: 0, query: 0 }.stream(0);
    let (mut best, mut query) = (0.0, 0);
    let begin = Instant::now();
    loop {
        let slice = Instant::now();
        let mut moves = 0;
        while slice.elapsed() < SLICE {
            let head = heads.below(u64::from(topology.num_nodes())) as u32;
            let key = Key { seed: 0, pass: 0, update: 0, query };
            let asked = WalkQuery::Entity { head, relation: 0 };
            let starts = Starts::prepare(topology, None, &asked, n, key, &options);
            sample_from(&starts, topology, None, &options, 0..walks, &mut nodes, &mut types, &mut dirs);
            moves += walks * (options.length - 1);
            query += 1;
        }
        best = f64::max(best, moves as f64 / slice.elapsed().as_secs_f64());
        if begin.elapsed().as_secs_f64() >= seconds {
            return best;
        }
    }
}

const SLICE: Duration = Duration::from_millis(1);
