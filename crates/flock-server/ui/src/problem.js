// The one place where the page says what went wrong, with ways on.
import { $, element } from "./dom.js";

// What to do about a problem of some code, whichever request it came from.
const handlers = new Map();
export const onProblem = (code, handle) => handlers.set(code, handle);

// Shows an error, or clears it if there is none. `ways` are buttons.
export function problem(error, ways = []) {
  const box = $("problem");
  box.replaceChildren();
  box.hidden = !error;
  if (!error) return;
  if (!ways.length && handlers.has(error.code)) return handlers.get(error.code)(error);
  box.append(element("span", error.message));
  if (ways.length) box.append(element("div", null, { class: "tools" }, ...ways));
}
