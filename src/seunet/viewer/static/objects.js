// The objects of a result: how a measurement is distributed, a filter on it, the table, and export of what is left.
import { ask, count, drawing, make, short } from "./ask.js";

const PAGE = 100, WIDTH = 300, HEIGHT = 84;

export class Objects {
  constructor(root, drawer, pane, panel) {
    Object.assign(this, { drawer, pane, panel, ranges: {}, column: 0, sort: "object", down: false, from: 0 });
    this.section = make("section", { id: "objects", hidden: true });
    root.append(this.section);
    pane.addEventListener("objects", () => this.open());
    pane.addEventListener("chosen", () => this.markRow());
    if (pane.columns.length) this.open();
  }

  query() {
    const ranges = Object.entries(this.ranges).map(([column, [low, high]]) => `${column}:${low ?? ""}:${high ?? ""}`);
    return ranges.length ? `range=${ranges.join(",")}` : "";
  }

  open() {
    const { columns } = this.pane;
    if (!columns.length) return;
    this.section.hidden = false;
    const at = columns.findIndex((name) => name.startsWith("Area µm"));
    this.column = at >= 0 ? at : 0;
    this.select = make("select", { id: "measurement", "aria-label": "Measurement" });
    columns.forEach((name, number) => this.select.append(make("option", { value: number, textContent: name })));
    this.select.value = this.column;
    this.select.addEventListener("change", () => { this.column = Number(this.select.value); this.draw(); });
    this.bars = drawing("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.bars.addEventListener("pointerdown", (event) => this.drag(event));
    this.ends = make("div", { className: "ends" });
    this.low = make("input", { type: "number", id: "low", step: "any", placeholder: "from", "aria-label": "Least value" });
    this.high = make("input", { type: "number", id: "high", step: "any", placeholder: "to", "aria-label": "Largest value" });
    for (const field of [this.low, this.high]) field.addEventListener("change", () => this.typed());
    this.chips = make("div", { className: "chips" });
    this.left = make("p", { className: "hint", id: "left" });
    this.links = ["csv", "geojson"].map((kind) => make("a", { className: "button", id: `export-${kind}`, textContent: `export ${kind === "csv" ? "CSV" : "GeoJSON"}` }));
    this.section.replaceChildren(
      make("h2", { textContent: "Objects" }), this.select, this.bars, this.ends,
      make("div", { className: "row" }, this.low, this.high), this.chips, this.left, make("div", { className: "row" }, ...this.links),
    );
    this.draw();
    this.fill();
  }

  async draw() {
    const { pane } = this, turn = (this.draws = (this.draws ?? 0) + 1);
    const [low, high] = this.ranges[this.column] ?? [null, null];
    // Before the answer is there: what is typed while it is waited for must stay.
    this.low.value = low ?? "";
    this.high.value = high ?? "";
    const found = await ask(`api/histogram/${pane.item}?column=${this.column}&${this.query()}`);
    if (turn !== this.draws) return;
    this.edges = found.edges;
    this.bars.replaceChildren();
    this.bars.setAttribute("aria-label", `distribution of ${pane.columns[this.column]}`);
    const most = Math.max(1, ...found.all), step = WIDTH / Math.max(1, found.all.length);
    [low ?? this.edges[0], high ?? this.edges.at(-1)].includes(undefined) || this.bars.append(this.spanOf(low, high));
    for (const kind of ["all", "selected"]) {
      found[kind].forEach((number, bin) => {
        const tall = (HEIGHT - 4) * Math.sqrt(number / most);
        this.bars.append(drawing("rect", { class: kind === "all" ? "all" : "some", x: bin * step + 0.5, width: Math.max(step - 1, 0.5), y: HEIGHT - tall, height: tall }));
      });
    }
    this.ends.replaceChildren(...[this.edges[0], this.edges.at(-1)].map((value) => make("span", { textContent: short(value) })));
    this.chips.replaceChildren(...Object.entries(this.ranges).map(([column, [from, to]]) => {
      const text = `${pane.columns[column]} ${from === null ? "" : `≥ ${short(from)}`} ${to === null ? "" : `≤ ${short(to)}`} ✕`;
      const chip = make("button", { textContent: text, title: "remove this filter" });
      chip.addEventListener("click", () => { delete this.ranges[column]; this.changed(); });
      return chip;
    }));
    const base = `api/export/${pane.item}/objects.`;
    this.links.forEach((link, number) => { link.href = `${base}${number ? "geojson" : "csv"}?${this.query()}`; link.download = `objects.${number ? "geojson" : "csv"}`; });
  }

  spanOf(low, high) {
    const [first, last] = [this.edges[0], this.edges.at(-1)];
    const x = (value) => Math.min(Math.max((value - first) / (last - first), 0), 1) * WIDTH;
    const set = low !== null || high !== null;
    const from = set ? x(low ?? first) : 0, to = set ? x(high ?? last) : 0;
    return drawing("rect", { class: "span", x: from, width: Math.max(to - from, 0), y: 0, height: HEIGHT });
  }

  drag(event) {
    const value = (moved) => {
      const box = this.bars.getBoundingClientRect();
      const share = Math.min(Math.max((moved.clientX - box.left) / box.width, 0), 1);
      return this.edges[0] + share * (this.edges.at(-1) - this.edges[0]);
    };
    const start = value(event);
    this.bars.setPointerCapture(event.pointerId);
    this.bars.addEventListener("pointerup", (end) => {
      const ends = [start, value(end)].sort((a, b) => a - b);
      if (ends[1] - ends[0] > (this.edges.at(-1) - this.edges[0]) / 100) this.ranges[this.column] = ends.map((one) => Number(one.toPrecision(4)));
      else delete this.ranges[this.column];
      this.changed();
    }, { once: true });
  }

  typed() {
    const [low, high] = [this.low, this.high].map((field) => (field.value === "" ? null : Number(field.value)));
    if (low === null && high === null) delete this.ranges[this.column];
    else this.ranges[this.column] = [low, high];
    this.changed();
  }

  changed() {
    this.from = 0;
    this.draw();
    this.fill();
    this.pane.filter(this.query());
  }

  async fill() {
    const { pane } = this, turn = (this.fills = (this.fills ?? 0) + 1);
    const order = `sort=${this.sort}&order=${this.down ? "down" : "up"}&from=${this.from}&count=${PAGE}`;
    const found = await ask(`api/objects/${pane.item}?${order}&${this.query()}`);
    if (turn !== this.fills) return;
    this.left.textContent = `${count(found.selected)} of ${count(found.all)} objects`;
    const columns = [["object", "#"], ["class", "class"], ...pane.columns.map((name, number) => [String(number), name])];
    const head = make("tr", {}, ...columns.map(([key, name]) => {
      const arrow = this.sort === key ? (this.down ? " ↓" : " ↑") : "";
      const button = make("button", { textContent: name + arrow });
      button.addEventListener("click", () => { this.down = this.sort === key && !this.down; this.sort = key; this.from = 0; this.fill(); });
      return make("th", { scope: "col", "aria-sort": arrow ? (this.down ? "descending" : "ascending") : "none" }, button);
    }));
    const rows = found.rows.map((row) => {
      const cells = [count(row.object + 1), row.class, ...row.values.map(short)];
      const line = make("tr", { tabIndex: 0 }, ...cells.map((text) => make("td", { textContent: text })));
      line.dataset.object = row.object;
      const choose = () => this.panel.chooseNumber(row.object);
      line.addEventListener("click", choose);
      line.addEventListener("keydown", (event) => event.key === "Enter" && choose());
      return line;
    });
    const step = (text, to, off) => {
      const button = make("button", { textContent: text, disabled: off });
      button.addEventListener("click", () => { this.from = to; this.fill(); });
      return button;
    };
    const last = Math.min(this.from + PAGE, found.selected);
    const where = found.selected ? `${count(this.from + 1)}–${count(last)} of ${count(found.selected)}` : "none";
    this.drawer.replaceChildren(
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)),
      make("nav", { "aria-label": "Pages of the table" }, step("before", Math.max(0, this.from - PAGE), this.from === 0), step("after", this.from + PAGE, last >= found.selected), make("span", { textContent: where })),
    );
    this.markRow();
  }

  markRow() {
    const chosen = this.panel.chosen?.object;
    for (const row of this.drawer.querySelectorAll("tbody tr")) row.classList.toggle("chosen", Number(row.dataset.object) === chosen);
  }
}
