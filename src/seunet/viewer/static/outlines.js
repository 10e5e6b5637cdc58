// The outlines in view, drawn from the vectors of the server's index, as tiles that OpenSeadragon keeps and moves.
//
// A tile is drawn once, at its own scale, from the cells of 1024 px it lies in, and is then only moved: panning costs
// the same with ten nuclei and with ten thousand.  Tiles go up to four times the slide's own pixels, so that lines stay
// sharp when one looks closely.
import { ask, rgb } from "./ask.js";

const CELL = 1024, UNITS = 8, TILE = 512;
const FINER = 2; // tiles up to 2² times the pixels of the slide
const COARSER = 2; // … and down to 1 / 2² of them: below that, labels are shown
const KEPT_CELLS = 200;
export const LEAST_ZOOM = 1 / 2 ** COARSER; // screen pixels per pixel of the slide

export class Outlines {
  constructor(item, facts) {
    this.item = item;
    this.facts = facts;
    this.cells = new Map();
    this.colors = []; // by class of the index; null hides one
    this.mask = null; // a bit per object; null shows all
    this.version = 0;
    this.drawn = 0;
  }

  // A tile source for what is to be seen now; make another one when colours or mask change.
  source() {
    const version = ++this.version;
    const { width, height } = this.facts, times = 2 ** FINER;
    const maxLevel = Math.max(FINER + COARSER, Math.ceil(Math.log2((Math.max(width, height) * times) / TILE)));
    const source = new OpenSeadragon.TileSource({
      width: width * times, height: height * times, tileSize: TILE, tileOverlap: 0,
      minLevel: maxLevel - FINER - COARSER, maxLevel,
    });
    source.getTileUrl = (level, x, y) => `outlines/${this.item}/${version}/${level}/${x}/${y}`;
    source.hasTransparency = () => true;
    source.downloadTileStart = (job) => {
      this.draw(job.tile.level, job.tile.x, job.tile.y, maxLevel).then(
        (context) => job.finish(context, null, "context2d"),
        (error) => job.fail(error.message, null),
      );
    };
    source.downloadTileAbort = () => {};
    return source;
  }

  async draw(level, x, y, maxLevel) {
    const scale = 2 ** (FINER + level - maxLevel); // tile pixels per pixel of the slide
    const side = TILE / scale, left = x * side, top = y * side;
    const { width, height } = this.facts;
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.min(TILE, Math.ceil((width - left) * scale)));
    canvas.height = Math.max(1, Math.min(TILE, Math.ceil((height - top) * scale)));
    const context = canvas.getContext("2d");
    const columns = span(left, Math.min(left + side, width)), rows = span(top, Math.min(top + side, height));
    const wanted = rows.flatMap((row) => columns.map((column) => [column, row]));
    const cells = await Promise.all(wanted.map(([column, row]) => this.cell(column, row)));
    context.lineWidth = 1.6;
    context.lineJoin = "round";
    this.colors.forEach((color, number) => {
      if (!color) return;
      context.beginPath();
      cells.forEach((cell, place) => {
        const [column, row] = wanted[place];
        this.trace(context, cell, number, column * CELL - left, row * CELL - top, scale, canvas);
      });
      context.strokeStyle = rgb(color);
      context.stroke();
    });
    this.drawn += 1;
    return context;
  }

  trace(context, cell, number, left, top, scale, canvas) {
    const { data, starts, boxes, classes, objects } = cell;
    const unit = scale / UNITS, pixel = UNITS / scale, x0 = left * scale, y0 = top * scale;
    for (let piece = 0; piece < starts.length; piece += 1) {
      if (classes[piece] !== number || !this.shows(objects[piece])) continue;
      const box = 4 * piece;
      if (boxes[box + 2] * unit + x0 < -2 || boxes[box] * unit + x0 > canvas.width + 2) continue;
      if (boxes[box + 3] * unit + y0 < -2 || boxes[box + 1] * unit + y0 > canvas.height + 2) continue;
      let at = starts[piece];
      const stop = at + 2 * data[at - 2];
      let [left, top] = [data[at], data[at + 1]];
      context.moveTo(left * unit + x0, top * unit + y0);
      for (at += 2; at < stop; at += 2) {
        // Corners nearer than a pixel of the tile to the last one are not seen; the end is always drawn.
        if (at < stop - 2 && Math.abs(data[at] - left) + Math.abs(data[at + 1] - top) < pixel) continue;
        [left, top] = [data[at], data[at + 1]];
        context.lineTo(left * unit + x0, top * unit + y0);
      }
    }
  }

  shows(object) {
    return this.mask === null || (this.mask[object >> 3] >> (object & 7)) & 1;
  }

  cell(column, row) {
    const key = `${column}/${row}`;
    if (!this.cells.has(key)) {
      const loading = ask(`cells/${this.item}/${column}/${row}`).then(parsed);
      loading.catch(() => this.cells.delete(key));
      this.cells.set(key, loading);
      if (this.cells.size > KEPT_CELLS) this.cells.delete(this.cells.keys().next().value);
    }
    return this.cells.get(key);
  }
}

function span(from, to) {
  const found = [];
  for (let cell = Math.floor(from / CELL); cell * CELL < to; cell += 1) found.push(cell);
  return found;
}

// Pieces as they come: object (low, high half), points, class, then x and y of each point (viewer/objects/loops.py).
export function parsed(buffer) {
  const data = new Int16Array(buffer);
  const starts = [], boxes = [], classes = [], objects = [];
  for (let at = 0; at < data.length; ) {
    const points = data[at + 2];
    objects.push((data[at] & 0xffff) + (data[at + 1] << 16));
    classes.push(data[at + 3]);
    starts.push(at + 4);
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let point = at + 4; point < at + 4 + 2 * points; point += 2) {
      left = Math.min(left, data[point]); right = Math.max(right, data[point]);
      top = Math.min(top, data[point + 1]); bottom = Math.max(bottom, data[point + 1]);
    }
    boxes.push(left, top, right, bottom);
    at += 4 + 2 * points;
  }
  return { data, starts, boxes: Float32Array.from(boxes), classes, objects };
}
