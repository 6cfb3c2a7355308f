// <lease-timeline>: who has which host when. Rows and time are windows: what is not seen is neither drawn nor fetched.
//
// Attributes: src (JSON of rows), form (page of a new lease), lease (beginning of the URLs of leases), change (of
// those of changes), group, span (hours), at (begin, ISO 8601), search, zone (IANA name), may-create, may-update, kiosk, csrf.

const MINUTE = 60_000, HOUR = 3_600_000, DAY = 24 * HOUR;
const ZOOMS = [[6, "6 hours"], [12, "12 hours"], [24, "1 day"], [72, "3 days"], [168, "1 week"], [336, "2 weeks"],
  [744, "1 month"], [2208, "3 months"]];
const TICKS = [[6, HOUR], [12, HOUR], [24, 3 * HOUR], [72, 6 * HOUR], [168, DAY], [336, DAY], [744, 2 * DAY], [2208, 7 * DAY]];
const ROW = 28, LANE = 24, GROUP = 28, PAGE = 50, OVERSCAN = 4, KEPT_PAGES = 60, PRINTED = 400;
const WORDS = { lease: "lease", grace: "grace", cleaning: "cleaning", maintenance: "maintenance", busy: "busy" };
const NARROWEST_TICK = 72, DRY_RUN_PAUSE = 200, LIVE_PAUSE = 150, KIOSK_TURN = 20_000;

const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const moment = (text) => Date.parse(`${text}Z`);
const lengthOf = (milliseconds) => {
  const minutes = Math.round(milliseconds / MINUTE);
  const parts = [[Math.floor(minutes / 1440), "d"], [Math.floor(minutes / 60) % 24, "h"], [minutes % 60, "min"]];
  return parts.filter(([number]) => number).map(([number, unit]) => number + unit).join(" ");
};
const iso = (at) => new Date(at).toISOString().slice(0, 16) + "Z";

/** Lanes of spans that overlap: each goes to the first lane that is free. */
export function lanes(spans) {
  const ends = [];
  for (const span of spans) {
    let lane = ends.findIndex((end) => end <= span.from);
    if (lane < 0) lane = ends.length;
    ends[lane] = span.to;
    span.lane = lane;
  }
  return Math.max(1, ends.length);
}

/** Times between two moments at which nothing of a row is taken. */
export function gaps(spans, from, to) {
  const free = [];
  let at = from;
  for (const span of spans) {
    if (span.from > at) free.push({ kind: "free", from: at, to: Math.min(span.from, to) });
    at = Math.max(at, span.to);
    if (at >= to) break;
  }
  if (at < to) free.push({ kind: "free", from: at, to });
  return free;
}

class LeaseTimeline extends HTMLElement {
  connectedCallback() {
    if (this.grid) return;
    this.zone = this.getAttribute("zone") || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    this.hours = ZOOMS.some(([hours]) => String(hours) === this.getAttribute("span")) ? Number(this.getAttribute("span")) : 168;
    const begin = Date.parse(this.getAttribute("at") || "");
    this.from = Number.isNaN(begin) ? this.usualStart() : begin;
    this.group = this.getAttribute("group") || "pool";
    this.search = this.getAttribute("search") || "";
    this.folded = new Set();
    this.drawn = new Map();
    this.focus = { item: 0, at: this.from };
    this.isKiosk = this.hasAttribute("kiosk");
    this.build();
    this.forget();
    this.load();
    this.clock = setInterval(() => this.tick(), MINUTE / 2);
    this.live = () => { clearTimeout(this.liveTimer); this.liveTimer = setTimeout(() => this.refresh(), LIVE_PAUSE); };
    document.addEventListener("climate:change", this.live);
    if (this.isKiosk) this.turner = setInterval(() => this.turnPage(), KIOSK_TURN);
  }

  disconnectedCallback() {
    clearInterval(this.clock);
    clearInterval(this.turner);
    document.removeEventListener("climate:change", this.live);
    this.resizes?.disconnect();
  }

  get span() { return this.hours * HOUR; }
  get to() { return this.from + this.span; }

  // ---- times -------------------------------------------------------------------------------------------------

