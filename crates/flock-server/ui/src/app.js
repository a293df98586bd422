// The page: a question, answers that refine as passes come, and the walks behind the chosen one.
// Names come from graphs and may be anything: they only ever become text, never markup.
import cytoscape from "cytoscape";

const PASSES = 16;
const $ = (id) => document.getElementById(id);
const PLACES = ["head", "relation", "tail"];
const state = { graph: null, query: null, reply: null, chosen: null, explanation: null, around: null, asking: null, info: null };

// How names are shown, where that is not the full name: every reply says so. Full names stay what is sent.
const shown = new Map();
const learn = (reply) => {
  for (const [name, short] of Object.entries(reply.shown || {})) shown.set(name, short);
  return reply;
};
const show = (name) => shown.get(name) || name;

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== null) e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

// Requests ------------------------------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, body) {
    super(`${body.error || `the server answered ${status}`}${body.remedy && !body.near?.length ? ` (${body.remedy})` : ""}`);
    this.near = body.near || [];
  }
}

async function call(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Error("the server cannot be reached; is it still running?");
  }
  // Until the token is right, or the reader gives up.
  if (response.status === 401 && (await askToken(token))) return call(path, options);
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})));
  return response;
}

const get = async (path, query = {}) => {
  const given = Object.entries({ ...query, graph: state.graph }).filter(([, v]) => v !== null && v !== undefined);
  return learn(await (await call(`/api/v1/${path}?${new URLSearchParams(given)}`)).json());
};
const post = (path, body, signal) =>
  call(`/api/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ graph: state.graph, ...body }),
    signal,
  });

// Asks for the token; `tried` is the one that was refused, if any. Requests that are refused together share one dialog.
let asking = null;
function askToken(tried) {
  const now = sessionStorage.getItem("token");
  if (now !== tried) return Promise.resolve(now !== null); // another request has asked meanwhile
  asking ||= new Promise((resolve) => {
    const dialog = $("token"), text = $("token-text");
    $("token-wrong").hidden = tried === null;
    sessionStorage.removeItem("token");
    text.value = "";
    dialog.returnValue = "";
    dialog.onclose = () => {
      asking = null;
      const given = dialog.returnValue === "ok" && text.value.trim();
      if (given) sessionStorage.setItem("token", given);
      resolve(Boolean(given));
    };
    dialog.showModal();
    text.focus();
  });
  return asking;
}

// Server-sent events of a response, as {event, data}.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const lines = text.slice(0, end).split("\n");
      const field = (name) => lines.filter((l) => l.startsWith(`${name}: `)).map((l) => l.slice(name.length + 2));
      const data = field("data").join("\n");
      if (data) yield { event: field("event")[0] || "message", data: JSON.parse(data) };
    }
  }
}

function problem(error) {
  const box = $("problem");
  box.replaceChildren();
  box.hidden = !error;
  if (!error) return;
  box.append(element("span", error.message));
  for (const name of error.near || []) {
    const button = element("button", name, { type: "button" });
    button.onclick = () => {
      const wrong = PLACES.map($).find((input) => error.message.includes(JSON.stringify(input.value)));
      if (wrong) wrong.value = name;
      ask();
    };
    box.append(element("br", null), button);
  }
}

// Completion ----------------------------------------------------------------------------------------------------------

function completes(id, path) {
  const input = $(id), list = $(`${id}-list`);
  let turn = 0, at = -1;
  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const pick = (name) => {
    input.value = show(name);
    turn++;
    close();
  };
  const mark = (to) => {
    const options = [...list.children];
    if (!options.length) return;
    at = (to + options.length) % options.length;
    options.forEach((o, i) => o.setAttribute("aria-selected", String(i === at)));
    options[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[at].id);
  };
  const open = async () => {
    const mine = ++turn;
    await new Promise((r) => setTimeout(r, 80));
    if (mine !== turn) return;
    const { names } = await get(path, { q: input.value, k: 12 }).catch(() => ({ names: [] }));
    if (mine !== turn || document.activeElement !== input) return;
    list.replaceChildren(
      ...names.map((name, i) => {
        const option = element("li", show(name), { role: "option", id: `${id}-${i}`, "aria-selected": "false", title: name });
        option.onmousedown = (e) => {
          e.preventDefault();
          pick(name);
        };
        return option;
      }),
    );
    list.hidden = !names.length;
    input.setAttribute("aria-expanded", String(!!names.length));
    at = -1;
  };
  input.addEventListener("input", open);
  input.addEventListener("blur", () => {
    turn++;
    close();
  });
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      if (list.hidden) open();
      else mark(e.key === "ArrowDown" ? at + 1 : at < 0 ? -1 : at - 1);
    } else if (e.key === "Enter" && !list.hidden && at >= 0) {
      e.preventDefault();
      pick(list.children[at].textContent);
    } else if (e.key === "Enter" || e.key === "Escape") {
      turn++; // a list that is still on its way is not wanted any more
      close();
    }
  });
}

// Asking --------------------------------------------------------------------------------------------------------------

async function ask() {
  const query = PLACES.map((p) => $(p).value.trim() || "?");
  problem(null);
  if (query.filter((t) => t === "?").length !== 1) {
    problem(new Error("Fill in two of the three boxes and leave the one that is asked for empty."));
    return;
  }
  state.asking?.abort();
  const mine = (state.asking = new AbortController());
  Object.assign(state, { query, reply: null, chosen: null, explanation: null });
  history.replaceState(null, "", `#${new URLSearchParams(PLACES.map((p, i) => [p, query[i]]))}`);
  $("status").textContent = "asking…";
  $("empty").hidden = true;
  answers();
  reasons();
  look();
  try {
    const body = { query, passes: Math.min(PASSES, state.info?.limits.passes ?? PASSES), explain: true, novel: $("novel").checked };
    for await (const { event, data } of events(await post("predict/stream", body, mine.signal))) {
      if (event === "problem") throw new Error(data.error);
      state.reply = learn(data);
      answers(event === "done");
      if (event === "done") finished();
    }
  } catch (e) {
    if (e.name === "AbortError") return;
    $("status").textContent = "";
    $("progress").hidden = true;
    problem(e);
  }
}

