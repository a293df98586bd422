// The reasons for the chosen answer, in words, and the check by deletion.
import { $, button, element, percent } from "./dom.js";
import { post } from "./api.js";
import { show, whole } from "./names.js";

const LONG = 8; // steps: of longer paths the middle is folded
const ENDS = 2;

let now = { body: null, explanation: null };
let askAbout = () => {};

// Asks for the reasons of an answer. `body` is the triple, and which of its places is the answer.
export const fetchReasons = (body) => post("explain", body);

// Shows an explanation, or a text in its place.
export function draw(chosen, body = null, explanation = null, text = "") {
  now = { body, explanation };
  const entity = (name) => {
    const e = button(null, () => askAbout(name), { title: `Ask about ${whole(name)}` });
    e.append(element("span", show(name), { class: "cut" }));
    return e;
  };
  const relation = (step) => {
    const name = element("span", show(step.relation), { class: "cut", title: whole(step.relation) });
    return element("em", null, {}, ...(step.forward ? [" —", name, "→ "] : [" ←", name, "— "]));
  };
  const step = (s) => [relation(s), entity(s.to)];
  // The steps of a path, or of a long one its ends and a button for the rest.
  const path = (steps) => {
    if (steps.length <= LONG) return steps.flatMap(step);
    const middle = steps.slice(ENDS, -ENDS);
    const more = button(`… ${middle.length} steps …`, () => {
      const shown = middle.flatMap(step);
      more.replaceWith(...shown);
      shown[1].focus();
    }, { "aria-label": `Show ${middle.length} more steps` });
    return [...steps.slice(0, ENDS).flatMap(step), " ", more, ...steps.slice(-ENDS).flatMap(step)];
  };
  $("reasons").replaceChildren(
    ...(explanation?.reasons || []).map((reason) => {
      const alike = reason.paths > 1 ? `, with ${reason.paths - 1} more like it` : "";
      return element("li", null, {}, entity(reason.start), ...path(reason.steps), element("em", ` (${percent(reason.share)}, ${reason.count}×${alike})`));
    }),
  );
  $("check").hidden = !explanation?.reasons.length;
  $("deletion").textContent = "";
  $("why-title").textContent = chosen ? `Reasons for ${show(chosen)}` : "Reasons";
  $("why-title").title = chosen ? whole(chosen) : "";
  $("share").textContent = text;
  if (!explanation) return;
  const e = explanation;
  $("share").textContent =
    (e.known ? "The graph has this triple; it is hidden here, so that the reasons are others. " : "") +
    (e.reasons.length ? `${percent(e.joined)} of the weight lies on walks that met the question, along ${e.distinct} paths.` : "No walk joins the question to this answer.");
}

async function check() {
  const { body } = now;
  $("check").disabled = true;
  $("deletion").textContent = "hiding edges and asking again…";
  try {
    const { deletion: d } = await post("explain", { ...body, check: true });
    if (now.body !== body) return;
    const random = d.random_mean === null ? "" : `; without as many random ones nearby by ${d.random_mean.toFixed(3)}`;
    $("deletion").textContent = `Without the ${d.edges.length} edges of the best reasons the logit falls by ${d.fall.toFixed(3)}${random}.`;
  } catch (e) {
    if (now.body === body) $("deletion").textContent = e.message;
  } finally {
    $("check").disabled = false;
  }
}

export function listen(ask) {
  askAbout = ask;
  $("check").onclick = check;
}
