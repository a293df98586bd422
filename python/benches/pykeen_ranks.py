"""Shows that ranks of our evaluator are those of PyKEEN's RankBasedEvaluator on the same scores.

    pip install pykeen flock-kg
    python benches/pykeen_ranks.py DATA/CoDExSmall --limit 50

DATA/NAME is a dataset whose train.txt has all entities. For each test triple both sides are asked for; PyKEEN gets the
logits of all entities, with other known answers taken out, and ranks the answer by its three tie rules. Exits with 1 if
one rank or one metric differs. PyTorch is too heavy for every test run, so this is run by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import flock_kg as fk
import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.evaluation.ranks import Ranks


def triples(path: Path) -> list[tuple[str, str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")[:3]) for line in lines if line]  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--limit", type=int, default=50, help="test triples, a seeded sample")
    parser.add_argument("--walks", type=int, help="few walks leave many candidates unreached, which tie")
    args = parser.parse_args()

    model = fk.Model.bundled()
    graph = fk.Graph.from_file(args.dataset / "train.txt", header=False)
    ours = model.evaluate_dataset(args.dataset, limit=args.limit, passes=1, walks=args.walks or "rule", ranks=True)
    rows = ours.ranks.to_dicts()  # type: ignore[union-attr]

    ids = {name: i for i, name in enumerate(graph.entities)}
    known: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for part in ("train", "valid", "test"):
        for head, relation, tail in triples(args.dataset / f"{part}.txt"):
            known["tail", head, relation].add(ids[tail])
            known["head", tail, relation].add(ids[head])

    evaluator = RankBasedEvaluator(filtered=True)
    different = 0
    for row in rows:
        head, relation, tail = row["head"], row["relation"], row["tail"]
        asked = (head, relation, None) if row["side"] == "tail" else (None, relation, tail)
        answers = model.predict(graph, *asked, top=0, passes=1, walks=args.walks)
        scores = torch.full((1, len(ids)), answers.info["unreached"]["logit"], dtype=torch.float64)
        for name, logit in zip(answers["answer"], answers["logit"]):
            scores[0, ids[name]] = logit
        answer = ids[tail if row["side"] == "tail" else head]
        true = scores[:, answer : answer + 1].clone()
        others = known[row["side"], head if row["side"] == "tail" else tail, relation] - {answer}
        scores[0, list(others)] = float("nan")  # as PyKEEN takes out what is known
        theirs = Ranks.from_scores(true_score=true, all_scores=scores)
        pessimistic, ties = row["rank"], row["ties"]
        mine = (pessimistic - ties, pessimistic - ties / 2, pessimistic)
        pykeen = (float(theirs.optimistic[0]), float(theirs.realistic[0]), float(theirs.pessimistic[0]))
        if mine != pykeen:
            different += 1
            print(f"{asked}: ours {mine}, PyKEEN's {pykeen}")
        batch = torch.tensor([[ids[head], 0, ids[tail]]])
        evaluator.process_scores_(hrt_batch=batch, target=row["side"], scores=scores, true_scores=true)
    result = evaluator.finalize()
    tied = sum(1 for row in rows if row["ties"])
    print(f"{args.dataset.name}: {len(rows)} ranks, {tied} of them with ties, {different} different")
    for rule in ("optimistic", "realistic", "pessimistic"):
        mine = ours.info[rule]["mrr"] if rule != "pessimistic" else ours.mrr
        pykeen = float(result.get_metric(f"both.{rule}.inverse_harmonic_mean_rank"))
        print(f"  {rule:<12} MRR: ours {mine:.10f}, PyKEEN's {pykeen:.10f}")
        different += abs(mine - pykeen) > 1e-6
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
