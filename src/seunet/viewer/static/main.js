// The page: which of the things given is shown, and what stands around it.
import { ask, make, say } from "./ask.js";
import { Compare } from "./compare.js";
import { Objects } from "./objects.js";
import { Pane } from "./pane.js";
import { Panel } from "./panel.js";
import { Regions } from "./regions.js";

const element = (id) => document.getElementById(id);
const stage = element("stage"), which = element("which"), other = element("other");
const page = { pane: null, second: null };
window.seunet = page; // for tests and the curious

async function start() {
  const shown = await ask("api/shown");
  shown.forEach(({ name }, number) => {
    which.append(make("option", { value: number, textContent: name }));
  });
  const asked = new URLSearchParams(location.hash.slice(1));
  which.value = shown[Number(asked.get("item"))] ? String(Number(asked.get("item"))) : "0";
  element("compare-with").hidden = shown.length < 2;
  which.hidden = shown.length < 2;
  which.addEventListener("change", () => { remember({ item: which.value, with: "" }); open(); });
  other.append(make("option", { value: "", textContent: "nothing" }), ...[...which.options].map((one) => one.cloneNode(true)));
  other.addEventListener("change", () => { remember({ with: other.value }); compare(); });
  await open();
  other.value = shown[Number(asked.get("with") || NaN)] ? asked.get("with") : "";
  await compare();
}

function remember(values) {
  const now = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(values)) value === "" ? now.delete(name) : now.set(name, value);
  history.replaceState(null, "", `#${now}`);
}

async function compare() {
  page.compare?.close();
  page.compare = null;
  element("modes").hidden = other.value === "";
  if (other.value === "" || page.pane.facts.error) return;
  page.compare = new Compare(stage, element("panel"), page, Number(other.value));
  press("side");
  await page.compare.open();
}

function press(mode) {
  for (const name of ["side", "swipe"]) element(name).setAttribute("aria-pressed", String(name === mode));
  page.compare?.mode(mode);
}

async function open() {
  page.compare?.close();
  page.compare = null;
  other.value = "";
  element("modes").hidden = true;
  page.pane?.close();
  const pane = (page.pane = new Pane(stage, Number(which.value)));
  await pane.open();
  document.title = `${pane.facts.name} · seunet`;
  if (pane.facts.error) {
    element("panel").replaceChildren(make("p", { className: "note", textContent: pane.facts.error }));
    return;
  }
  pane.addEventListener("fault", ({ detail }) => say(detail));
  page.panel = new Panel(element("panel"), pane);
  page.objects = new Objects(element("panel"), element("drawer"), pane, page.panel);
  page.regions = new Regions(element("panel"), pane);
  pane.title.hidden = true;
}

for (const mode of ["side", "swipe"]) element(mode).addEventListener("click", () => press(mode));
element("fit").addEventListener("click", () => page.pane.osd.viewport.goHome());
element("show-table").addEventListener("click", () => {
  const drawer = element("drawer");
  drawer.hidden = !drawer.hidden;
  element("show-table").setAttribute("aria-pressed", String(!drawer.hidden));
});
element("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey) return;
  const toggles = { o: "show-outlines", l: "show-labels", t: "show-table" };
  if (toggles[event.key]) element(toggles[event.key])?.click();
  if (event.key === "Escape") {
    page.regions?.choose(null);
    page.panel?.show(null);
  }
  if (event.key === "Enter" && page.regions?.tool === "polygon") page.regions.finish();
});

start().catch((error) => say(error.message));
