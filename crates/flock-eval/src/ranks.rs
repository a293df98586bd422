//! A file of ranks: one row per question and answer. Two such files are what a comparison of two
//! models needs.
//!
//! The file is tab-separated and has a header line. Tabs, line ends and backslashes in names are
//! written as `\t`, `\n`, `\r` and `\\`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use csv::StringRecord;

use crate::error::EvalError;
use crate::questions::{AskedSide, TestAnswer};
use crate::rank::AnswerRank;
use crate::rows::{Separator, TableRow, rows};
use crate::strata::Stratum;
use flock_model::checkpoint::Task;

/// The columns, in order.
pub const COLUMNS: [&str; 14] = [
    "dataset",
    "task",
    "split",
    "head",
    "relation",
    "tail",
    "side",
    "rank",
    "ties",
    "score",
    "candidates",
    "reached",
    "half_link",
    "distance",
];

/// A row of the file: a question and the rank of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// Name of the dataset.
    pub dataset: String,
    /// The task.
    pub task: Task,
    /// `valid` or `test`.
    pub split: String,
    /// Names of head, relation and tail.
    pub triple: [String; 3],
    /// The part of the triple that was asked for.
    pub side: AskedSide,
    /// Rank of the answer, with ties counted against it.
    pub rank: f64,
    /// Rivals with the same score.
    pub ties: u32,
    /// The answer's mean logit.
    pub score: f64,
    /// Number of candidates, the answer included.
    pub candidates: u32,
    /// Whether a walk reached the answer.
    pub reached: bool,
    /// The kind of question.
    pub stratum: Stratum,
    /// Seed of the walks, in a file of several seeds.
    pub seed: Option<u64>,
}

impl RankRow {
    /// Makes the row of an answer. `place` has dataset, task and split; `triple` has the names of
    /// head, relation and tail.
    pub fn new(
        place: (&str, Task, &str),
        triple: [&str; 3],
        answer: &TestAnswer,
        rank: &AnswerRank,
        stratum: Stratum,
    ) -> RankRow {
        let (dataset, task, split) = place;
        RankRow {
            dataset: dataset.to_string(),
            task,
            split: split.to_string(),
            triple: triple.map(String::from),
            side: answer.side,
            rank: rank.rank.pessimistic(),
            ties: rank.rank.ties,
            score: rank.score,
            candidates: rank.rivals + 1,
            reached: rank.reached,
            stratum,
            seed: None,
        }
    }

    fn key(&self, by_seed: bool) -> RowKey<'_> {
        (self.question(), self.seed.filter(|_| by_seed))
    }

    /// Returns what identifies the question.
    fn question(&self) -> (&str, Task, &str, &[String; 3], AskedSide) {
        (&self.dataset, self.task, &self.split, &self.triple, self.side)
    }
}

/// The last column of a file with the ranks of several seeds.
pub const SEED: &str = "seed";

/// Writes the header line of a file with these rows.
pub fn write_header(out: &mut dyn Write, rows: &[RankRow]) -> io::Result<()> {
    let seed = if has_seeds(rows) { format!("\t{SEED}") } else { String::new() };
    writeln!(out, "{}{seed}", COLUMNS.join("\t"))
}

fn has_seeds(rows: &[RankRow]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| row.seed.is_some())
}

/// Writes a row.
pub fn write_row(out: &mut dyn Write, row: &RankRow) -> io::Result<()> {
    let [head, relation, tail] = row.triple.each_ref().map(|name| escape_name(name));
    let flag = |b: Option<bool>| b.map_or("", |b| if b { "1" } else { "0" });
    let side = match row.side {
        AskedSide::Head => "head",
        AskedSide::Tail => "tail",
        AskedSide::Relation => "relation",
    };
    let RankRow { dataset, task, split, rank, ties, score, candidates, reached, stratum, .. } = row;
    let (reached, half) = (u8::from(*reached), flag(stratum.half_link));
    let distance = stratum.distance.map_or(String::new(), |d| d.to_string());
    let dataset = escape_name(dataset);
    let seed = row.seed.map_or(String::new(), |seed| format!("\t{seed}"));
    writeln!(
        out,
        "{dataset}\t{task}\t{split}\t{head}\t{relation}\t{tail}\t{side}\t{rank}\t{ties}\t{score}\t{candidates}\t{reached}\t{half}\t{distance}{seed}"
    )
}

fn escape_name(name: &str) -> String {
    name.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape_name(text: &str) -> String {
    let (mut name, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => name.push(match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            }),
            (c, false) => name.push(c),
        }
    }
    name
}

