// Light and dark: as the system has it, until one chooses.
import { $ } from "./dom.js";
import { paint } from "./picture.js";

export function start() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  $("theme").onclick = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    paint();
  };
  system.addEventListener("change", paint);
  const saved = localStorage.getItem("theme");
  if (saved) root.dataset.theme = saved;
  paint();
}
