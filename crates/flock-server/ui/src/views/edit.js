// The view "Edit": adding and removing triples, and taking that back.
import { $, count, element } from "../dom.js";
import { post } from "../api.js";
import { combobox } from "../combobox.js";
import { show } from "../names.js";
import { PLACES, state } from "../state.js";

const MOST = 50; // edits that can be undone
const SHOWN = 5;

const boxes = [combobox("edit-head", "entities"), combobox("edit-relation", "relations"), combobox("edit-tail", "entities")];
let changed = async () => {};
export const whenEdited = (run) => (changed = run);

// The edits of this tab, by graph, the last one last: [{ what, triple }]. They survive a reload.
const key = () => `edits:${state.graph || ""}`;
const edits = () => JSON.parse(sessionStorage.getItem(key()) || "[]");
const keep = (list) => sessionStorage.setItem(key(), JSON.stringify(list.slice(-MOST)));

const words = ({ what, triple }) => `${what === "add" ? "added" : "removed"} ${triple.map(show).join(" · ")}`;

function draw() {
  const list = edits();
  $("undo").hidden = !list.length;
  $("undo").title = list.length ? `Take back: ${words(list.at(-1))}` : "";
  $("edits-title").hidden = !list.length;
  const items = list.slice(-SHOWN).reverse().map((edit) => element("li", words(edit), { title: edit.triple.join(" · ") }));
  if (list.length > SHOWN) items.push(element("li", `and ${list.length - SHOWN} before these`));
  $("edits").replaceChildren(...items);
}

const size = (done) => `the graph now has ${count(done.triples)} triples${done.kept ? ", on disk" : " (in memory only)"}`;

async function edit(event) {
  event.preventDefault();
  const what = event.submitter?.value || "add";
  const triple = boxes.map((box) => box.name());
  const empty = triple.findIndex((name) => !name);
  if (empty >= 0) {
    boxes[empty].input.focus();
    return void ($("edited").textContent = `The ${PLACES[empty]} is empty: a triple has all three.`);
  }
  try {
    const done = await post("triples", { [what]: [triple] });
    if (done.added + done.removed) {
      keep([...edits(), { what, triple }]);
      $("edited").textContent = `${what === "add" ? "Added" : "Removed"}: ${size(done)}.`;
      draw();
      await changed();
    } else $("edited").textContent = `Nothing changed: the graph ${what === "add" ? "already has" : "does not have"} this triple.`;
  } catch (e) {
    $("edited").textContent = e.message;
  }
}

async function undo() {
  const list = edits();
  const last = list.pop();
  if (!last) return;
  $("undo").disabled = true;
  try {
    const done = await post("triples", { [last.what === "add" ? "remove" : "add"]: [last.triple] });
    keep(list);
    const effect = done.added + done.removed;
    $("edited").textContent = effect
      ? `Taken back (${words(last)}): ${size(done)}.`
      : `Nothing to take back (${words(last)}): someone has changed that triple since.`;
    draw();
    if (effect) await changed();
  } catch (e) {
    $("edited").textContent = e.message;
  } finally {
    $("undo").disabled = false;
  }
}

export const view = {
  id: "edit",
  title: "Edit",
  available: (info) => Boolean(info?.writable),
  fields: () => ({}),
  open: draw,
  changed({ graph }) {
    if (graph) {
      boxes.forEach((box) => box.set(""));
      $("edited").textContent = "";
    }
    draw();
  },
  start() {
    $("triple").addEventListener("submit", edit);
    $("undo").onclick = undo;
  },
};