/// Reads a file of ranks.
pub fn read(path: &Path) -> Result<Vec<RankRow>, EvalError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| EvalError::File { file: file.clone(), source })?;
    let wrong = |line: usize, reason: &str| EvalError::Ranks { file: file.clone(), line, reason: reason.to_string() };
    let mut rows = rows(&text, Separator::Tab);
    let header: Vec<String> = rows.next().iter().flat_map(|header| header.fields.iter().map(String::from)).collect();
    let seeds = header.last().is_some_and(|last| last == SEED);
    if header[..header.len() - usize::from(seeds)] != COLUMNS[..] {
        return Err(EvalError::RankColumns { file });
    }
    rows.map(|TableRow { line, fields }| {
        if fields.len() != header.len() {
            return Err(wrong(line, &format!("expected {} columns, found {}", header.len(), fields.len())));
        }
        parse(&fields).ok_or_else(|| wrong(line, "a value that its column cannot have"))
    })
    .collect()
}

fn parse(cells: &StringRecord) -> Option<RankRow> {
    let flag = |text: &str| match text {
        "" => Some(None),
        "0" => Some(Some(false)),
        "1" => Some(Some(true)),
        _ => None,
    };
    let rank: f64 = cells[7].parse().ok()?;
    Some(RankRow {
        dataset: unescape_name(&cells[0]),
        task: match &cells[1] {
            "entity" => Task::Entity,
            "relation" => Task::Relation,
            _ => return None,
        },
        split: cells[2].to_string(),
        triple: [&cells[3], &cells[4], &cells[5]].map(unescape_name),
        side: match &cells[6] {
            "head" => AskedSide::Head,
            "tail" => AskedSide::Tail,
            "relation" => AskedSide::Relation,
            _ => return None,
        },
        rank: (rank >= 1.0 && rank.is_finite()).then_some(rank)?,
        ties: cells[8].parse().ok()?,
        score: cells[9].parse().ok()?,
        candidates: cells[10].parse().ok()?,
        reached: flag(&cells[11])??,
        stratum: Stratum {
            half_link: flag(&cells[12])?,
            distance: match &cells[13] {
                "" => None,
                text => Some(text.parse().ok()?),
            },
        },
        seed: match cells.get(COLUMNS.len()) {
            None => None,
            Some(text) => Some(text.parse().ok()?),
        },
    })
}

/// The questions that two files share, with their reciprocal ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// One entry per dataset and task, in the order of the first file.
    pub datasets: Vec<PairedDataset>,
    /// Number of questions that only one of the files has.
    pub unpaired: usize,
}

/// The triples of one dataset that two files share.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedDataset {
    /// Name of the dataset.
    pub dataset: String,
    /// The task.
    pub task: Task,
    /// For each triple: the reciprocal ranks in the first and in the second file, summed over its
    /// sides and seeds, and how many were summed.
    pub triples: Vec<(f64, f64, u32)>,
}

/// What identifies a row: the seed only where both files have one.
type RowKey<'a> = ((&'a str, Task, &'a str, &'a [String; 3], AskedSide), Option<u64>);

/// The reciprocal rank of each question, in the order of the file. Without `by_seed` it is the mean
/// over the question's seeds.
fn reciprocals(rows: &[RankRow], by_seed: bool) -> (Vec<&RankRow>, HashMap<RowKey<'_>, f64>) {
    let mut firsts = Vec::new();
    let mut sums: HashMap<RowKey<'_>, (f64, f64)> = HashMap::new();
    for row in rows {
        let sum = sums.entry(row.key(by_seed)).or_insert_with(|| {
            firsts.push(row);
            (0.0, 0.0)
        });
        *sum = (sum.0 + 1.0 / row.rank, sum.1 + 1.0);
    }
    (firsts, sums.into_iter().map(|(key, (sum, count))| (key, sum / count)).collect())
}

