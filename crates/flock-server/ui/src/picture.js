// The picture: the paths to the chosen answer, each in a lane of its own; on request also what is around them.
import cytoscape from "cytoscape";
import { $, shorten } from "./dom.js";
import { get } from "./api.js";
import { show, whole } from "./names.js";

const LABEL = 13, RELATION = 11; // sizes of text on the screen, at any zoom
const NARROW = 520;
const LONG = 6; // steps: longer paths are drawn only if there are no others

const cy = cytoscape({ container: $("picture"), minZoom: 0.15, maxZoom: 4, wheelSensitivity: 0.3 });
window.flockPicture = cy;

// What is drawn: the question, the chosen answer and its explanation.
let shown = { query: null, chosen: null, explanation: null };
let turn = 0;

export function paint() {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const steady = (size) => () => size / cy.zoom();
  const outline = { "text-outline-color": colour("panel"), color: colour("fore") };
  cy.style([
    { selector: "node", style: { ...outline, "background-color": colour("node"), label: "data(label)", "font-size": 10, "min-zoomed-font-size": 9, "text-outline-width": 2, width: 14, height: 14, "text-valign": "bottom", "text-margin-y": 3 } },
    { selector: "edge", style: { width: 1, "line-color": colour("line"), "target-arrow-color": colour("line"), "target-arrow-shape": "triangle", "arrow-scale": 0.7, "curve-style": "bezier" } },
    { selector: "edge.evidence, edge:selected, edge.near", style: { ...outline, label: "data(label)", "font-size": steady(RELATION), "text-rotation": "autorotate", "text-outline-width": steady(2) } },
    { selector: "edge.evidence", style: { width: "data(width)", "line-color": colour("orange"), "target-arrow-color": colour("orange"), "z-index": 5 } },
    { selector: "node.evidence, node.query, node.answer", style: { "font-size": steady(LABEL), "min-zoomed-font-size": 0, "text-outline-width": steady(2), "text-wrap": "ellipsis", "text-max-width": (n) => Math.min(n.data("room"), 170) / cy.zoom(), "z-index": 6 } },
    { selector: "node.evidence", style: { "background-color": colour("orange") } },
    { selector: "node.query", style: { "background-color": colour("blue"), width: 22, height: 22, "font-weight": "bold", "z-index": 7 } },
    { selector: "node.answer", style: { "background-color": colour("orange"), shape: "round-rectangle", width: 22, height: 22, "font-weight": "bold", "z-index": 7 } },
    { selector: ".faded", style: { opacity: 0.35 } },
  ]);
}
cy.on("zoom", () => cy.style().update());

// Draws the paths of an explanation; before there is one, nothing, or what is around the question.
export async function draw(now = shown) {
  shown = now;
  const { query, chosen, explanation } = now;
  const mine = ++turn;
  const around = $("around").checked;
  $("size-choice").hidden = !around;
  $("picture").hidden = !query;
  if (!query) return clear("The paths to an answer will be drawn here.");
  const all = explanation?.reasons || [];
  const short = all.filter((r) => r.steps.length <= LONG);
  const drawn = short.length ? short : [...all].sort((a, b) => a.steps.length - b.steps.length).slice(0, 1);
  const paths = drawn.map((r) => [r.start, ...r.steps.map((s) => s.to)]);
  const answer = query[1] === "?" ? null : chosen;
  // By their full names, however they were typed.
  let asked = explanation ? [explanation.query[0], explanation.query[2]].filter((t) => t !== "?") : [];
  const names = new Set([...asked, ...(explanation && answer ? [answer] : []), ...paths.flat()]);
  const edges = new Map();
  const key = (h, r, t) => JSON.stringify([h, r, t]);
  for (const reason of drawn) {
    let from = reason.start;
    for (const step of reason.steps) {
      const [h, t] = step.forward ? [from, step.to] : [step.to, from];
      const edge = edges.get(key(h, step.relation, t)) || { h, r: step.relation, t, share: 0 };
      edge.share += reason.share;
      edges.set(key(h, step.relation, t), edge);
      from = step.to;
    }
  }
  const evidence = new Set(paths.flat());
  if (around) {
    const centres = asked.length ? [...asked, ...(answer ? [answer] : [])] : query.filter((t, i) => i !== 1 && t !== "?");
    let near;
    try {
      near = await get("neighbourhood", { entity: centres[0], other: centres[1], limit: $("size").value });
    } catch {
      return; // an unknown name: the question itself says so
    }
    if (mine !== turn) return;
    if (!asked.length) asked = near.entities.slice(0, new Set(centres).size);
    near.entities.forEach((name) => names.add(name));
    for (const [h, r, t] of near.triples) if (!edges.has(key(h, r, t))) edges.set(key(h, r, t), { h, r, t, share: 0 });
  }
  if (!names.size) return clear("");
  const kind = (name) => [asked.includes(name) ? "query" : "", name === answer ? "answer" : "", evidence.has(name) ? "evidence" : evidence.size ? "faded" : ""].join(" ");
  const { place, room, height } = lanes(paths, asked, answer, around ? Math.max(420, 3 * $("size").value) : 160);
  $("picture").style.height = `${height}px`;
  cy.resize();
  cy.batch(() => {
    cy.elements().remove();
    cy.add([...names].map((name) => ({ data: { id: `n${name}`, name, label: shorten(show(name), 24), room: room(name) }, classes: kind(name), position: place(name) })));
    cy.add([...edges.values()].map((e, i) => ({
      data: { id: `e${i}`, source: `n${e.h}`, target: `n${e.t}`, name: e.r, label: shorten(show(e.r), 24), width: 2 + 6 * Math.min(e.share, 1) },
      classes: e.share > 0 ? "evidence" : evidence.size ? "faded" : "",
    })));
    cy.$(".query, .answer").removeClass("faded");
  });
  cy.viewport({ zoom: 1, pan: { x: 0, y: 0 } });
  if (around) {
    // The paths stay where they are, and the rest finds its place around them.
    const fixed = cy.$(".evidence, .query, .answer").nodes();
    const boundingBox = { x1: 20, y1: 20, w: $("picture").clientWidth - 40, h: $("picture").clientHeight - 50 };
    fixed.lock();
    cy.layout({ name: "cose", animate: false, randomize: true, fit: false, boundingBox, nodeRepulsion: 120000, idealEdgeLength: 90, edgeElasticity: 60, nodeOverlap: 20, gravity: 0.3 }).run();
    fixed.unlock();
  }
  const left = all.length - drawn.length;
  note(left ? `${left === 1 ? "A longer path is" : `${left} longer paths are`} only in the list below.` : "");
  const what = around ? `${names.size} entities and ${edges.size} triples around the question` : `${edges.size} triples`;
  $("picture").setAttribute("aria-label", `${what}, ${evidence.size} entities on the paths to the chosen answer; the paths are listed below`);
  $("picture").dataset.evidence = evidence.size;
}

