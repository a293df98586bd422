// How names are shown: as the server says (by their label, or by prefix), else as they are. Full names stay what is sent.
import { element } from "./dom.js";

const labels = new Map(), shown = new Map();

// Takes labels and short forms from a reply of the server, wherever in it they stand: maps `labels` and `shown`, `label` beside
// `name`, `to_label` beside `to`, `query_labels` beside `query`. A reply without any changes nothing.
export function learn(reply) {
  for (const [name, short] of Object.entries(reply.shown || {})) shown.set(name, short);
  look(reply);
  return reply;
}

function look(value) {
  if (Array.isArray(value)) return value.forEach(look);
  if (value === null || typeof value !== "object") return;
  if (typeof value.name === "string" && typeof value.label === "string") labels.set(value.name, value.label);
  for (const [key, inner] of Object.entries(value)) {
    if (key === "shown") continue;
    if (key === "labels" && !Array.isArray(inner)) {
      for (const [name, label] of Object.entries(inner || {})) if (typeof label === "string") labels.set(name, label);
    } else if (key.endsWith("_label") && typeof inner === "string" && typeof value[key.slice(0, -6)] === "string") {
      labels.set(value[key.slice(0, -6)], inner);
    } else if (key.endsWith("_labels") && Array.isArray(inner) && Array.isArray(value[key.slice(0, -7)])) {
      inner.forEach((label, i) => typeof label === "string" && labels.set(value[key.slice(0, -7)][i], label));
    } else look(inner);
  }
}

// Another graph has other labels.
export function forget() {
  labels.clear();
  shown.clear();
}

export const label = (name) => labels.get(name) || null;
export const show = (name) => shown.get(name) || labels.get(name) || name;

// All there is to know about a name, for titles: label and full name.
export const whole = (name) => (labels.has(name) && labels.get(name) !== name ? `${labels.get(name)} (${name})` : name);

// The id beside a label. Of an IRI its last part: the title has all of it.
const id = (name) => (/^[a-z][a-z0-9+.-]*:/i.test(name) && name.split(/[/#]/).pop()) || name;

// Fills an element with a name: the label, and the id small beside it.
export function write(e, name) {
  const text = labels.get(name);
  e.replaceChildren(element("span", text || show(name), { class: "cut" }));
  if (text && text !== name) e.append(" ", element("span", id(name), { class: "id" }));
  e.title = whole(name);
  return e;
}
