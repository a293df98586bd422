// Elements of the page. Names come from graphs and may be anything: they only ever become text, never markup.

export const $ = (id) => document.getElementById(id);

export function element(tag, text = null, attributes = {}, ...children) {
  const e = document.createElement(tag);
  if (text !== null) e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

export function button(text, run, attributes = {}) {
  const e = element("button", text, { type: "button", ...attributes });
  e.onclick = run;
  return e;
}

// For places that take no style, such as the canvas. Elsewhere CSS cuts names, and the whole name stays in the text.
export const shorten = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);

export const count = (n) => n.toLocaleString("en");
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (p) => (p > 0 && p < 0.001 ? p.toExponential(1) : `${(100 * p).toFixed(1)} %`);
