// Graphs: which one is open, opening a file of one's own, and finding one's way back to it.
import { $, button, count, element, shorten } from "./dom.js";
import { Refused, call, get } from "./api.js";
import { forget } from "./names.js";
import { onProblem, problem } from "./problem.js";
import { state } from "./state.js";
import { pickColumns } from "./columns.js";
import { parse, peek, quoted, textOf } from "./table.js";
import * as uploads from "./uploads.js";

// What the rest of the page does when another graph is open, and how to go to a graph.
let opened = () => {}, go = () => {};
export function whenOpened(run, goTo) {
  opened = run;
  go = goTo;
}

// Asks the server about the open graph, and shows what it says.
export async function about() {
  const info = (state.info = await get("info"));
  $("about").title = info.name;
  $("about").textContent = `${shorten(info.name, 60)}: ${count(info.entities)} entities, ${count(info.relations)} relations, ${count(info.triples)} triples`;
  document.title = state.graph ? `${shorten(info.name, 40)} · flock-kg` : "flock-kg";
  choices();
  return info;
}

// Opens a graph: an uploaded one by its id, or the server's own.
export async function open(id) {
  if (state.graph !== id) {
    forget();
    Object.assign(state, { graph: id, info: null });
    opened(); // nothing of the graph before is left, even if this one cannot be had
  }
  $("loaded").hidden = true;
  choices();
  await about();
  opened();
}

// The graphs that one can go to, if there are several.
function choices() {
  const list = uploads.remembered();
  if (state.graph && !list.some((u) => u.id === state.graph)) {
    list.unshift({ id: state.graph, name: state.info?.name || "a graph from elsewhere" });
  }
  $("graph-choice").hidden = !list.length;
  $("graph").replaceChildren(
    element("option", "the server's graph", { value: "" }),
    ...list.map((u) => element("option", shorten(u.name, 30), { value: u.id, title: u.name })),
  );
  $("graph").value = state.graph || "";
}

// A graph that the server does not have any more: it keeps a few, in memory.
onProblem("unknown_graph", async (error) => {
  const id = state.graph, known = uploads.find(id);
  const copy = known && (await uploads.copyOf(id));
  $("status").textContent = "";
  $("about").textContent = "";
  const name = known ? `the graph ${known.name}` : "this graph";
  const text = `The server does not have ${name} any more. It keeps uploaded graphs in memory: until it ends, or until others take their place.${known ? " Edits of it are lost." : ""}`;
  const again = copy
    ? button(`Load ${shorten(known.name, 40)} again`, () => upload(new File([copy], known.name), known.reading, id), { id: "again" })
    : button("Load the file again…", () => chooseFile(id), { id: "again" });
  problem({ message: text, cause: error }, [again, button("Go to the server's graph", () => go(null), { id: "own" })]);
});

// The id of the graph that the next chosen file takes the place of, if any.
let replacing = null;
function chooseFile(id) {
  replacing = id;
  $("file").click();
}

const KINDS = { csv: "text/csv", ttl: "text/turtle", nt: "application/n-triples" };

// What is sent for a file, and how the server is to read it.
async function prepared(file, reading) {
  const extension = file.name.split(".").pop().toLowerCase();
  const kind = KINDS[extension] || "text/tab-separated-values";
  if (!reading) return { body: file, kind, query: {} };
  const { separator, header, columns, lenient } = reading;
  if (separator === "\t" || separator === ",") {
    const format = separator === "," ? "csv" : "tsv";
    const query = { format, header: String(header), columns: columns.map((c) => c + 1).join(","), ...(lenient ? { lenient: "true" } : {}) };
    return { body: file, kind: "text/tab-separated-values", query };
  }
  // The server reads tabs and commas: what else separates columns becomes commas here.
  const rows = parse(await textOf(file), separator).slice(header ? 1 : 0);
  const text = rows.map((row) => columns.map((c) => quoted(row[c] ?? "")).join(",")).join("\n");
  const query = { format: "csv", header: "false", ...(lenient ? { lenient: "true" } : {}) };
  return { body: new Blob([text]), kind: "text/tab-separated-values", query };
}

// Loads a file as a graph. `reading` says which columns are what, if someone chose; `instead` is the id of a graph that it takes the
// place of, whose question stays.
export async function upload(file, reading = null, instead = replacing) {
  replacing = null;
  if (!file) return;
  problem(null);
  $("status").textContent = `reading ${file.name}…`;
  try {
    const { body, kind, query } = await prepared(file, reading);
    const path = `/api/v1/graphs?${new URLSearchParams({ name: file.name, ...query })}`;
    const loaded = await (await call(path, { method: "POST", headers: { "Content-Type": kind }, body })).json();
    if (instead) await uploads.drop(instead);
    await uploads.remember({ id: loaded.graph, name: file.name, reading }, file);
    $("status").textContent = "";
    await go(loaded.graph, Boolean(instead));
    welcome(file, reading, loaded);
  } catch (e) {
    $("status").textContent = "";
    if (!(e instanceof Refused) || e.code !== "bad_graph") return problem(e);
    const table = await peek(file);
    if (!table || Math.max(...table.rows.map((r) => r.length)) < 3) return problem(e);
    await choose(file, table, reading, e.said, instead);
  }
}

async function choose(file, table, reading, why, instead = null) {
  const chosen = await pickColumns(file, table, why, reading);
  if (chosen) await upload(file, { ...chosen, separator: table.separator }, instead);
}

// Says how a file was read, and lets one say otherwise.
async function welcome(file, reading, { warnings = [], left_out, notes = [] }) {
  const box = $("loaded");
  const said = [...(left_out ? [`Left out: ${left_out}.`] : []), ...notes.map((n) => `${n}.`), ...warnings.map((w) => `Warning: ${w}.`)];
  box.replaceChildren(element("span", [`${file.name} is loaded.`, ...said].join(" ")));
  box.hidden = false;
  const table = await peek(file);
  if (table && Math.max(...table.rows.map((r) => r.length)) >= 3) {
    box.append(" ", button("Choose columns…", () => choose(file, table, reading, null, state.graph), { id: "choose-columns" }));
  }
}

// Files: chosen, or dropped on the page.
export function listen() {
  $("file").onchange = (e) => {
    const file = e.target.files[0];
    e.target.value = ""; // the same file may be chosen again
    upload(file);
  };
  $("file").addEventListener("cancel", () => (replacing = null));
  $("graph").onchange = (e) => go(e.target.value || null);
  let dragging = 0;
  const drag = (step) => (e) => {
    e.preventDefault();
    dragging += step;
    $("drop").hidden = dragging <= 0;
  };
  addEventListener("dragenter", drag(1));
  addEventListener("dragleave", drag(-1));
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", (e) => {
    e.preventDefault();
    dragging = 0;
    $("drop").hidden = true;
    upload(e.dataTransfer.files[0]);
  });
}