  formatter(options) {
    this.formatters ??= new Map();
    const key = JSON.stringify(options);
    if (!this.formatters.has(key)) {
      this.formatters.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: this.zone, hourCycle: "h23", ...options }));
    }
    return this.formatters.get(key);
  }

  /** A time in words, of which each cell has two. */
  clockTime(at) {
    this.clockFormat ??= this.formatter({ weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
    return this.clockFormat.format(at);
  }

  /** Milliseconds by which the zone is ahead of UTC at a moment. */
  offset(at) {
    const options = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
    const parts = Object.fromEntries(this.formatter(options).formatToParts(at).map((part) => [part.type, part.value]));
    const local = Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second);
    return local - Math.floor(at / 1000) * 1000;
  }

  /** This hour where hours are shown, else today. */
  usualStart() { return this.floor(Date.now(), this.hours < 24 ? HOUR : DAY); }
  floor(at, unit) { const ahead = this.offset(at); return Math.floor((at + ahead) / unit) * unit - ahead; }
  get snap() { return this.hours <= 12 ? 15 * MINUTE : this.hours <= 72 ? 30 * MINUTE : this.hours <= 336 ? HOUR : 6 * HOUR; }
  snapped(at) { const ahead = this.offset(at); return Math.round((at + ahead) / this.snap) * this.snap - ahead; }

  // ---- frame -------------------------------------------------------------------------------------------------

  build() {
    this.replaceChildren();
    this.bar = this.appendChild(this.toolbar());
    this.grid = this.appendChild(make("div", "lt-grid"));
    this.grid.setAttribute("role", "grid");
    this.grid.setAttribute("aria-label", "Calendar of hosts");
    this.grid.setAttribute("aria-readonly", "true");
    const head = this.grid.appendChild(make("div", "lt-head"));
    this.axis = head.appendChild(this.headRow("Host", "lt-axis"));
    this.strip = head.appendChild(this.headRow("Free hosts", "lt-strip"));
    this.strip.querySelector(".lt-track").setAttribute("role", "gridcell");  // empty until it is loaded
    this.body = this.grid.appendChild(make("div", "lt-body"));
    this.body.setAttribute("role", "rowgroup");
    this.now = this.body.appendChild(make("div", "lt-now"));
    this.now.setAttribute("aria-hidden", "true");
    this.status = this.appendChild(make("div", "lt-status"));
    this.status.setAttribute("role", "status");
    this.confirm = this.appendChild(make("div", "lt-confirm"));
    this.confirm.hidden = true;
    this.grid.addEventListener("scroll", () => this.draw(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("click", (event) => this.click(event));
    this.grid.addEventListener("pointerdown", (event) => this.press(event));
    this.grid.addEventListener("focusin", (event) => this.follow(event));
    this.grid.addEventListener("wheel", (event) => {
      if (!event.shiftKey) return;
      event.preventDefault();
      this.move(Math.sign(event.deltaY || event.deltaX) * this.span / 8);
    }, { passive: false });
    addEventListener("beforeprint", () => { this.isPrinted = true; this.drawNow(); });
    addEventListener("afterprint", () => { this.isPrinted = false; this.draw(); });
    this.resizes = new ResizeObserver(() => { this.drawHead(); this.draw(); });
    this.resizes.observe(this.grid);
  }

  headRow(words, className) {
    const row = make("div", `lt-headrow ${className}`);
    row.setAttribute("role", "row");
    const corner = row.appendChild(make("div", "lt-corner", words));
    corner.setAttribute("role", "columnheader");
    const cell = row.appendChild(make("div", "lt-track"));
    cell.setAttribute("role", "columnheader");
    return row;
  }

  toolbar() {
    const bar = make("div", "lt-bar");
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", "Calendar");
    const button = (words, act, label) => {
      const made = bar.appendChild(make("button", "", words));
      made.type = "button";
      if (label) made.setAttribute("aria-label", label);
      made.addEventListener("click", act);
    };
    button("◀", () => this.move(-this.span / 2), "Earlier");
    button("Today", () => { this.from = this.usualStart(); this.show(); });
    button("▶", () => this.move(this.span / 2), "Later");
    this.zoom = bar.appendChild(this.choice("Zoom", ZOOMS, String(this.hours), (value) => this.setZoom(Number(value))));
    const groups = [["pool", "Pools"], ["rack", "Racks"], ["zone", "Zones"]];
    bar.appendChild(this.choice("Groups", groups, this.group, (value) => { this.group = value; this.restart(); }));
    button("Print", () => this.print());
    const label = bar.appendChild(make("label", "lt-search", "Search "));
    const box = label.appendChild(make("input"));
    box.type = "search";
    box.value = this.search;
    box.addEventListener("input", () => {
      clearTimeout(this.searchTimer);
      this.searchTimer = setTimeout(() => { this.search = box.value.trim(); this.restart(); }, 200);
    });
    return bar;
  }

  choice(words, options, value, act) {
    const label = make("label", "", `${words} `);
    const select = label.appendChild(make("select"));
    for (const [key, text] of options) select.add(new Option(text, key, false, String(key) === value));
    select.addEventListener("change", () => act(select.value));
    return label;
  }

  setZoom(hours) {
    const middle = this.from + this.span / 2;
    const now = Date.now();
    const held = now > this.from && now < this.to ? now : middle;
    const share = (held - this.from) / this.span;
    this.hours = hours;
    this.zoom.querySelector("select").value = String(hours);
    this.from = this.floor(held - share * this.span, hours >= 24 ? DAY : HOUR);
    this.show();
  }

  move(by) { this.from = this.snapped(this.from + by); this.show(); }

  /** Show another time: at once where it is loaded, and fetch the time around it. */
  show() {
    this.remember();
    if (this.from < this.loadedFrom || this.to > this.loadedTo) { this.restart(); return; }
    this.redraw();
    if (this.from - this.loadedFrom < this.span / 2 || this.loadedTo - this.to < this.span / 2) {
      clearTimeout(this.ahead);
      this.ahead = setTimeout(() => this.refresh(), 300);
    }
  }

  /** Keep what is shown in the address, so that a view can be shared. */
  remember() {
    const url = new URL(location.href);
    const known = { at: iso(this.from), span: String(this.hours), group: this.group, search: this.search };
    for (const [name, value] of Object.entries(known)) value ? url.searchParams.set(name, value) : url.searchParams.delete(name);
    history.replaceState(history.state, "", url);
    for (const link of document.querySelectorAll("a[data-calendar-link]")) {
      const target = new URL(link.href);
      for (const name of ["at", "span", "group", "search"]) {
        const value = url.searchParams.get(name);
        value ? target.searchParams.set(name, value) : target.searchParams.delete(name);
      }
      link.href = target.href;
    }
  }

  // ---- data --------------------------------------------------------------------------------------------------

  /** Forget all rows, and load the shown time with as much before and after it. */
  forget() {
    this.loadedFrom = this.from - this.span;
    this.loadedTo = this.to + this.span;
    this.pages = new Map();
    this.rows = new Map();
    this.items = [];
    this.offsets = new Float64Array(1);
    this.version = (this.version || 0) + 1;
  }

  restart() { this.remember(); this.forget(); this.load(); }

  /** Fetch the pages around what is shown anew; what is shown stays until they are there. */
  refresh() {
    if (this.drag) return;
    this.loadedFrom = this.from - this.span;
    this.loadedTo = this.to + this.span;
    this.version += 1;
    this.pages = new Map();
    this.load(true);
  }

  async load(keeps = false) {
    const first = Math.floor(this.firstRow() / PAGE);
    await this.fetchPage(first, keeps);
    this.draw();
    this.fetchStrip();
  }

  /** Fetch the free count, which takes longer than the rows. */
  async fetchStrip() {
    const version = this.version;
    const url = new URL(this.getAttribute("src"), location.href);
    const asked = { from: iso(this.loadedFrom), to: iso(this.loadedTo), limit: 1, points: 600 };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" }).catch(() => undefined);
    if (!answer?.ok || version !== this.version) return;  // the rows say what is wrong, and are tried again
    this.free = (await answer.json()).timeline.free;
    this.drawStrip();
  }

  async fetchPage(page, keeps = false) {
    if (this.pages.has(page)) return;
    this.pages.set(page, "asked");
    const version = this.version;
    const url = new URL(this.getAttribute("src"), location.href);
    const asked = { from: iso(this.loadedFrom), to: iso(this.loadedTo), group: this.group, search: this.search, cursor: page * PAGE, limit: PAGE };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    try {
      const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" });
      if (version !== this.version) return;
      if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error_message || `the server answered ${answer.status}`);
      this.accept(page, (await answer.json()).timeline, keeps);
      if (!this.total) this.say("No host matches.");
      else if (this.hasTrouble) this.say("");  // what was said of a change stays
      this.hasTrouble = !this.total;
    } catch (error) {
      if (version !== this.version) return;
      this.pages.delete(page);
      this.hasTrouble = true;
      this.say(`The calendar could not be loaded: ${error.message}. It is tried again.`);
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.refresh(), 3000);
    }
  }

  accept(page, data, keeps) {
    if (keeps) this.rows.clear();
    this.pages.set(page, "there");
    this.total = data.total;
    this.groups = data.groups;
    data.rows.forEach((row, place) => this.rows.set(data.first + place, this.prepared(row)));
    if (this.pages.size > KEPT_PAGES) this.dropPage(page);
    this.arrange();
    this.redraw();
    this.dispatchEvent(new CustomEvent("timeline:painted", { bubbles: true }));
  }

  dropPage(page) {
    const [farthest] = [...this.pages.keys()].sort((one, two) => Math.abs(two - page) - Math.abs(one - page));
    this.pages.delete(farthest);
    for (let row = farthest * PAGE; row < (farthest + 1) * PAGE; row += 1) this.rows.delete(row);
  }

  prepared(row) {
    const spans = row.spans.map((span) => ({ ...span, from: moment(span.start), to: moment(span.end) }));
    spans.sort((one, two) => one.from - two.from || two.to - one.to);
    return { ...row, spans, lanes: lanes(spans) };
  }

  /** Items are headers of groups and rows of groups that are not folded, each with its offset from the top. */
  arrange() {
    const items = [];
    let row = 0;
    for (const { name, rows } of this.groups) {
      items.push({ group: name, count: rows });
      if (!this.folded.has(name)) for (let place = 0; place < rows; place += 1) items.push({ row: row + place });
      row += rows;
    }
    const offsets = new Float64Array(items.length + 1);
    items.forEach((item, place) => { offsets[place + 1] = offsets[place] + this.height(item); });
    this.items = items;
    this.offsets = offsets;
    this.body.style.setProperty("height", `${offsets[items.length]}px`);
    this.grid.setAttribute("aria-rowcount", String(items.length + 2));
  }

  height(item) {
    if (item.group !== undefined) return GROUP;
    const known = this.rows.get(item.row);
    return known && known.lanes > 1 ? known.lanes * LANE + 4 : ROW;
  }

  /** The item at a height in pixels. */
  itemAt(height) {
    let low = 0, high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.offsets[middle + 1] <= height) low = middle + 1; else high = middle;
    }
    return Math.min(low, Math.max(0, this.items.length - 1));
  }

  firstRow() {
    for (let place = this.itemAt(this.grid.scrollTop); place < this.items.length; place += 1) {
      if (this.items[place].row !== undefined) return this.items[place].row;
    }
    return 0;
  }

  // ---- drawing -----------------------------------------------------------------------------------------------

  redraw() {
    for (const drawn of this.drawn.values()) drawn.stale = true;
    this.drawHead();
    this.draw();
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.drawNow(); });
  }

  drawNow() {
    if (!this.items.length) { for (const one of this.drawn.values()) one.element.remove(); this.drawn.clear(); return; }
    const top = this.grid.scrollTop;
    const first = this.isPrinted ? 0 : Math.max(0, this.itemAt(top) - OVERSCAN);
    const last = this.isPrinted ? Math.min(this.items.length, PRINTED) - 1 : Math.min(this.items.length - 1, this.itemAt(top + this.grid.clientHeight) + OVERSCAN);
    const wanted = new Set();
    for (let place = first; place <= last; place += 1) {
      const item = this.items[place];
      const key = item.group !== undefined ? `g${item.group}` : item.row;
      wanted.add(key);
      this.place(key, item, place);
    }
    const focused = document.activeElement;
    for (const [key, one] of this.drawn) {
      if (!wanted.has(key) && !one.element.contains(focused)) { one.element.remove(); this.drawn.delete(key); }
    }
    this.fetchSeen(first, last);
    this.placeNow();
    if (this.wantsFocus) this.refocus();
    if (this.mark && !this.mark.isConnected) this.keepMark();
    // There is one tab stop, whatever has been scrolled away.
    if (!this.body.querySelector('button[tabindex="0"]')) {
      const stop = this.body.querySelector("button.lt-span, button");
      if (stop) stop.tabIndex = 0;
    }
  }

  /** Put the mark of what is chosen into its row again, which was drawn anew. */
  keepMark() {
    for (const { element, known } of this.drawn.values()) {
      if (known?.host_id === this.selection?.row.host_id) element.querySelector(".lt-track")?.append(this.mark);
    }
  }

  place(key, item, place) {
    let one = this.drawn.get(key);
    const known = item.row === undefined ? item : this.rows.get(item.row);
    if (!one || one.stale || one.known !== known) {
      const element = item.row === undefined ? this.groupElement(item) : this.rowElement(item, known);
      const keepsFocus = one && one.element.contains(document.activeElement);
      if (one) one.element.replaceWith(element); else this.body.append(element);
      one = { element, known, stale: false };
      this.drawn.set(key, one);
      if (keepsFocus) this.wantsFocus = true;
    }
    if (one.at !== place || one.top !== this.offsets[place]) {
      one.at = place;
      one.top = this.offsets[place];
      one.element.dataset.item = place;
      one.element.setAttribute("aria-rowindex", String(place + 3));
      one.element.style.setProperty("transform", `translateY(${one.top}px)`);
    }
  }

  fetchSeen(first, last) {
    const pages = new Set();
    for (let place = first; place <= last; place += 1) {
      const { row } = this.items[place];
      if (row !== undefined) pages.add(Math.floor(row / PAGE));
    }
    for (const page of pages) if (!this.pages.has(page)) this.fetchPage(page);
  }

  groupElement(item) {
    const element = make("div", "lt-row lt-group");
    element.setAttribute("role", "row");
    const cell = element.appendChild(make("div", "lt-groupname"));
    cell.setAttribute("role", "rowheader");
    const button = cell.appendChild(make("button", "lt-fold"));
    const isFolded = this.folded.has(item.group);
    button.type = "button";
    button.tabIndex = -1;
    button.setAttribute("aria-expanded", String(!isFolded));
    button.textContent = `${isFolded ? "▸" : "▾"} ${item.group || "(none)"} · ${item.count} ${item.count === 1 ? "host" : "hosts"}`;
    button.dataset.fold = item.group;
    return element;
  }

  rowElement(item, known) {
    const element = make("div", "lt-row");
    element.setAttribute("role", "row");
    const name = element.appendChild(make("div", "lt-name"));
    name.setAttribute("role", "rowheader");
    const track = element.appendChild(make("div", "lt-track"));
    track.setAttribute("role", "presentation");
    element.style.setProperty("height", `${this.height(item)}px`);
    if (!known) {
      name.textContent = "…";
      track.setAttribute("role", "gridcell");
      element.classList.add("lt-loading");
      return element;
    }
    const host = this.getAttribute("host");
    if (host) {
      const link = name.appendChild(make("a", "", known.name));
      link.href = host + encodeURIComponent(known.host_id);
      link.tabIndex = -1;
    } else name.textContent = known.name;
    name.title = known.name;
    const cells = this.cells(known);
    for (const cell of cells) track.append(this.cell(known, cell));
    return element;
  }

  /** Spans and gaps of a row that are seen, by time. */
  cells(row) {
    const seen = row.spans.filter((span) => span.to > this.from && span.from < this.to);
    const free = gaps(row.spans, this.from, this.to);
    return [...seen, ...free].sort((one, two) => one.from - two.from || (one.lane ?? 0) - (two.lane ?? 0));
  }

  cell(row, span) {
    const holder = make("div", "lt-cell");
    holder.setAttribute("role", "gridcell");
    const button = holder.appendChild(make("button", `lt-span lt-${span.kind}`));
    button.type = "button";
    button.tabIndex = -1;
    const [from, to] = [Math.max(span.from, this.from), Math.min(span.to, this.to)];
    holder.style.setProperty("left", `${(from - this.from) / this.span * 100}%`);
    holder.style.setProperty("width", `${(to - from) / this.span * 100}%`);
    if (row.lanes > 1 && span.kind !== "free") {
      const whole = span.kind !== "busy" && !span.slots && span.kind !== "lease";
      holder.style.setProperty("top", `${2 + (whole ? 0 : span.lane) * LANE}px`);
      holder.style.setProperty("height", `${LANE - 2}px`);
    }
    const words = this.words(row, span);
    button.setAttribute("aria-label", words);
    if (span.kind === "free") { button.classList.add("lt-gap"); } else {
      button.append(make("span", "lt-text", this.title(span)));
      button.title = words;
      if (this.isMine(span) && span.to <= this.to) button.append(make("span", "lt-edge"));
      if (this.isUnbegun(span) && span.from >= this.from) button.append(make("span", "lt-edge lt-start"));
      if (span.from < this.from) button.classList.add("lt-before");
      if (span.to > this.to) button.classList.add("lt-after");
    }
    button.span = span;
    button.row = row;
    return holder;
  }

  title(span) {
    if (span.kind === "lease") return span.lease_name + (span.slots ? ` · ${span.slots}×` : "");
    if (span.kind === "maintenance" && span.reason) return `maintenance: ${span.reason}`;
    return WORDS[span.kind] ?? span.kind;
  }

  words(row, span) {
    const time = `${this.clockTime(span.from)} to ${this.clockTime(span.to)}`;
    if (span.kind === "free") return `${row.name}: free, ${time}`;
    const status = span.status && span.kind === "lease" ? `, ${span.status.toLowerCase()}` : "";
    const about = span.kind === "lease" ? `lease ${span.lease_name}` : span.kind === "busy" ? "busy" : `${this.title(span)}${span.lease_name ? ` after ${span.lease_name}` : ""}`;
    return `${row.name}: ${about}${status}, ${time}`;
  }

  /** Whether the start of a lease can be changed, too. */
  isUnbegun(span) { return this.isMine(span) && span.from > Date.now(); }

  isMine(span) {
    return span.kind === "lease" && span.lease_id && this.hasAttribute("may-update") && !this.isKiosk
      && !["TERMINATED", "TERMINATING", "DELETING", "ERROR", "HELD"].includes(span.status);
  }

  drawHead() {
    const axis = this.axis.querySelector(".lt-track");
    axis.replaceChildren();
    const width = axis.clientWidth || 1;
    let unit = TICKS.find(([hours]) => hours === this.hours)[1];
    while (unit / this.span * width < NARROWEST_TICK) unit *= 2;
    const options = unit < DAY ? { hour: "2-digit", minute: "2-digit" } : { weekday: "short", day: "numeric", month: "short" };
    for (let at = this.floor(this.from, unit); at < this.to;) {
      if (at >= this.from) {
        const isDay = unit < DAY && this.floor(at, DAY) === at;
        const text = isDay ? this.formatter({ weekday: "short", day: "numeric", month: "short" }).format(at) : this.formatter(options).format(at);
        const tick = axis.appendChild(make("span", isDay ? "lt-tick lt-day" : "lt-tick", text));
        tick.style.setProperty("left", `${(at - this.from) / this.span * 100}%`);
      }
      const next = this.floor(at + unit + (unit >= DAY ? 2 * HOUR : 0), unit);  // days of 23 and 25 hours
      at = next > at ? next : at + unit;
    }
    axis.setAttribute("aria-label", `${this.clockTime(this.from)} to ${this.clockTime(this.to)}, ${this.zone}`);
    this.grid.style.setProperty("--lt-step", `${unit / this.span * width}px`);
    this.grid.style.setProperty("--lt-shift", `${(this.floor(this.from, unit) - this.from) / this.span * width}px`);
    this.drawStrip();
  }

  drawStrip() {
    const track = this.strip.querySelector(".lt-track");
    track.replaceChildren();
    if (!this.free) return;
    const points = this.free.points.map((point) => ({ at: moment(point.time), free: point.free }));
    const parts = this.parts(points);
    let least = Infinity;
    for (const { from, to, free } of parts) {
      least = Math.min(least, free);
      const part = track.appendChild(make("span", "lt-count"));
      part.style.setProperty("left", `${(from - this.from) / this.span * 100}%`);
      part.style.setProperty("width", `${(to - from) / this.span * 100}%`);
      const fill = part.appendChild(make("span", "lt-fill"));
      fill.style.setProperty("height", `${this.free.hosts ? free / this.free.hosts * 100 : 0}%`);
      if ((to - from) / this.span > 0.022) part.append(make("span", "lt-number", String(free)));
    }
    track.setAttribute("aria-label", parts.length ? `${this.free.hosts} hosts in all, ${least} free at the least in this time` : "not known");
  }

  /** The free count in at most 90 parts of the shown time, the least of each. */
  parts(points) {
    const shown = points.map((point, place) => ({
      from: Math.max(point.at, this.from), to: Math.min(points[place + 1]?.at ?? this.to, this.to), free: point.free,
    })).filter((part) => part.to > part.from);
    if (shown.length <= 90) return shown;
    const size = this.span / 90, parts = [];
    for (const part of shown) {
      const place = Math.min(89, Math.floor((part.from - this.from) / size));
      const end = Math.min(89, Math.floor((part.to - 1 - this.from) / size));
      for (let at = place; at <= end; at += 1) parts[at] = Math.min(parts[at] ?? Infinity, part.free);
    }
    return parts.map((free, place) => ({ from: this.from + place * size, to: this.from + (place + 1) * size, free }));
  }

  /** Print the first rows, also those that were not seen yet. */
  async print() {
    const rows = this.items.slice(0, PRINTED).map((item) => item.row).filter((row) => row !== undefined);
    await Promise.all([...new Set(rows.map((row) => Math.floor(row / PAGE)))].map((page) => this.fetchPage(page)));
    window.print();
  }

  placeNow() {
    const share = (Date.now() - this.from) / this.span;
    this.now.hidden = share < 0 || share > 1;
    this.now.style.setProperty("--lt-now", String(share));
  }

  tick() {
    if (this.isKiosk && Date.now() > this.from + this.span / 3) { this.from = this.floor(Date.now() - this.span / 6, HOUR); this.show(); return; }
    this.placeNow();
  }

  turnPage() {
    const { scrollTop, clientHeight, scrollHeight } = this.grid;
    const head = this.grid.querySelector(".lt-head").offsetHeight;
    this.grid.scrollTop = scrollTop + clientHeight >= scrollHeight - 1 ? 0 : scrollTop + clientHeight - head - ROW;
  }

  say(words) { if (this.status.textContent !== words) this.status.textContent = words; }

  // ---- keyboard ----------------------------------------------------------------------------------------------

  buttons(place) {
    const item = this.items[place];
    const one = item && this.drawn.get(item.group !== undefined ? `g${item.group}` : item.row);
    return one ? [...one.element.querySelectorAll("button")] : [];
  }

  follow(event) {
    const button = event.target.closest("button");
    const row = event.target.closest(".lt-row");
    if (!button || !row) return;
    const at = button.span ? (Math.max(button.span.from, this.from) + Math.min(button.span.to, this.to)) / 2 : this.focus.at;
    this.focus = { item: Number(row.dataset.item), at: this.stays ?? at, key: button.span?.id, start: button.span?.from };
    this.stays = undefined;
    for (const other of this.grid.querySelectorAll('button[tabindex="0"]')) other.tabIndex = -1;
    button.tabIndex = 0;
  }

  /** Focus what is at the time of the focus in its row, once that is drawn. */
  refocus() {
    const buttons = this.buttons(this.focus.item);
    if (!buttons.length) return;
    this.wantsFocus = false;
    const same = this.focus.key && buttons.find((button) => button.span?.id === this.focus.key);
    const there = same || buttons.find((button) => button.span && button.span.from <= this.focus.at && button.span.to > this.focus.at) || buttons[0];
    this.stays = this.focus.at;
    there.focus({ preventScroll: true });
  }

  goTo(place, at = this.focus.at) {
    const item = Math.max(0, Math.min(this.items.length - 1, place));
    this.focus = { item, at };
    const head = this.grid.querySelector(".lt-head").offsetHeight;
    const [top, bottom] = [this.offsets[item], this.offsets[item + 1]];
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (bottom > this.grid.scrollTop + this.grid.clientHeight - head) this.grid.scrollTop = bottom - this.grid.clientHeight + head;
    this.wantsFocus = true;
    this.drawNow();
  }

  key(event) {
    const button = event.target.closest("button");
    if (event.key === "Tab" || !button) return;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    if (event.key in moves) {
      this.goTo(this.focus.item + moves[event.key]);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const direction = event.key === "ArrowRight" ? 1 : -1;
      if (event.shiftKey) this.nudge(button, direction, event.ctrlKey); else this.step(button, direction);
    } else if (event.key === "Home" || event.key === "End") {
      if (event.ctrlKey) this.goTo(event.key === "Home" ? 0 : this.items.length - 1);
      else this.buttons(this.focus.item).at(event.key === "Home" ? 0 : -1)?.focus();
    } else if (event.key === "Escape") {
      this.cancel();
    } else if (event.key === "Enter" && this.selection) {
      this.finish();
    } else if (event.key === "+" || event.key === "-") {
      const place = ZOOMS.findIndex(([hours]) => hours === this.hours) + (event.key === "-" ? 1 : -1);
      if (ZOOMS[place]) this.setZoom(ZOOMS[place][0]);
      this.wantsFocus = true;
    } else return;
    event.preventDefault();
  }

  step(button, direction) {
    if (this.selection) this.cancel();
    const buttons = this.buttons(this.focus.item);
    const next = buttons[buttons.indexOf(button) + direction];
    if (next) { next.focus(); return; }
    if (button.dataset.fold !== undefined) return;
    this.focus.at = direction > 0 ? this.to + 1 : this.from - 1;
    const at = this.focus.at;
    this.move(direction * this.span / 2);
    this.goTo(this.focus.item, at);
  }

  /** Move the end of what is chosen by a step, or its start. */
  nudge(button, direction, movesStart) {
    const { span, row } = button;
    if (!span) return;
    if (movesStart && !this.isUnbegun(span)) {
      this.say(span.kind === "free" ? "" : `${this.words(row, span)}: its start cannot be changed here.`);
      return;
    }
    if (!this.selection) {
      if (span.kind === "free" && this.mayCreate()) {
        const start = this.snapped(Math.max(span.from, Date.now() + this.snap / 2, this.from));
        this.select({ row, span, button, from: Math.min(start, span.to), to: Math.min(start, span.to) });
      } else if (this.isMine(span)) this.select({ row, span, button, from: span.from, to: span.to });
      else { this.say(`${this.words(row, span)}: this cannot be changed here.`); return; }
    }
    const chosen = this.selection;
    if (movesStart) { this.select({ ...chosen, from: this.startAt(chosen.from + direction * this.snap, chosen.to) }); return; }
    const limit = span.kind === "free" ? span.to : Infinity;
    this.select({ ...chosen, to: Math.min(limit, Math.max(chosen.from + this.snap, this.snapped(chosen.to + direction * this.snap))) });
  }

  /** The start of a lease that is nearest to a time: still to come, and before its end. */
  startAt(at, end) { return Math.min(Math.max(this.snapped(at), this.snapped(Date.now() + this.snap / 2)), end - this.snap); }

  mayCreate() { return this.hasAttribute("may-create") && !this.isKiosk; }

  // ---- pointer -----------------------------------------------------------------------------------------------

  timeAt(clientX) {
    const box = this.axis.querySelector(".lt-track").getBoundingClientRect();
    return this.from + (clientX - box.left) / box.width * this.span;
  }

  press(event) {
    const button = event.target.closest("button.lt-span");
    if (!button || event.button !== 0 || this.isKiosk) return;
    const { span, row } = button;
    const isEdge = event.target.classList.contains("lt-edge"), isStart = event.target.classList.contains("lt-start");
    if (!isEdge && !(span.kind === "free" && this.mayCreate())) return;
    const begin = isEdge ? span.from : this.snapped(this.timeAt(event.clientX));
    const begun = event.clientX;
    this.drag = { isEdge, moved: false };
    const move = (moved) => {
      if (Math.abs(moved.clientX - begun) > 4) this.drag.moved = true;
      if (!this.drag.moved) return;
      const at = this.snapped(this.timeAt(moved.clientX));
      if (isStart) { this.select({ row, span, button, from: this.startAt(at, span.to), to: span.to }); return; }
      if (isEdge) { this.select({ row, span, button, from: span.from, to: Math.max(span.from + this.snap, at) }); return; }
      const [from, to] = at < begin ? [at, begin] : [begin, at];
      const earliest = Math.max(span.from, this.snapped(Date.now() + this.snap / 2));
      this.select({ row, span, button, from: Math.max(from, Math.min(earliest, span.to)), to: Math.min(to, span.to) });
    };
    const end = (ended) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      const { moved } = this.drag;
      this.drag = undefined;
      if (ended.type === "pointercancel") { this.cancel(); return; }
      if (moved && this.selection) { this.suppress = true; setTimeout(() => { this.suppress = false; }); this.finish(); }
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
    if (isEdge) event.preventDefault();
  }

  click(event) {
    const button = event.target.closest("button");
    if (!button || this.suppress) return;
    if (button.dataset.fold !== undefined) {
      const name = button.dataset.fold;
      if (!this.folded.delete(name)) this.folded.add(name);
      this.arrange();
      this.wantsFocus = true;
      this.redraw();
      return;
    }
    const { span, row } = button;
    if (!span || this.isKiosk) return;
    if (span.kind === "free") {
      if (!this.mayCreate()) return;
      const start = Math.max(span.from, this.snapped(Date.now() + this.snap / 2));
      this.open(row, start, Math.min(span.to, start + this.span / 7));
    } else if (span.lease_id) location.assign(this.getAttribute("lease") + span.lease_id);
    else this.say(this.words(row, span));
  }

  // ---- what is chosen ----------------------------------------------------------------------------------------

  select(chosen) {
    this.selection = chosen;
    if (!this.mark) this.mark = make("div", "lt-mark");
    const row = chosen.button.closest(".lt-row");
    row?.querySelector(".lt-track").append(this.mark);
    if (!this.mark.isConnected) this.keepMark();  // its row was drawn anew meanwhile
    this.mark.style.setProperty("left", `${(Math.max(chosen.from, this.from) - this.from) / this.span * 100}%`);
    this.mark.style.setProperty("width", `${Math.max(0, Math.min(chosen.to, this.to) - Math.max(chosen.from, this.from)) / this.span * 100}%`);
    const time = `${this.clockTime(chosen.from)} to ${this.clockTime(chosen.to)}`;
    if (chosen.span.kind === "free") { this.say(`New lease on ${chosen.row.name}: ${time}. Enter opens the form.`); return; }
    this.say(`${chosen.span.lease_name}: ${time} …`);
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.ask(chosen), DRY_RUN_PAUSE);
  }

  /** The times that are changed, in words. */
  changeOf({ span, from, to }) {
    return [from === span.from ? "" : `from ${this.clockTime(from)}`, to === span.to && from !== span.from ? "" : `until ${this.clockTime(to)}`].filter(Boolean);
  }

  /** Ask whether the new times would fit, and say so; nothing is changed. */
  async ask(chosen) {
    const answer = await this.send(chosen, true);
    if (this.selection !== chosen) return answer;
    this.mark.classList.toggle("lt-clash", !answer.fits);
    this.mark.dataset.words = answer.fits ? "fits" : "clashes";
    this.say(`${chosen.span.lease_name} ${this.changeOf(chosen).join(" ")}: ${answer.message}${answer.fits ? ". Enter applies, Escape cancels." : ""}`);
    return answer;
  }

  async send(chosen, dryRun) {
    const { span, from, to } = chosen;
    const url = `${this.getAttribute("change")}${span.lease_id}/times`;
    const times = { ...(from === span.from ? {} : { start: iso(from) }), ...(to === span.to && from !== span.from ? {} : { end: iso(to) }) };
    const body = new URLSearchParams({ ...times, ...(dryRun ? { dry_run: "1" } : {}) });
    try {
      const answer = await fetch(url, { method: "POST", body, credentials: "same-origin", headers: { "X-CSRF-Token": this.getAttribute("csrf"), Accept: "application/json" } });
      const told = await answer.json();
      return "fits" in told ? told : { fits: false, message: told.error_message || `refused with ${answer.status}` };
    } catch (error) {
      return { fits: false, message: `could not be asked: ${error.message}` };
    }
  }

  async finish() {
    const chosen = this.selection;
    clearTimeout(this.asking);
    if (chosen.span.kind === "free") {
      if (chosen.to > chosen.from) this.open(chosen.row, chosen.from, chosen.to); else this.cancel();
      return;
    }
    const answer = await this.ask(chosen);
    if (this.selection !== chosen || !answer.fits) return;
    this.offer(chosen, answer);
  }

  /** Ask before the times of a lease are changed. */
  offer(chosen, answer) {
    const { span, from, to } = chosen;
    const what = from !== span.from ? `Change ${span.lease_name}: ${this.changeOf(chosen).join(" ")}`
      : `${to > span.to ? "Prolong" : "Shorten"} ${span.lease_name} to ${this.clockTime(to)}`;
    const words = `${what}? ${answer.message}.`;
    const apply = make("button", "primary", "Apply"), keep = make("button", "", "Cancel");
    apply.type = keep.type = "button";
    const close = () => { this.cancel(); this.wantsFocus = true; this.draw(); };
    keep.addEventListener("click", close);
    apply.addEventListener("click", async () => {
      apply.disabled = true;
      const done = await this.send(chosen, false);
      close();
      const result = [from === span.from ? "" : `starts ${this.clockTime(from)}`, to === span.to ? "" : `ends ${this.clockTime(to)}`].filter(Boolean);
      this.say(done.fits ? `${span.lease_name} now ${result.join(" and ")}.` : `Not changed: ${done.message}`);
      this.refresh();
    });
    this.confirm.onkeydown = (event) => { if (event.key === "Escape") close(); };
    this.confirm.setAttribute("role", "group");
    this.confirm.setAttribute("aria-label", "Change of a lease");
    this.confirm.replaceChildren(make("p", "", words), apply, keep);
    this.confirm.hidden = false;
    apply.focus();
  }

  cancel() {
    clearTimeout(this.asking);
    this.selection = undefined;
    this.mark?.remove();
    this.mark = undefined;
    this.confirm.hidden = true;
    this.confirm.replaceChildren();
    this.say("");
  }

  open(row, from, to) {
    const url = new URL(this.getAttribute("form"), location.href);
    const known = { hosts: "1", length: lengthOf(to - from), earliest: iso(from), latest: iso(to) };
    if (/^[^\s"<>=!]+$/.test(row.name)) known.requirements = `hypervisor_hostname==${row.name}`;  // else it is hidden
    for (const [name, value] of Object.entries(known)) url.searchParams.set(name, value);
    location.assign(url);
  }
}

customElements.define("lease-timeline", LeaseTimeline);
