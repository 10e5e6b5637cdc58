// One slide or result on the stage: its layers, what is drawn over it, and its scale bar.
import { ask, count, drawing, make, rgb } from "./ask.js";
import { LEAST_ZOOM, Outlines } from "./outlines.js";

const BAR_PX = 140;
const ORDER = ["slide", "heat", "heads", "labels"];

export class Pane extends EventTarget {
  constructor(stage, item, second = false) {
    super();
    this.item = item;
    this.root = make("div", { className: second ? "pane second" : "pane" });
    this.place = make("div", { className: "osd" });
    this.svg = drawing("svg", { class: "drawn" });
    this.world = drawing("g");
    this.svg.append(this.world);
    this.bar = make("div", { className: "scalebar tag" });
    this.title = make("div", { className: "title tag" });
    this.root.append(this.place, this.svg, this.bar, this.title);
    stage.append(this.root);
    this.shown = { slide: true, labels: true, outlines: true, fill: false };
    this.opacity = { slide: 1, labels: 0.55, heads: 0.6, heat: 0.6, outlines: 1 };
    this.hidden = new Set();
    this.query = "";
    this.images = {};
    this.columns = [];
    this.indexClasses = {};
  }

  async open() {
    this.facts = await ask(`api/item/${this.item}`);
    this.title.textContent = this.facts.name;
    if (this.facts.error) {
      this.root.append(make("div", { className: "fault" }, make("p", { textContent: this.facts.error })));
      return this;
    }
    this.outlines = new Outlines(this.item, this.facts);
    this.osd = OpenSeadragon({
      element: this.place, showNavigationControl: false, drawer: "canvas", crossOriginPolicy: false,
      maxZoomPixelRatio: 12, visibilityRatio: 0.3, animationTime: 0.5, springStiffness: 9, imageLoaderLimit: 6,
      gestureSettingsMouse: { clickToZoom: false, dblClickToZoom: true }, placeholderFillStyle: null,
      maxImageCacheCount: 300, timeout: 60000, preserveImageSizeOnResize: true, smoothTileEdgesMinZoom: Infinity,
    });
    // From the ground up: the slide, then what lies on it.
    for (const layer of ORDER.filter((name) => this.facts.layers.includes(name))) await this.add(layer);
    if (!this.facts.layers.includes("slide")) await this.add("blank");
    for (const event of ["update-viewport", "open", "resize"]) this.osd.addHandler(event, () => this.follow());
    this.osd.addHandler("zoom", () => this.weigh());
    this.osd.addHandler("canvas-click", (event) => {
      if (!event.quick || this.drawing) return;
      const at = this.toSlide(event.position);
      this.dispatchEvent(new CustomEvent("point", { detail: at }));
    });
    this.weigh();
    this.follow();
    if (this.facts.outlines) this.watch();
    return this;
  }

  // The slide's own size, so that every layer lies in the same place whatever its own pixels are.
  tiles(layer, query = "") {
    const { width, height, tile, coarsest } = this.facts;
    const source = new OpenSeadragon.TileSource({ width, height, tileSize: tile, tileOverlap: 0, minLevel: 0, maxLevel: coarsest });
    source.getTileUrl = (level, x, y) => `tiles/${this.item}/${layer}/${coarsest - level}/${x}/${y}${query}`;
    source.hasTransparency = () => layer !== "slide";
    if (layer === "blank") {
      source.getTileUrl = (level, x, y) => `blank/${level}/${x}/${y}`;
      source.downloadTileStart = (job) => job.finish(make("canvas", { width: 1, height: 1 }).getContext("2d"), null, "context2d");
      source.downloadTileAbort = () => {};
    }
    return source;
  }

  add(layer, source = this.tiles(layer), index = undefined) {
    return new Promise((resolve) => {
      this.osd.addTiledImage({
        tileSource: source, x: 0, y: 0, width: 1, opacity: 0, index,
        success: ({ item }) => { this.images[layer] = item; this.weigh(); resolve(item); },
        error: () => resolve(null),
      });
    });
  }

  async replace(layer, source) {
    const before = this.images[layer];
    await this.add(layer, source);
    if (before) this.osd.world.removeItem(before);
  }

  // Labels where objects are too small to be outlined, outlines where they are not.
  weigh() {
    if (!this.osd || !this.facts) return;
    const near = this.zoom() >= LEAST_ZOOM && Boolean(this.images.outlines);
    const show = (layer, wanted) => {
      const image = this.images[layer];
      const opacity = wanted ? this.opacity[layer] ?? 1 : 0;
      if (image && image.getOpacity() !== opacity) image.setOpacity(opacity);
    };
    const far = this.shown.labels && (!near || this.shown.fill || !this.shown.outlines);
    show("slide", this.shown.slide);
    show("blank", true);
    show("labels", far && !this.query);
    if (this.images.chosen) this.opacity.chosen = this.opacity.labels;
    show("chosen", far && Boolean(this.query));
    show("heads", this.shown.heads);
    show("heat", this.shown.heat);
    show("outlines", this.shown.outlines && near);
    this.root.dataset.outlines = near && this.shown.outlines ? "shown" : "hidden";
  }

