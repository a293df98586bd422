// A box for a name, completed as one types. It shows labels and gives full names.
import { $, element } from "./dom.js";
import { get } from "./api.js";
import { show, whole, write } from "./names.js";

// The box with this id, and its list `ID-list`; `kind` is `entities` or `relations`.
export function combobox(id, kind) {
  const input = $(id), list = $(`${id}-list`);
  let turn = 0, at = -1;
  let given = null; // the name that was set or picked, and the text that stands for it

  const set = (name) => {
    input.value = name ? show(name) : "";
    input.title = name ? whole(name) : "";
    given = name ? { name, text: input.value } : null;
  };
  const name = () => (given && input.value === given.text ? given.name : input.value.trim());
  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const pick = (name) => {
    set(name);
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
    const reply = await get(kind, { q: input.value.trim(), k: 12 }).catch(() => ({ names: [] }));
    if (mine !== turn || document.activeElement !== input) return;
    const names = reply.names.map((found) => found.name ?? found);
    list.replaceChildren(
      ...names.map((name, i) => {
        const option = write(element("li", null, { role: "option", id: `${id}-${i}`, "aria-selected": "false" }), name);
        option.dataset.name = name;
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
  input.addEventListener("input", () => {
    input.title = "";
    open();
  });
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
      pick(list.children[at].dataset.name);
    } else if (e.key === "Enter" || e.key === "Escape") {
      turn++; // a list that is still on its way is not wanted any more
      close();
    }
  });
  return {
    input,
    name,
    set,
    // The label of a name may come with a reply after the name was set.
    refresh: () => given && input.value === given.text && document.activeElement !== input && set(given.name),
  };
}
