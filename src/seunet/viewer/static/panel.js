// The panel: layers with their opacity, the legend with counts, and what is known of the chosen object.
import { ask, count, make, rgb, short } from "./ask.js";

const NAMES = {
  slide: "slide", labels: "labels", outlines: "outlines", heads: "which head won", heat: "probability",
};

export class Panel {
  constructor(root, pane) {
    this.pane = pane;
    this.layers = make("section", { id: "layers" });
    this.legend = make("section", { id: "legend" });
    this.object = make("section", { id: "object" });
    root.replaceChildren(this.layers, this.legend, this.object);
    this.drawLayers();
    this.drawLegend();
    this.show(null);
    pane.addEventListener("progress", ({ detail }) => this.progress(detail));
    pane.addEventListener("objects", () => this.drawLegend());
    pane.addEventListener("point", ({ detail }) => this.choose(detail));
  }

  drawLayers() {
    const { pane } = this, facts = pane.facts;
    const layers = [...facts.layers, ...(facts.outlines ? ["outlines"] : [])];
    const order = Object.keys(NAMES).filter((layer) => layers.includes(layer));
    this.layers.replaceChildren(
      make("h2", { textContent: "Layers" }),
      ...facts.notes.map((note) => make("p", { className: "note", textContent: note })),
      ...order.map((layer) => this.layerLine(layer)),
    );
    if (facts.layers.includes("labels") && facts.outlines) {
      const box = make("input", { type: "checkbox", id: "fill", checked: pane.shown.fill });
      box.addEventListener("change", () => { pane.shown.fill = box.checked; pane.weigh(); });
      this.layers.append(make("label", { className: "line" }, box, make("span", { textContent: "labels below outlines too" })));
      this.wait = make("p", { className: "hint", id: "progress" });
      this.layers.append(this.wait);
    }
  }

  layerLine(layer) {
    const { pane } = this;
    const box = make("input", { type: "checkbox", id: `show-${layer}`, checked: Boolean(pane.shown[layer]) });
    const slider = make("input", {
      type: "range", min: 0, max: 1, step: 0.05, value: pane.opacity[layer], "aria-label": `opacity of ${NAMES[layer]}`,
    });
    box.addEventListener("change", () => { pane.shown[layer] = box.checked; pane.weigh(); });
    slider.addEventListener("input", () => { pane.opacity[layer] = Number(slider.value); pane.weigh(); });
    return make("label", { className: "line" }, box, make("span", { textContent: NAMES[layer] }), slider);
  }

  progress({ share, objects }) {
    if (this.wait) this.wait.textContent = share < 1 ? `reading outlines: ${Math.round(100 * share)} %, ${count(objects)} objects` : "";
  }

  drawLegend() {
    const { pane } = this, facts = pane.facts;
    this.legend.replaceChildren(make("h2", { textContent: "Legend" }));
    const named = new Map(facts.classes.filter((one) => !one.background).map((one) => [one.name, one]));
    for (const [name, color] of Object.entries(pane.indexClasses)) {
      if (!named.has(name)) named.set(name, { name, color, count: null });
    }
    for (const one of named.values()) this.legend.append(this.classLine(one));
    if (facts.layers.includes("labels")) {
      this.legend.append(make("span", { className: "line" }, make("i", { className: "swatch hatch" }), make("span", { textContent: "not analysed" })));
    }
    if (facts.heads) {
      this.legend.append(make("h2", { textContent: "Heads, from fine to coarse" }));
      for (const head of facts.heads) {
        this.legend.append(make("span", { className: "line" }, make("i", { className: "swatch", style: { background: rgb(head.color) } }), make("span", { textContent: head.name })));
      }
    }
    if (!named.size) this.legend.append(make("p", { className: "hint", textContent: "a slide without results: seunet segment makes them" }));
  }

  classLine({ name, color, count: number }) {
    const { pane } = this;
    const box = make("input", { type: "checkbox", checked: !pane.hidden.has(name), "aria-label": `outlines of ${name}` });
    box.addEventListener("change", () => {
      if (box.checked) pane.hidden.delete(name); else pane.hidden.add(name);
      pane.redraw();
    });
    return make(
      "label", { className: "line" }, box,
      make("i", { className: "swatch", style: { background: rgb(color) } }),
      make("span", { textContent: name }),
      make("span", { className: "number", textContent: count(number) }),
    );
  }

  async choose({ x, y }) {
    if (!this.pane.columns.length) return;
    this.show(await ask(`api/at/${this.pane.item}?x=${x.toFixed(2)}&y=${y.toFixed(2)}`));
  }

  async chooseNumber(number) {
    this.show(await ask(`api/object/${this.pane.item}/${number}`), true);
  }

  show(object, go = false) {
    this.pane.mark?.(object, go);
    this.chosen = object;
    this.pane.dispatchEvent(new CustomEvent("chosen", { detail: object }));
    const title = make("h2", { textContent: "Chosen object" });
    if (!object) {
      const hint = this.pane.facts.outlines ? "click a nucleus" : "there are no objects here";
      this.object.replaceChildren(title, make("p", { className: "hint", textContent: hint }));
      return;
    }
    const list = make("dl");
    const line = (name, value) => list.append(make("dt", { textContent: name }), make("dd", { textContent: value }));
    line("class", object.class);
    this.pane.columns.forEach((name, number) => line(name, short(object.values[number])));
    for (const [name, value] of this.estimated(object)) line(name, value);
    line("centre, px", `${object.x}, ${object.y}`);
    this.object.replaceChildren(title, list);
  }

  // Where µm per pixel is estimated, no file has µm: here they are, marked as what they are.
  estimated(object) {
    const { scale } = this.pane.facts, at = this.pane.columns.indexOf("Area px^2");
    if (scale?.how !== "estimated" || at < 0 || object.values[at] === null) return [];
    const px = object.values[at];
    const range = scale.low ? ` (${short(px * scale.low ** 2)}–${short(px * scale.high ** 2)})` : "";
    return [["area, estimated", `≈ ${short(px * scale.mpp ** 2)}${range} µm²`]];
  }
}