  zoom() {
    return (this.osd.viewport.getZoom(true) * this.place.clientWidth) / this.facts.width;
  }

  toSlide(position) {
    const scale = this.facts.width;
    const point = this.osd.viewport.viewerElementToViewportCoordinates(position);
    return { x: point.x * scale, y: point.y * scale };
  }

  toScreen(x, y) {
    const { width } = this.facts;
    return this.osd.viewport.viewportToViewerElementCoordinates(new OpenSeadragon.Point(x / width, y / width));
  }

  // Whether every tile that is to be seen is there.
  settled() {
    const { world } = this.osd, all = [...Array(world.getItemCount()).keys()].map((place) => world.getItemAt(place));
    return all.length > 0 && all.every((image) => image.getOpacity() === 0 || image.getFullyLoaded());
  }

  // Keep what is drawn, and the scale bar, with the slide.
  follow() {
    const corner = this.osd.viewport.viewportToViewerElementCoordinates(new OpenSeadragon.Point(0, 0));
    const zoom = this.zoom();
    this.world.setAttribute("transform", `matrix(${zoom} 0 0 ${zoom} ${corner.x} ${corner.y})`);
    if (zoom !== this.lastZoom) {
      this.lastZoom = zoom;
      this.measure(zoom);
      this.weigh();
    }
  }

  measure(zoom) {
    const { scale } = this.facts;
    const per = scale ? scale.mpp / zoom : 1 / zoom; // µm, or px of the slide, per screen pixel
    const most = per * BAR_PX, power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((digit) => digit * power).find((value) => value <= most);
    const unit = !scale ? "px" : length >= 1000 ? "mm" : "µm";
    let how = "µm per pixel not known";
    if (scale?.how === "stated") how = `stated: ${scale.mpp.toPrecision(3)} µm per pixel`;
    if (scale?.how === "estimated") {
      const range = scale.low ? `, 90 %: ${scale.low.toPrecision(2)}–${scale.high.toPrecision(2)}` : "";
      how = `estimated: ${scale.mpp.toPrecision(2)} µm per pixel${range}`;
    }
    this.bar.replaceChildren(
      make("b", { textContent: `${scale?.how === "estimated" ? "≈ " : ""}${unit === "mm" ? length / 1000 : length} ${unit}` }),
      make("i", { style: { width: `${length / per}px` } }),
      make("span", { textContent: how }),
    );
  }

  // Ask how far the index is until it is there, then show the outlines.
  async watch() {
    for (;;) {
      let state;
      try {
        state = await ask(`api/progress/${this.item}`);
      } catch (error) {
        this.dispatchEvent(new CustomEvent("fault", { detail: error.message }));
        return;
      }
      this.dispatchEvent(new CustomEvent("progress", { detail: state }));
      if (state.columns.length || state.share === 1) {
        this.columns = state.columns;
        this.indexClasses = state.classes;
        this.objects = state.objects;
        await this.redraw();
        this.dispatchEvent(new Event("objects"));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  }

  // Outlines in today's colours, of the objects that pass the filter; from afar the same objects as shares.
  async redraw() {
    if (!this.facts.outlines || !this.columns) return;
    const names = Object.keys(this.indexClasses);
    this.outlines.colors = names.map((name) => (this.hidden.has(name) ? null : this.indexClasses[name]));
    this.outlines.mask = this.query ? new Uint8Array(await ask(`api/mask/${this.item}?${this.query}`)) : null;
    await this.replace("outlines", this.outlines.source());
    if (this.query || !this.facts.layers.includes("labels")) {
      await this.replace("chosen", this.tiles("chosen", `?${this.query}`));
    }
    this.weigh();
  }

  async filter(query) {
    if (query === this.query) return;
    this.query = query;
    await this.redraw();
  }

  // Mark an object and, if it is out of sight, go there.
  mark(object, go = false) {
    this.world.querySelector(".marked")?.remove();
    if (!object) return;
    const path = object.outline.map((ring) => `M${ring.map((point) => point.join(" ")).join("L")}Z`).join("");
    const shape = drawing("path", { d: path, class: "marked", "fill-rule": "evenodd", "vector-effect": "non-scaling-stroke" });
    Object.assign(shape.style, { fill: "rgba(0,255,230,.16)", stroke: "#00e5cf", strokeWidth: "3px" });
    this.world.append(shape);
    if (go) this.go(object.box);
  }

  go([left, top, right, bottom]) {
    const width = this.facts.width, middle = new OpenSeadragon.Point((left + right) / 2 / width, (top + bottom) / 2 / width);
    const across = Math.max(right - left, bottom - top, 8) * 12;
    const zoom = Math.min(this.place.clientWidth / across, 4) * (width / this.place.clientWidth);
    this.osd.viewport.panTo(middle, true);
    if (this.zoom() < LEAST_ZOOM * 2 || this.zoom() > 8) this.osd.viewport.zoomTo(zoom, middle, true);
  }

  close() {
    this.osd?.destroy();
    this.root.remove();
  }
}

export function legendLine(name, color, number) {
  return make(
    "span", { className: "line" },
    make("i", { className: "swatch", style: { background: rgb(color) } }),
    make("span", { textContent: name }),
    make("span", { className: "number", textContent: count(number) }),
  );
}