function clear(text) {
  cy.elements().remove();
  $("picture").dataset.evidence = 0;
  $("picture").setAttribute("aria-label", "No paths yet");
  note(text);
}

const note = (text) => ($("picture-note").textContent = text);

// Where nodes stand: along a path from the question to its other end, across by the path's lane. From left to right; on narrow screens
// from top to bottom. The places are pixels, so that nothing has to be made smaller to fit.
function lanes(paths, asked, answer, least) {
  const wide = $("picture").clientWidth || 600;
  const upright = wide < NARROW;
  const left = asked[0] ?? paths[0]?.[0], right = answer ?? asked[1];
  const pinned = (name) => name === left || name === right;
  // Short paths first: what long ones share with them stands where the short ones go. A path with nothing of its own needs no lane.
  const met = new Set([left, right]);
  const own = [...paths].sort((a, b) => a.length - b.length).filter((path) => {
    const any = path.some((name) => !met.has(name));
    path.forEach((name) => met.add(name));
    return any;
  });
  // An edge straight from end to end has the middle for itself.
  const straight = own.length && paths.some((p) => p.length === 2 && p.every(pinned));
  const middle = straight ? Math.ceil(own.length / 2) : -1;
  const number = Math.max(own.length + (straight ? 1 : 0), 1);
  const steps = Math.max(1, ...paths.map((p) => p.length - 1));
  const along = upright ? Math.max(200, steps * 105) : wide - 150;
  const across = upright ? wide - 90 : Math.max(number - 1, 1) * 74;
  const needed = Math.round(upright ? along + 90 : across + 110), height = Math.max(needed, least);
  const above = (height - needed) / 2;
  const at = new Map();
  const put = (name, a, c) => at.has(name) || at.set(name, upright ? { x: 45 + c, y: above + 40 + a } : { x: 75 + a, y: above + 45 + c });
  put(left, 0, across / 2);
  if (right !== undefined) put(right, along, across / 2);
  own.forEach((path, i) => {
    const lane = number === 1 ? across / 2 : ((middle >= 0 && i >= middle ? i + 1 : i) * across) / (number - 1);
    // A path that does not lead to the other end stops before it. One from the right end goes left.
    const length = path.length - (pinned(path.at(-1)) && path.at(-1) !== path[0] ? 1 : 0);
    const step = along / length;
    path.forEach((name, j) => {
      const a = path[0] === right ? along - step * j : step * j;
      // Names side by side, or close together along a path, take turns in height.
      const turn = upright ? ((i % 2) - 0.5) * Math.min(36, step / 2.5) : step < 110 ? ((j % 2) - 0.5) * 34 : 0;
      put(name, a + (upright ? turn : 0), lane + (upright ? 0 : turn));
    });
  });
  const place = (name) => at.get(name) || { x: 75 + along / 2, y: 45 + across / 2 };
  // A name may be as wide as it can be without leaving the picture.
  const room = (name) => Math.max(2 * Math.min(place(name).x, wide - place(name).x) - 6, 60);
  return { place, room, height };
}

export function listen(ask) {
  cy.on("tap", "node", (e) => ask(e.target.data("name")));
  cy.on("mouseover", "node, edge", (e) => ($("picture").title = whole(e.target.data("name"))));
  cy.on("mouseout", "node, edge", () => ($("picture").title = ""));
  cy.on("mouseover", "node", (e) => e.target.connectedEdges().addClass("near"));
  cy.on("mouseout", "node", (e) => e.target.connectedEdges().removeClass("near"));
  $("fit").onclick = () => cy.viewport({ zoom: 1, pan: { x: 0, y: 0 } });
  $("around").onchange = () => draw();
  $("size").onchange = () => draw();
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now && now !== width) draw();
    width = now;
  }).observe($("picture").parentElement);
}
