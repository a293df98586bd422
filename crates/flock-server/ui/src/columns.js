// The column picker: the first rows of a file, and which of its columns are head, relation and tail.
import { $, element } from "./dom.js";
import { PLACES } from "./state.js";
import { guess, separatorName } from "./table.js";

const PREVIEW = 8;

// Asks for the columns. Gives { header, columns (from 0), lenient }, or null if the reader gives up.
export function pickColumns(file, { rows, separator }, why, before = null) {
  const dialog = $("columns");
  const width = Math.max(...rows.map((r) => r.length));
  const start = before || { ...guess(rows), lenient: false };
  const selects = PLACES.map((p) => $(`columns-${p}`));
  $("columns-title").textContent = `Which columns of ${file.name} are the triples?`;
  $("columns-why").textContent = why || "";
  $("columns-why").hidden = !why;
  $("columns-kind").textContent = `${width} columns, separated by ${separatorName(separator)}.`;
  $("columns-header").checked = start.header;
  $("columns-lenient").checked = start.lenient;

  const title = (i) => ($("columns-header").checked && rows[0][i]?.trim() ? `${i + 1}: ${rows[0][i]}` : `Column ${i + 1}`);
  const chosen = () => selects.map((s) => Number(s.value));
  const options = () => {
    const now = selects.map((s) => s.value);
    selects.forEach((select, role) => {
      select.replaceChildren(...Array.from({ length: width }, (_, i) => element("option", title(i), { value: String(i) })));
      select.value = now[role] || String(start.columns[role]);
    });
  };
  const draw = () => {
    const columns = chosen(), header = $("columns-header").checked;
    const body = rows.slice(header ? 1 : 0);
    const role = (i) => columns.flatMap((c, r) => (c === i ? [PLACES[r]] : []));
    const heads = Array.from({ length: width }, (_, i) => {
      const th = element("th", null, { scope: "col", title: title(i) }, element("span", title(i), { class: "cut" }));
      th.append(element("span", role(i).map((r) => r[0].toUpperCase() + r.slice(1)).join(", ") || "not used", { class: "role" }));
      th.className = role(i).length ? "used" : "";
      return th;
    });
    const lines = body.slice(0, PREVIEW).map((row) => {
      const cells = Array.from({ length: width }, (_, i) => {
        const td = element("td", null, { title: row[i] ?? "" }, element("span", row[i] ?? "", { class: "cut" }));
        td.className = role(i).length ? "used" : "";
        return td;
      });
      return element("tr", null, {}, ...cells);
    });
    $("columns-rows").tHead.replaceChildren(element("tr", null, {}, ...heads));
    $("columns-rows").tBodies[0].replaceChildren(...lines);
    const same = new Set(columns).size < 3;
    const [h, r, t] = columns.map((c) => body[0]?.[c] || "(empty)");
    $("columns-first").textContent = same ? "Choose three different columns." : `The first triple: ${h} —${r}→ ${t}`;
    $("columns-ok").disabled = same;
  };
  options();
  draw();
  selects.forEach((s) => (s.onchange = draw));
  $("columns-header").onchange = () => {
    options();
    draw();
  };
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.onclose = () => {
      const given = { header: $("columns-header").checked, columns: chosen(), lenient: $("columns-lenient").checked };
      resolve(dialog.returnValue === "ok" ? given : null);
    };
    dialog.showModal();
    selects[0].focus();
  });
}