/// Joins two files by question, and by seed if both have several. If one of them has, the reciprocal
/// ranks of a question are averaged over its seeds.
pub fn pair(ours: &[RankRow], theirs: &[RankRow]) -> Pairs {
    let by_seed = has_seeds(ours) && has_seeds(theirs);
    let (rows, ours) = reciprocals(ours, by_seed);
    let (_, theirs) = reciprocals(theirs, by_seed);
    let mut pairs = Pairs { datasets: Vec::new(), unpaired: theirs.len() };
    let mut places: HashMap<(&str, Task, &[String; 3]), (usize, usize)> = HashMap::new();
    for row in rows {
        let key = row.key(by_seed);
        let Some(theirs) = theirs.get(&key) else {
            pairs.unpaired += 1;
            continue;
        };
        pairs.unpaired -= 1;
        let (d, t) = *places.entry((&row.dataset, row.task, &row.triple)).or_insert_with(|| {
            let known = pairs.datasets.iter().position(|d| d.dataset == row.dataset && d.task == row.task);
            let d = known.unwrap_or_else(|| {
                let (dataset, task) = (row.dataset.clone(), row.task);
                pairs.datasets.push(PairedDataset { dataset, task, triples: Vec::new() });
                pairs.datasets.len() - 1
            });
            pairs.datasets[d].triples.push((0.0, 0.0, 0));
            (d, pairs.datasets[d].triples.len() - 1)
        });
        let sum = &mut pairs.datasets[d].triples[t];
        *sum = (sum.0 + ours[&key], sum.1 + theirs, sum.2 + 1);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::Rank;

    fn row(dataset: &str, head: &str, side: AskedSide, higher: u32) -> RankRow {
        let rank = Rank { higher, ties: 1 };
        let placed = AnswerRank { rank, filtered: rank, reached: higher < 3, score: -0.125, rivals: 9 };
        let item = TestAnswer { answer: 0, side, relation: 0, triple: 0 };
        let stratum = Stratum { half_link: (side != AskedSide::Relation).then_some(higher == 0), distance: Some(2) };
        RankRow::new((dataset, Task::Entity, "valid"), [head, "r\\1", "t"], &item, &placed, stratum)
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ranks.tsv");
        let mut far = row("d", "far\taway\n", AskedSide::Tail, 7);
        far.stratum.distance = None;
        let rows = vec![row("d", "a", AskedSide::Head, 0), far, row("e\\n", "", AskedSide::Relation, 3)];
        let mut bytes = Vec::new();
        write_header(&mut bytes, &rows).unwrap();
        rows.iter().for_each(|row| write_row(&mut bytes, row).unwrap());
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), rows);
        // rank = higher + ties + 1; candidates = rivals + 1.
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("d\tentity\tvalid\ta\tr\\\\1\tt\thead\t2\t1\t-0.125\t10\t1\t1\t2\n"), "{text}");
        for (from, to, error) in [
            ("\thead\t2", "\tfoot\t2", ":2: a value that its column cannot have"),
            ("\t2\t1\t-0.125", "\t0\t1\t-0.125", ":2: a value"),
            ("dataset\t", "data\t", ":1: expected the columns of a file of ranks"),
            ("\t10\t1\t1\t2\n", "\t10\t1\t1\n", ":2: expected 14 columns, found 13"),
        ] {
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let found = read(&path).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
    }

    #[test]
    fn pairs_by_question() {
        let ours = [
            row("d", "a", AskedSide::Head, 0),
            row("d", "a", AskedSide::Tail, 2),
            row("d", "b", AskedSide::Tail, 0),
            row("e", "a", AskedSide::Tail, 0),
        ];
        let theirs = [
            row("d", "b", AskedSide::Tail, 2),
            row("d", "a", AskedSide::Head, 2),
            row("d", "a", AskedSide::Tail, 0),
            row("f", "a", AskedSide::Tail, 0),
        ];
        let pairs = pair(&ours, &theirs);
        // Ranks are higher + 2: reciprocals 1/2 and 1/4.
        let triples = vec![(0.75, 0.75, 2), (0.5, 0.25, 1)];
        assert_eq!(pairs.datasets, [PairedDataset { dataset: "d".into(), task: Task::Entity, triples }]);
        assert_eq!(pairs.unpaired, 2);
    }

    #[test]
    fn seeds_are_joined_if_both_have_them_and_averaged_if_not() {
        let seeded = |seed, higher| RankRow { seed: Some(seed), ..row("d", "a", AskedSide::Tail, higher) };
        let triples = |ours: &[RankRow], theirs: &[RankRow]| {
            let pairs = pair(ours, theirs);
            (pairs.datasets.into_iter().flat_map(|d| d.triples).collect::<Vec<_>>(), pairs.unpaired)
        };
        // Ranks are higher + 2: reciprocals 1/2, 1/4 and, at 8, 1/10.
        let ours = [seeded(1, 0), seeded(2, 2)];
        // Seed 1 is in both. Seeds 2 and 3 are in one each.
        assert_eq!(triples(&ours, &[seeded(1, 2), seeded(3, 8)]), (vec![(0.5, 0.25, 1)], 2));
        // The other file has one seed, which it does not name: (1/2 + 1/4) / 2 against 1/10.
        let plain = [row("d", "a", AskedSide::Tail, 8)];
        assert_eq!(triples(&ours, &plain), (vec![(0.375, 0.1, 1)], 0));
        assert_eq!(triples(&plain, &ours), (vec![(0.1, 0.375, 1)], 0));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ranks.tsv");
        let mut bytes = Vec::new();
        write_header(&mut bytes, &ours).unwrap();
        ours.iter().for_each(|row| write_row(&mut bytes, row).unwrap());
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), ours);
        assert!(String::from_utf8(bytes).unwrap().starts_with(&format!("{}\tseed\n", COLUMNS.join("\t"))));
    }
}
