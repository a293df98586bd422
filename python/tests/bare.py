"""What must work with nothing but the wheel installed: run by .ci/wheel with every Python of the machine."""

import importlib.util
import pickle

import flock_kg as fk

for other in ("numpy", "pandas", "polars", "pyarrow", "torch"):
    assert importlib.util.find_spec(other) is None, f"{other} is installed, so this shows nothing"

graph, model = fk.Graph.bundled("countries"), fk.Model.bundled(threads=1)
answers = model.predict(graph, "Spain", "official_language", None, top=3)
assert answers[0]["answer"] == "Spanish", answers
assert [row["rank"] for row in answers] == [1, 2, 3]
assert "Spanish" in repr(answers) and "<table" in answers._repr_html_()
assert model.predict(graph, "Lisbon", None, "Portugal", top=1)["answer"] == ["located_in"]
again = pickle.loads(pickle.dumps((graph, model, answers)))
assert again[1].predict(again[0], "Spain", "official_language", None, top=3).to_dicts() == answers.to_dicts()
try:
    answers.to_pandas()
except ImportError as error:
    assert "pip install pandas" in str(error)
else:
    raise AssertionError("there is no pandas here")
print(f"flock_kg {fk.__version__}: {answers[0]['answer']}, logit {answers[0]['logit']:+.6f}")
