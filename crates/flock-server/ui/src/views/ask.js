// The view "Ask": a question, answers that refine as passes come, and the paths behind the chosen one.
import { $, button, element, plural } from "../dom.js";
import { stream } from "../api.js";
import * as address from "../address.js";
import * as answers from "../answers.js";
import { combobox } from "../combobox.js";
import * as evidence from "../evidence.js";
import { show } from "../names.js";
import { problem } from "../problem.js";
import { PLACES, state } from "../state.js";
import * as take from "../take.js";

const PASSES = 16;
const REMEMBERED = 16;

const boxes = [combobox("head", "entities"), combobox("relation", "relations"), combobox("tail", "entities")];
const now = { query: null, chosen: null, asking: null };
// Final replies by question, so that going back shows them at once.
const replies = new Map();

const fields = () => (now.query ? { ...Object.fromEntries(PLACES.map((p, i) => [p, now.query[i]])), answer: now.chosen } : {});

function fill(query) {
  boxes.forEach((box, i) => box.set(!query || query[i] === "?" ? "" : query[i]));
}

// Asks what is in the boxes. `answer` is to be chosen when it is there.
async function ask({ answer = null, detail = false } = {}) {
  const query = boxes.map((box) => box.name() || "?");
  problem(null);
  $("loaded").hidden = true;
  if (query.filter((t) => t === "?").length !== 1) {
    problem(new Error("Fill in two of the three boxes and leave the one that is asked for empty."));
    return;
  }
  now.asking?.abort();
  const mine = (now.asking = new AbortController());
  Object.assign(now, { query, chosen: answer });
  address.write("ask", fields(), { detail });
  $("empty").hidden = true;
  $("taken").textContent = "";
  answers.begin(query);
  evidence.clear("ask", query);
  const before = replies.get(JSON.stringify(query));
  if (before) return finish(before, answer);
  const passes = Math.min(PASSES, state.info?.limits.passes ?? PASSES);
  $("status").textContent = "asking…";
  progress(0, passes);
  try {
    const body = { query, passes, explain: true, novel: true, top: answers.STREAMED };
    for await (const { event, data } of stream("predict/stream", body, mine.signal)) {
      if (event === "problem") throw Object.assign(new Error(data.error), { code: data.code });
      boxes.forEach((box) => box.refresh());
      if (event === "done") {
        replies.set(JSON.stringify(query), data);
        if (replies.size > REMEMBERED) replies.delete(replies.keys().next().value);
        return finish(data, answer);
      }
      answers.take(data, false);
      progress(data.passes, passes);
      $("status").textContent = `pass ${data.passes}: the answers are still settling`;
    }
  } catch (e) {
    if (e.name === "AbortError") return;
    $("status").textContent = "";
    progress(0, 0);
    problem(e, near(e));
  }
}

function progress(done, passes) {
  const bar = $("progress");
  bar.hidden = !passes;
  bar.setAttribute("aria-valuemax", passes);
  bar.setAttribute("aria-valuenow", done);
  bar.firstElementChild.style.width = `${passes ? (100 * done) / passes : 0}%`;
}

// Names that may have been meant, each a way to ask again.
const near = (error) =>
  (error.near || []).map((name) =>
    button(show(name), () => {
      const wrong = boxes.find((box) => error.message.includes(JSON.stringify(box.name())));
      wrong?.set(name);
      ask();
    }, { title: name }),
  );

function finish(reply, answer) {
  progress(0, 0);
  answers.take(reply, true);
  const n = reply.answers.length;
  const more = n >= answers.STREAMED ? "the first " : "";
  $("status").textContent = `${more}${plural(n, "new answer")} after ${plural(reply.passes, "pass", "passes")}`;
  if (!n) {
    $("empty").hidden = false;
    const known = !$("known").hidden;
    $("empty").textContent = known
      ? "No new answer was reached by a walk. What the graph has is below."
      : "No candidate was reached by a walk: the question's entity may stand alone in the graph.";
    if (known) $("known").open = true;
    return;
  }
  choose(answer || (reply.answers.find((a) => a.reason) || reply.answers[0]).name);
}

function choose(name) {
  now.chosen = name;
  answers.mark(name);
  address.write("ask", fields(), { detail: true });
  evidence.explain("ask", now.query, name);
}

// The entity takes the place of the one that was asked from; a relation question turns into one for tails.
function askAbout(name) {
  const place = (now.query || ["", "", "?"]).indexOf("?");
  const [head, relation, tail] = boxes;
  (place === 0 ? tail : head).set(name);
  (place === 0 ? head : tail).set("");
  if (place === 1 && now.chosen) relation.set(now.chosen);
  if (relation.name()) ask();
  else relation.input.focus();
}

// Without a question.
function clear() {
  now.asking?.abort();
  Object.assign(now, { query: null, chosen: null });
  answers.begin(null);
  evidence.clear("ask");
  progress(0, 0);
  $("status").textContent = "";
  $("empty").hidden = false;
  $("empty").textContent = "No question yet. Try one of the examples, or drop a file of triples (head, relation, tail) anywhere on this page.";
}

export const view = {
  id: "ask",
  title: "Ask",
  available: () => true,
  fields,
  // Shows what an address is about.
  open(place) {
    const query = PLACES.every((p) => place[p]) ? PLACES.map((p) => place[p]) : null;
    if (!query) {
      if (now.query) fill(null);
      return clear();
    }
    if (JSON.stringify(query) === JSON.stringify(now.query)) {
      if (place.answer && place.answer !== now.chosen) choose(place.answer);
      return;
    }
    fill(query);
    ask({ answer: place.answer || null, detail: true });
  },
  // Another graph is open, or this one has changed.
  changed({ graph }) {
    replies.clear();
    if (graph) {
      now.asking?.abort();
      now.query = null;
      fill(null);
      clear();
    } else if (now.query) {
      // An edit: what is being looked at is asked again.
      fill(now.query);
      ask({ detail: true });
    }
    $("examples").replaceChildren(
      ...(state.info?.examples || []).map((example) => {
        const parts = example.flatMap((name) => [element("bdi", name === "?" ? "?" : show(name)), "  "]).slice(0, -1);
        const e = button(null, () => {
          fill(example);
          ask();
        });
        e.append(...parts);
        return e;
      }),
    );
  },
  start() {
    $("ask").addEventListener("submit", (e) => {
      e.preventDefault();
      ask();
    });
    answers.whenChosen(choose);
    answers.listen(problem);
    evidence.whenAsked("ask", askAbout);
    take.listen();
    clear();
  },
};
