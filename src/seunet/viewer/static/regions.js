// Regions of interest: drawn on the slide, kept as GeoJSON that `seunet segment --roi` and QuPath read.
import { drawing, make, save, say } from "./ask.js";

const CLOSE_PX = 10;

export class Regions {
  constructor(root, pane) {
    Object.assign(this, { pane, regions: [], tool: null, points: [] });
    this.section = make("section", { id: "regions" });
    root.append(this.section);
    this.shape = drawing("path", { class: "drawing", "vector-effect": "non-scaling-stroke" });
    Object.assign(this.shape.style, { fill: "rgba(10,125,108,.12)", stroke: "#0a9d86", strokeWidth: "2px", strokeDasharray: "5 4" });
    pane.osd.addHandler("canvas-press", (event) => this.tool === "rectangle" && this.begin(event));
    pane.osd.addHandler("canvas-drag", (event) => this.drag(event));
    pane.osd.addHandler("canvas-release", (event) => this.release(event));
    pane.osd.addHandler("canvas-click", (event) => this.click(event));
    pane.osd.addHandler("canvas-double-click", (event) => { if (this.tool === "polygon") { event.preventDefaultAction = true; this.finish(); } });
    this.list();
  }

  list() {
    const tools = ["rectangle", "polygon"].map((tool) => {
      const button = make("button", { id: `draw-${tool}`, textContent: tool });
      button.setAttribute("aria-pressed", String(this.tool === tool));
      button.addEventListener("click", () => this.choose(this.tool === tool ? null : tool));
      return button;
    });
    const file = make("input", { type: "file", accept: ".geojson,.json", hidden: true, id: "regions-file" });
    file.addEventListener("change", () => this.read(file.files[0]));
    const open = make("button", { textContent: "open …" });
    open.addEventListener("click", () => file.click());
    const keep = make("button", { className: "main", id: "save-regions", textContent: "save GeoJSON", disabled: !this.regions.length });
    keep.addEventListener("click", () => save("regions.geojson", this.text()));
    const lines = this.regions.map((region, number) => {
      const name = make("input", { type: "text", value: region.name, "aria-label": "Name of the region" });
      name.addEventListener("change", () => { region.name = name.value || `region ${number + 1}`; });
      const away = make("button", { textContent: "✕", title: "remove" });
      away.addEventListener("click", () => { region.path.remove(); this.regions.splice(number, 1); this.list(); });
      return make("div", { className: "line" }, name, away);
    });
    const hints = { rectangle: "drag over the slide", polygon: "click corner after corner; double-click, Enter or the first corner ends it" };
    const hint = this.tool ? hints[this.tool] : "Draw regions, save them, then analyse only there: seunet segment SLIDE -o OUT --roi regions.geojson";
    this.section.replaceChildren(
      make("h2", { textContent: "Regions of interest" }), make("div", { className: "row" }, ...tools, open, file),
      make("p", { className: "hint", textContent: hint }), ...lines, make("div", { className: "row" }, keep),
    );
  }

  choose(tool) {
    this.tool = tool;
    this.points = [];
    this.shape.remove();
    this.pane.osd.setMouseNavEnabled(true);
    this.pane.drawing = Boolean(tool);
    this.pane.place.style.cursor = tool ? "crosshair" : "";
    this.list();
  }

  begin(event) {
    const at = this.pane.toSlide(event.position);
    this.points = [at, at];
    this.pane.world.append(this.shape);
  }

  drag(event) {
    if (this.tool !== "rectangle" || !this.points.length) return;
    event.preventDefaultAction = true;
    this.points[1] = this.pane.toSlide(event.position);
    this.outline(this.corners());
  }

  release() {
    if (this.tool !== "rectangle" || this.points.length !== 2) return;
    const corners = this.corners();
    if (Math.abs(corners[0].x - corners[2].x) > 1 && Math.abs(corners[0].y - corners[2].y) > 1) this.add(corners);
    this.choose(null);
  }

  click(event) {
    if (this.tool !== "polygon" || !event.quick) return;
    const at = this.pane.toSlide(event.position), first = this.points[0], last = this.points.at(-1);
    const near = (point) => point && Math.hypot(at.x - point.x, at.y - point.y) * this.pane.zoom() < CLOSE_PX;
    if (near(first) && this.points.length > 2) return this.finish();
    if (!near(last)) this.points.push(at);
    this.pane.world.append(this.shape);
    this.outline(this.points);
  }

  finish() {
    if (this.points.length > 2) this.add(this.points);
    this.choose(null);
  }

  corners() {
    const [a, b] = this.points;
    return [a, { x: b.x, y: a.y }, b, { x: a.x, y: b.y }];
  }

  outline(points, shape = this.shape) {
    shape.setAttribute("d", `M${points.map(({ x, y }) => `${x} ${y}`).join("L")}Z`);
  }

  add(points, name = `region ${this.regions.length + 1}`) {
    const { width, height } = this.pane.facts, within = (value, most) => Math.round(10 * Math.min(Math.max(value, 0), most)) / 10;
    const kept = points.map(({ x, y }) => ({ x: within(x, width), y: within(y, height) }));
    const path = this.shape.cloneNode();
    path.setAttribute("class", "region");
    path.style.strokeDasharray = "";
    this.outline(kept, path);
    this.pane.world.append(path);
    this.regions.push({ name, points: kept, path });
    this.list();
  }

  // Coordinates begin at the scanned part of the slide, as in objects.geojson and in QuPath.
  text() {
    const [left, top] = this.pane.facts.offset;
    const features = this.regions.map(({ name, points }) => ({
      type: "Feature",
      geometry: { type: "Polygon", coordinates: [[...points, points[0]].map(({ x, y }) => [x - left, y - top])] },
      properties: { objectType: "annotation", name },
    }));
    return `${JSON.stringify({ type: "FeatureCollection", features }, null, 1)}\n`;
  }

  async read(file) {
    try {
      const [left, top] = this.pane.facts.offset, found = JSON.parse(await file.text());
      const features = Array.isArray(found) ? found : found.features ?? [found];
      for (const { geometry, properties } of features) {
        const polygons = geometry.type === "MultiPolygon" ? geometry.coordinates : [geometry.coordinates];
        for (const [ring] of polygons) this.add(ring.slice(0, -1).map(([x, y]) => ({ x: x + left, y: y + top })), properties?.name);
      }
    } catch {
      say(`${file.name}: no regions in GeoJSON; open a file of polygons`);
    }
  }
}