function finished() {
  const first = state.reply.answers[0];
  if (!first) {
    $("empty").hidden = false;
    $("empty").textContent = "No candidate was reached by a walk: the question's entity may stand alone in the graph.";
  } else if (!state.chosen) choose((state.reply.answers.find((a) => a.reason) || first).name);
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const percent = (p) => (p < 0.001 ? p.toExponential(1) : `${(100 * p).toFixed(1)} %`);
const arrows = (steps) => steps.map((s) => (s.forward ? ` —${show(s.relation)}→ ${show(s.to)}` : ` ←${show(s.relation)}— ${show(s.to)}`)).join("");
// Of a long path its first and its last two steps.
const line = ({ start, steps }) =>
  show(start) + (steps.length > 5 ? `${arrows(steps.slice(0, 2))} … ${steps.length - 4} steps …${arrows(steps.slice(-2))}` : arrows(steps));

function answers(done = false) {
  const body = $("answers").tBodies[0], reply = state.reply;
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  const rows = (reply?.answers || []).map((a) => {
    const row = element("tr", null, { "aria-selected": String(a.name === state.chosen) });
    const name = element("td", null, { class: "name" });
    const button = element("button", show(a.name), { type: "button", title: a.name });
    button.dataset.name = a.name;
    button.onclick = () => choose(a.name);
    name.append(button);
    if (a.reason) name.append(element("small", line(a.reason)));
    const cell = element("td", null);
    const bar = element("div", null, { class: "bar", title: `logit ${a.logit.toFixed(3)}${a.spread === null ? "" : ` ± ${a.spread.toFixed(3)}`}` });
    const fill = element("i", null);
    fill.style.width = `${100 * a.probability}%`;
    bar.append(fill);
    if (a.spread !== null && !reply.calibration) {
      const spread = element("u", null);
      const [low, high] = [sigmoid(a.logit - a.spread), sigmoid(a.logit + a.spread)];
      spread.style.left = `${100 * low}%`;
      spread.style.width = `${Math.max(100 * (high - low), 0.5)}%`;
      bar.append(spread);
    }
    bar.append(element("b", percent(a.probability)));
    cell.append(bar);
    row.append(element("td", String(a.rank)), name, cell, element("td", a.visits === null ? "–" : String(a.visits)));
    row.append(element("td", a.known ? "known" : "new", a.known ? {} : { class: "new" }));
    return row;
  });
  body.replaceChildren(...rows);
  if (focused !== null) [...body.querySelectorAll("button")].find((b) => b.dataset.name === focused)?.focus();
  const progress = $("progress");
  progress.hidden = !reply || done;
  $("rest").textContent = "";
  if (!reply) return;
  progress.setAttribute("aria-valuenow", reply.passes);
  progress.firstElementChild.style.width = `${(100 * reply.passes) / PASSES}%`;
  $("status").textContent = done
    ? `${reply.answers.length} answers after ${reply.passes} passes`
    : `pass ${reply.passes}: the answers are still settling`;
  const u = reply.unreached;
  const rest = u.count ? `${u.count} of ${reply.candidates} candidates were not reached by any walk; they share ${percent(u.probability)} (rank ${u.rank}). ` : "";
  const by = reply.calibration ? `Probabilities are calibrated on this graph (expected error ${reply.calibration.error_after.toFixed(3)}).` : "";
  $("rest").textContent = rest + by;
}

async function choose(name) {
  state.chosen = name;
  state.explanation = null;
  for (const row of $("answers").tBodies[0].rows) {
    row.setAttribute("aria-selected", String(row.querySelector("button").dataset.name === name));
  }
  const query = state.query;
  reasons("looking for reasons…");
  try {
    const explanation = learn(await (await post("explain", explainBody(false))).json());
    if (state.query !== query || state.chosen !== name) return;
    state.explanation = explanation;
    reasons();
    await look();
  } catch (e) {
    if (state.chosen === name) reasons(e.message);
  }
}

function explainBody(check) {
  const place = state.query.indexOf("?");
  const triple = state.query.map((t, i) => (i === place ? state.chosen : t));
  return { triple, blank: PLACES[place], check };
}

function reasons(text = "") {
  const e = state.explanation;
  const entity = (name) => {
    const button = element("button", shorten(show(name), 80), { type: "button", title: `Ask about ${name}` });
    button.onclick = () => askAbout(name);
    return button;
  };
  $("reasons").replaceChildren(
    ...(e?.reasons || []).map((reason) => {
      const item = element("li", null);
      item.append(entity(reason.start));
      for (const step of reason.steps) {
        item.append(element("em", step.forward ? ` —${show(step.relation)}→ ` : ` ←${show(step.relation)}— `), entity(step.to));
      }
      item.append(element("em", ` (${percent(reason.share)}, ${reason.count}×)`));
      return item;
    }),
  );
  $("check").hidden = !e?.reasons.length;
  $("deletion").textContent = "";
  $("why-title").textContent = state.chosen ? `Reasons for ${show(state.chosen)}` : "Reasons";
  $("share").textContent = text;
  if (!e) return;
  $("share").textContent =
    (e.known ? "The graph has this triple; it is hidden here, so that the reasons are others. " : "") +
    (e.reasons.length ? `${percent(e.joined)} of the weight lies on walks that met the question, along ${e.distinct} paths.` : "No walk joins the question to this answer.");
}

async function check() {
  $("check").disabled = true;
  $("deletion").textContent = "hiding edges and asking again…";
  const chosen = state.chosen;
  try {
    const { deletion: d } = await (await post("explain", explainBody(true))).json();
    if (state.chosen !== chosen) return;
    const random = d.random_mean === null ? "" : `; without as many random ones nearby by ${d.random_mean.toFixed(3)}`;
    $("deletion").textContent = `Without the ${d.edges.length} edges of the best reasons the logit falls by ${d.fall.toFixed(3)}${random}.`;
  } catch (e) {
    $("deletion").textContent = e.message;
  } finally {
    $("check").disabled = false;
  }
}

// The entity takes the place of the one that was asked from; a relation question turns into one for tails.
function askAbout(name) {
  const place = (state.query || ["", "", "?"]).indexOf("?");
  $(place === 0 ? "tail" : "head").value = show(name);
  $(place === 0 ? "head" : "tail").value = "";
  if (place === 1 && state.chosen) $("relation").value = show(state.chosen);
  if ($("relation").value) ask();
  else $("relation").focus();
}

// The picture ---------------------------------------------------------------------------------------------------------

const cy = cytoscape({ container: $("picture"), minZoom: 0.15, maxZoom: 4, wheelSensitivity: 0.3 });
window.flockPicture = cy;
const shorten = (text, most) => ([...text].length > most ? `${[...text].slice(0, most).join("")}…` : text);

function paint() {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  cy.style([
    { selector: "node", style: { "background-color": colour("node"), label: "data(label)", color: colour("fore"), "font-size": 10, width: 14, height: 14, "min-zoomed-font-size": 6, "text-outline-color": colour("panel"), "text-outline-width": 2, "text-valign": "bottom", "text-margin-y": 3 } },
    { selector: "edge", style: { width: 1, "line-color": colour("line"), "target-arrow-color": colour("line"), "target-arrow-shape": "triangle", "arrow-scale": 0.7, "curve-style": "bezier" } },
    { selector: "edge.evidence, edge:selected, edge.near", style: { label: "data(label)", "font-size": 9, color: colour("fore"), "text-rotation": "autorotate", "text-outline-color": colour("panel"), "text-outline-width": 2, "min-zoomed-font-size": 6 } },
    { selector: "edge.evidence", style: { width: "data(width)", "line-color": colour("orange"), "target-arrow-color": colour("orange"), "z-index": 5 } },
    { selector: "node.evidence", style: { "background-color": colour("orange"), "font-weight": "bold", "z-index": 6 } },
    { selector: "node.query", style: { "background-color": colour("blue"), width: 24, height: 24, "font-size": 13, "font-weight": "bold", "z-index": 7 } },
    { selector: "node.answer", style: { "background-color": colour("orange"), shape: "round-rectangle", width: 24, height: 24, "font-size": 13, "font-weight": "bold", "z-index": 7 } },
    { selector: ".faded", style: { opacity: 0.35 } },
  ]);
}

async function look() {
  const query = state.query;
  if (!query) return;
  const place = query.indexOf("?");
  const centres = [query[0], query[2]].filter((t) => t !== "?");
  const answer = place === 1 ? null : state.chosen;
  if (answer) centres.push(answer);
  let around;
  try {
    around = await get("neighbourhood", { entity: centres[0], other: centres[1], limit: $("size").value });
  } catch {
    return; // an unknown name: the question itself says so
  }
  if (state.query !== query) return;
  // By their full names, however they were typed: the entities asked for come first.
  const named = around.entities.slice(0, new Set(centres).size);
  const names = new Set(around.entities);
  const edges = new Map();
  const key = (h, r, t) => JSON.stringify([h, r, t]);
  for (const [h, r, t] of around.triples) edges.set(key(h, r, t), { h, r, t, share: 0 });
  const evidence = new Set();
  for (const reason of state.explanation?.reasons || []) {
    let from = reason.start;
    evidence.add(from);
    for (const step of reason.steps) {
      const [h, t] = step.forward ? [from, step.to] : [step.to, from];
      const edge = edges.get(key(h, step.relation, t)) || { h, r: step.relation, t, share: 0 };
      edge.share += reason.share;
      edges.set(key(h, step.relation, t), edge);
      names.add(h).add(t);
      evidence.add(step.to);
      from = step.to;
    }
  }
  const kind = (name) => [named.slice(0, query.filter((t, i) => i !== 1 && t !== "?").length).includes(name) ? "query" : "", name === answer ? "answer" : "", evidence.has(name) ? "evidence" : evidence.size ? "faded" : ""].join(" ");
  cy.batch(() => {
    cy.elements().remove();
    cy.add([...names].map((name) => ({ data: { id: `n${name}`, name, label: shorten(show(name), 24) }, classes: kind(name) })));
    cy.add([...edges.values()].map((e, i) => ({
      data: { id: `e${i}`, source: `n${e.h}`, target: `n${e.t}`, label: shorten(show(e.r), 24), width: 2 + 6 * Math.min(e.share, 1) },
      classes: e.share > 0 ? "evidence" : evidence.size ? "faded" : "",
    })));
    cy.$(".query, .answer").removeClass("faded");
  });
  cy.layout({ name: "cose", animate: false, randomize: true, nodeRepulsion: 120000, idealEdgeLength: 90, edgeElasticity: 60, nodeOverlap: 20, gravity: 0.3, padding: 20 }).run();
  $("picture").setAttribute("aria-label", `${names.size} entities and ${edges.size} triples around the question, ${evidence.size} entities on the paths to the chosen answer; the paths are listed below`);
  $("picture").dataset.evidence = evidence.size;
}

cy.on("tap", "node", (e) => askAbout(e.target.data("name")));
cy.on("mouseover", "node", (e) => e.target.connectedEdges().addClass("near"));
cy.on("mouseout", "node", (e) => e.target.connectedEdges().removeClass("near"));

// Graphs and edits ----------------------------------------------------------------------------------------------------

async function about() {
  const info = (state.info = await get("info"));
  const count = (n) => n.toLocaleString("en");
  $("about").title = info.name;
  $("about").textContent = `${shorten(info.name, 60)}: ${count(info.entities)} entities, ${count(info.relations)} relations, ${count(info.triples)} triples`;
  $("edit").hidden = !info.writable;
  $("examples").replaceChildren(
    ...info.examples.map((example) => {
      const button = element("button", null, { type: "button" });
      button.append(...example.flatMap((name) => [element("bdi", show(name)), "  "]).slice(0, -1));
      button.onclick = () => {
        PLACES.forEach((p, i) => ($(p).value = example[i] === "?" ? "" : show(example[i])));
        ask();
      };
      return button;
    }),
  );
}

async function upload(file) {
  if (!file) return;
  problem(null);
  $("status").textContent = `reading ${file.name}…`;
  const kinds = { csv: "text/csv", ttl: "text/turtle", nt: "application/n-triples" };
  const kind = kinds[file.name.split(".").pop().toLowerCase()] || "text/tab-separated-values";
  try {
    const path = `/api/v1/graphs?${new URLSearchParams({ name: file.name })}`;
    const loaded = await (await call(path, { method: "POST", headers: { "Content-Type": kind }, body: file })).json();
    const { graph, warnings = [] } = loaded;
    state.asking?.abort();
    Object.assign(state, { graph, query: null, reply: null, chosen: null, explanation: null });
    PLACES.forEach((p) => ($(p).value = ""));
    cy.elements().remove();
    answers();
    reasons();
    $("empty").hidden = false;
    const notes = warnings.map((w) => ` Warning: ${w}.`).join("");
    $("empty").textContent = `${file.name} is loaded. Ask about it, or try one of its examples above.${notes}`;
    await about();
    $("status").textContent = "";
    $("head").focus();
  } catch (e) {
    $("status").textContent = "";
    problem(e);
  }
}

async function edit(event) {
  event.preventDefault();
  const what = event.submitter?.value || "add";
  const triple = PLACES.map((p) => $(`edit-${p}`).value.trim());
  try {
    const done = await (await post("triples", { [what]: [triple] })).json();
    const changed = done.added + done.removed;
    $("edited").textContent = changed
      ? `${what === "add" ? "Added" : "Removed"}: the graph now has ${done.triples} triples${done.kept ? ", on disk" : " (in memory only)"}.`
      : `Nothing changed: the graph ${what === "add" ? "already has" : "does not have"} this triple.`;
    await about();
    if (changed && state.query) ask();
  } catch (e) {
    $("edited").textContent = e.message;
  }
}

// -----------------------------------------------------------------------------------------------------------------------

completes("head", "entities");
completes("relation", "relations");
completes("tail", "entities");
$("ask").addEventListener("submit", (e) => {
  e.preventDefault();
  ask();
});
$("check").onclick = check;
$("fit").onclick = () => cy.fit(undefined, 20);
$("size").onchange = look;
$("triple").addEventListener("submit", edit);
$("file").onchange = (e) => upload(e.target.files[0]);
$("theme").onclick = () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  paint();
};
$("answers").addEventListener("keydown", (e) => {
  if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
  const buttons = [...$("answers").querySelectorAll("tbody button")];
  const next = buttons[buttons.indexOf(document.activeElement) + (e.key === "ArrowDown" ? 1 : -1)];
  if (next) {
    e.preventDefault();
    next.focus();
  }
});
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
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
const saved = localStorage.getItem("theme");
if (saved) document.documentElement.dataset.theme = saved;
paint();
about()
  .then(() => {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!PLACES.every((p) => given.has(p))) return;
    PLACES.forEach((p) => ($(p).value = given.get(p) === "?" ? "" : given.get(p)));
    ask();
  })
  .catch(problem);
