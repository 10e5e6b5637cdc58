// Two results of the same place, side by side or as a swipe: what is seen in one is seen in the other.
import { ask, count, make, say } from "./ask.js";
import { Pane } from "./pane.js";

export class Compare {
  constructor(stage, panel, page, other) {
    Object.assign(this, { stage, page });
    this.other = other;
    this.section = make("section", { id: "compare" });
    panel.prepend(this.section);
    this.divider = make("button", { id: "divider", hidden: true, "aria-label": "Move the divider", title: "drag, or ← and →" });
    this.divider.addEventListener("pointerdown", (event) => this.drag(event));
    this.divider.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
      if (step) this.place(this.at + step);
    });
  }

  async open() {
    const first = this.page.pane;
    this.page.second = new Pane(this.stage, this.other, true);
    this.stage.append(this.divider);
    this.mode("side");
    await this.page.second.open();
    const second = this.page.second;
    first.title.hidden = false;
    if (second.facts.error) return this;
    second.shown = first.shown;
    second.opacity = first.opacity;
    this.follow(first, second);
    this.follow(second, first);
    this.resize();
    this.section.replaceChildren(make("h2", { textContent: "Compared" }), make("p", { className: "hint", textContent: "counting …" }));
    ask(`api/compare/${first.item}/${second.item}`).then((found) => this.tell(found), (error) => say(error.message));
    return this;
  }

  tell(found) {
    const { pane, second } = this.page;
    const list = make("dl", { id: "differences" });
    const line = (name, value) => list.append(make("dt", { textContent: name }), make("dd", { textContent: count(value) }));
    line("in both", found.both);
    line("of these with another class", found.other_class);
    line(`only in ${pane.facts.name}`, found.only_first);
    line(`only in ${second.facts.name}`, found.only_second);
    const box = make("input", { type: "checkbox", id: "only-differences" });
    box.addEventListener("change", () => {
      pane.filter(box.checked ? `differs=${second.item}` : "");
      second.filter(box.checked ? `differs=${pane.item}` : "");
    });
    this.section.replaceChildren(
      make("h2", { textContent: "Compared" }), list,
      make("label", { className: "line" }, box, make("span", { textContent: "show differences only" })),
      make("p", { className: "hint", textContent: "The same: each is the other's nearest, closer than half their diameter." }),
    );
  }

  // Places are shares of the width, so that the same tissue at another size is in the same place.
  follow(leader, follower) {
    leader.osd.addHandler("update-viewport", () => {
      if (this.busy) return;
      this.busy = true;
      const zoom = leader.osd.viewport.getZoom(true), center = leader.osd.viewport.getCenter(true);
      const own = follower.osd.viewport;
      if (Math.abs(own.getZoom(true) / zoom - 1) > 1e-6) own.zoomTo(zoom, null, true);
      const at = own.getCenter(true);
      if (Math.hypot(at.x - center.x, at.y - center.y) > 1e-7) own.panTo(center, true);
      this.busy = false;
    });
  }

  mode(name) {
    const seen = this.page.pane.osd.viewport.getBounds(true);
    this.stage.className = name;
    this.divider.hidden = name !== "swipe";
    this.place(50);
    this.resize(seen);
  }

  // The same part of the slide in panes of another size.
  resize(seen = this.page.pane.osd.viewport.getBounds(true)) {
    for (const pane of [this.page.pane, this.page.second]) {
      if (!pane?.osd) continue;
      pane.osd.viewport.resize(new OpenSeadragon.Point(pane.place.clientWidth, pane.place.clientHeight), true);
      pane.osd.viewport.fitBounds(seen, true);
    }
  }

  place(percent) {
    this.at = Math.min(Math.max(percent, 0), 100);
    this.stage.style.setProperty("--at", `${this.at}%`);
  }

  drag(event) {
    const move = (moved) => {
      const box = this.stage.getBoundingClientRect();
      this.place((100 * (moved.clientX - box.left)) / box.width);
    };
    this.divider.setPointerCapture(event.pointerId);
    this.divider.addEventListener("pointermove", move);
    this.divider.addEventListener("pointerup", () => this.divider.removeEventListener("pointermove", move), { once: true });
  }

  close() {
    this.page.second?.close();
    this.page.second = null;
    this.divider.remove();
    this.section.remove();
    const seen = this.page.pane?.osd?.viewport.getBounds(true);
    this.stage.className = "";
    if (!seen) return;
    this.page.pane.title.hidden = true;
    this.resize(seen);
  }
}
