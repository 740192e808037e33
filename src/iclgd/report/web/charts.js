"use strict";
/* Dots with intervals and lines with bands, drawn with Observable Plot. */
(() => {
  const { el, save } = iclgd;
  const LABELS = 120, LETTER = 6.8; // room for names beside the dots; where there is too little they stand above them
  const NARROW = 560, BESIDE = 480, LEAST = 430; // of panels of lines, of dots two of which stand side by side, of dots with names
  const DOTS = [null, "1 2.5", "9 2", "9 2 1 2", "3 1"];
  const DASHES = ["4 3", "1.5 2.5", "8 3 2 3"];
  const BANDS = 3; // lines that can have bands and still be told apart

  const colours = new Map(); // by name, the same in every chart of the page; places come with the data
  const colour = (name) => `var(--s${colours.get(name) ?? 0})`;
  function learned(slots) {
    for (const [name, place] of Object.entries(slots)) if (!colours.has(name)) colours.set(name, place);
  }

  const unique = (rows, name) => [...new Set(rows.map((row) => row.label(name)))];
  const finite = (numbers) => [...numbers].filter((number) => !Number.isNaN(number));

  function extent(rows, log = false) {
    const all = rows.flatMap((row) => [...finite(row.values), ...finite(row.low), ...finite(row.high)]);
    const above = all.filter((value) => value > 0);
    if (log && above.length) return [Math.min(...above) / 1.15, Math.max(...above) * 1.15];
    const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
    const air = 0.04 * (high - low || 1);
    return [low < 0 ? low - air : 0, high + air];
  }

  function plot(given) {
    const made = Plot.plot({ className: "plot", style: { fontFamily: "inherit" }, ...given });
    for (const part of made.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label"); // "rule", "dot": no news
    return made;
  }

  function dotPanel(rows, domain, width, title, colourName, said, axis = "", log = false) {
    const names = rows.map((row) => row.label("name") || row.label("role"));
    const labels = Math.max(LABELS, 16 + LETTER * Math.max(...names.map((name) => name.length)));
    const narrow = width < LEAST || labels > 0.55 * width, step = narrow ? 38 : 25;
    const marks = rows.map((row, i) => ({ i, own: row.label("role") === "own", value: row.values[0], low: log ? Math.max(row.low[0], domain[0]) : row.low[0], high: row.high[0] })); // zero has no logarithm
    const first = marks.find((mark) => mark.own), paint = (mark) => (mark.own ? colourName(rows[mark.i]) : "var(--none)");
    const alone = marks.filter((mark) => mark.own).length === 1 && first && !Number.isNaN(first.low);
    const dy = narrow ? 9 : 0;
    const svg = plot({
      width, height: step * rows.length + (axis ? 46 : 34), marginLeft: narrow ? 6 : labels, marginRight: 16, marginTop: 4, marginBottom: axis ? 42 : 30,
      x: { domain, label: null, type: log ? "log" : "linear" }, y: { domain: marks.map((mark) => mark.i), axis: null, type: "point", padding: 0.5 },
      ariaLabel: `${title}: ${rows.map((row, i) => `${names[i]} ${iclgd.interval(row.values[0], row.low[0], row.high[0])}`).join("; ")}`,
      marks: [
        alone ? Plot.rect([first], { x1: "low", x2: "high", fill: paint(first), fillOpacity: 0.1 }) : null,
        log ? null : Plot.ruleX([0], { stroke: "var(--soft)", strokeOpacity: 0.6 }),
        Plot.ruleY(marks.filter((mark) => !Number.isNaN(mark.low)), { y: "i", x1: "low", x2: "high", stroke: paint, strokeWidth: (mark) => (mark.own ? 2.5 : 1.5), dy }),
        Plot.dot(marks.filter((mark) => (log ? mark.value > 0 : !Number.isNaN(mark.value))), { y: "i", x: "value", r: 4.5, stroke: paint, strokeWidth: 1.8, fill: (mark) => (mark.own ? paint(mark) : "var(--paper)"), dy }),
        Plot.text(marks, { y: "i", text: (mark) => names[mark.i], frameAnchor: "left", textAnchor: narrow ? "start" : "end", dx: narrow ? 0 : -10, dy: narrow ? -8 : 0, fill: (mark) => (mark.own ? "var(--ink)" : "var(--soft)"), fontWeight: (mark) => (mark.own ? 600 : 400), stroke: "var(--paper)", strokeWidth: 4 }),
        Plot.axisX({ label: axis || null, labelArrow: "none", color: "var(--soft)", ...(log ? { ticks: logTicks(domain), tickFormat: (v) => iclgd.brief(v) } : { ticks: Math.max(3, Math.round(width / 140)) }) }),
      ],
      color: { type: "identity" },
    });
    const [x, y] = [svg, svg].map((_, i) => svgScale(svg, i ? "y" : "x"));
    iclgd.pointed(svg, marks.map((mark) => [{ x: x(mark.value), y: y(mark.i) + dy, text: `${names[mark.i]}\n${iclgd.interval(mark.value, rows[mark.i].low[0], mark.high)}` }]), said);
    return svg;
  }

  function svgScale(svg, name) {
    const found = svg.scale(name);
    return (value) => found.apply(value) + (found.bandwidth ?? 0) / 2;
  }

  /* Nulls are dashed; of lines that share a colour, such as the rates or nulls of a learner, each has its own dashes. */
  function dash(row, rows, data) {
    const none = (one) => one.label(data.own) === "null", patterns = none(row) ? DASHES : DOTS;
    const same = rows.filter((other) => none(other) === none(row) && colour(other.label(data.colour)) === colour(row.label(data.colour)));
    return patterns[unique(same, data.name).indexOf(row.label(data.name)) % patterns.length];
  }

  /* About five places on an axis; of whole numbers only whole ones. */
  function ticks(points, across, log) {
    const found = log ? logTicks(across) : d3.ticks(points[0], points.at(-1), 5);
    return points.every(Number.isInteger) ? found.filter(Number.isInteger) : found;
  }

  /* Of a logarithmic axis powers of ten, every so many; within one or two of them round numbers. */
  function logTicks([low, high]) {
    const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
    if (to - from < 1) return d3.ticks(low, high, 3).filter((tick) => tick > 0);
    return d3.range(from, to + 1, Math.ceil((to - from + 1) / 5)).map((power) => 10 ** power);
  }

  function linePanel(rows, data, domain, width, title, said) {
    const log = data.log?.includes(title), known = (value) => (log && value <= 0 ? NaN : value); // zero has no logarithm
    const every = rows.map((row) => data.points.map((x, i) => ({ x, y: known(row.values[i]), low: known(row.low[i]), high: known(row.high[i]) })));
    const marks = data.apart ? every.map((line) => line.filter((p) => !Number.isNaN(p.y))) : every;
    const points = data.apart ? data.points.filter((x) => marks.some((line) => line.some((p) => p.x === x))) : data.points;
    const across = data.apart ? [points[0] / 1.15, points.at(-1) * 1.15] : [points[0], points.at(-1)];
    const own = (row) => row.label(data.own) !== "null", banded = rows.filter(own).length <= BANDS;
    const layer = Number(iclgd.chosen.get("layer"));
    const svg = plot({
      width, height: 198, marginLeft: 40, marginRight: 16, marginTop: 8, marginBottom: 38,
      x: { domain: across, label: null, type: data.apart ? "log" : "linear" }, y: { domain, label: null, type: log ? "log" : "linear" },
      ariaLabel: `${title}: lines over ${data.x}, ${rows.map((row) => row.label(data.name)).join(", ")}`,
      marks: [
        log ? null : Plot.ruleY([0], { stroke: "var(--soft)", strokeOpacity: 0.6 }),
        iclgd.chosen.has("layer") && data.x === "layer" ? Plot.ruleX([layer], { stroke: "var(--soft)", strokeDasharray: "2 3" }) : null,
        ...rows.flatMap((row, i) => [
          own(row) && banded ? Plot.areaY(marks[i].filter((p) => !Number.isNaN(p.low)), { x: "x", y1: "low", y2: "high", fill: colour(row.label(data.colour)), fillOpacity: 0.16 }) : null,
          Plot.lineY(marks[i], { x: "x", y: "y", stroke: colour(row.label(data.colour)), strokeWidth: own(row) ? 2 : 1.3, strokeDasharray: dash(row, rows, data) }),
          data.apart && own(row) ? Plot.dot(marks[i], { x: "x", y: "y", r: 2.6, fill: colour(row.label(data.colour)) }) : null,
        ]),
        Plot.axisX({ label: data.x, labelArrow: "none", labelAnchor: "right", color: "var(--soft)", ticks: ticks(points, across, data.apart), tickFormat: (v) => (data.apart ? iclgd.brief(v) : String(v)) }),
        Plot.axisY({ label: null, color: "var(--soft)", ticks: log ? logTicks(domain) : 4, ...(log ? { tickFormat: (v) => iclgd.brief(v) } : {}) }),
      ],
    });
    const [x, y] = [svgScale(svg, "x"), svgScale(svg, "y")];
    const lines = rows.map((row, i) => marks[i].map((p) => ({ x: x(p.x), y: y(p.y), at: p.x, text: `${row.label(data.name)}\n${data.x} ${p.x}: ${iclgd.interval(p.y, p.low, p.high)}` })));
    iclgd.pointed(svg, lines, said);
    if (data.x === "layer") svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * width;
      iclgd.choose("layer", points.reduce((best, p) => (Math.abs(x(p) - at) < Math.abs(x(best) - at) ? p : best)));
    });
    return svg;
  }

  function legend(rows, data) {
    const seen = new Map(rows.map((row) => [row.label(data.name), row]));
    if (seen.size < 2) return null;
    const swatch = (row) => {
      const svg = plot({ width: 22, height: 10, margin: 1, axis: null, x: { domain: [0, 1] }, y: { domain: [0, 1] }, marks: [Plot.line([[0, 0.5], [1, 0.5]], { stroke: colour(row.label(data.colour)), strokeWidth: 2.5, strokeDasharray: dash(row, rows, data) })] });
      svg.setAttribute("aria-hidden", "true");
      svg.classList.add("swatch");
      return svg;
    };
    return el("ul", { class: "legend" }, ...[...seen].map(([name, row]) => el("li", {}, swatch(row), name)));
  }

  /* All drawings of a widget as one, where they stand on the page. */
  function joined(host) {
    const SVG = "http://www.w3.org/2000/svg", outer = document.createElementNS(SVG, "svg"), box = host.getBoundingClientRect();
    for (const one of host.querySelectorAll(".title, svg.plot, li")) {
      const own = one.getBoundingClientRect(), at = { x: own.left - box.left, y: own.top - box.top };
      const copy = one.tagName === "svg" ? one.cloneNode(true) : document.createElementNS(SVG, "text");
      if (one.tagName === "svg") copy.querySelectorAll("style").forEach((style) => style.remove());
      else {
        copy.textContent = [...one.childNodes].filter((part) => part.nodeName !== "svg").map((part) => part.textContent).join(""); // a swatch has a style sheet in it
        at.x += one.tagName === "LI" ? 28 : 0;
        at.y += 14;
        copy.setAttribute("fill", "var(--ink)");
        if (one.tagName === "DIV") copy.setAttribute("font-weight", 600);
      }
      for (const [name, value] of Object.entries(at)) copy.setAttribute(name, value);
      outer.append(copy);
    }
    outer.setAttribute("viewBox", `0 0 ${Math.ceil(box.width)} ${Math.ceil(box.height)}`);
    outer.setAttribute("font-family", "system-ui, sans-serif");
    return outer;
  }

  function numbers(host, data, rows) {
    const names = Object.keys(data.names).filter((name) => name !== data.own && rows.some((row) => row.label(name)));
    const header = [...names, ...(data.points.length ? [data.x] : []), "mean"];
    const points = data.points.length ? data.points : [null];
    const there = (row, i) => !data.apart || !Number.isNaN(row.values[i]);
    const body = rows.flatMap((row) => points.map((point, i) => !there(row, i) ? null : [
      ...names.map((name) => ({ text: row.label(name) })), ...(point === null ? [] : [{ text: String(point) }]),
      { text: iclgd.interval(row.values[i], row.low[i], row.high[i]), value: row.values[i], low: row.low[i], high: row.high[i] },
    ]).filter(Boolean));
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...header.map((name) => iclgd.head(name)))),
      el("tbody", {}, ...body.map((row) => el("tr", {}, ...row.map((cell) => el("td", { text: cell.text }))))));
    host.replaceChildren(save.tableBar("numbers", () => [header, body]), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the chart" }, table));
  }

  /* A chart in its place: selectors, legend, panels, and what can be taken away. */
  function chart(host, data, draw) {
    learned(data.slots);
    const series = iclgd.series(data), view = el("div", { class: "drawn" }), said = el("p", { class: "away", "aria-live": "polite" });
    const name = host.closest("section")?.id ?? "picture";
    const inside = el("div"), below = el("details", { class: "printed" }, el("summary", { text: "Numbers" }), inside);
    const fill = () => below.open && numbers(inside, data, series.shown());
    below.addEventListener("toggle", fill);
    host.append(el("div", { class: "bar" }, ...series.bar(), save.figureBar(name, () => joined(view))), view, said, below);
    let width = 0;
    const redraw = () => {
      const rows = series.shown();
      width = view.clientWidth;
      if (width < 60) return; // not laid out yet: the observer below calls again
      if (rows.length) view.replaceChildren(...draw(rows, width, said).filter(Boolean));
      else view.replaceChildren(el("p", { class: "none", text: "There are no numbers for this choice." }));
      fill();
    };
    redraw();
    iclgd.heard.push((what) => (what === "" || series.choices.has(what) || what === "layer") && redraw());
    new ResizeObserver(() => Math.abs(view.clientWidth - width) > 8 && redraw()).observe(view);
  }

  Object.assign(iclgd, { chart, linePanel, dotPanel, extent, legend, plot, colour, learned });

  iclgd.widget("dots", (host, data) => chart(host, data, (rows, room, said) => {
    const panels = unique(rows, data.panel), log = panels.some((panel) => data.log.includes(panel)), domain = extent(rows, log), one = panels.length === 1; // one scale for all
    const width = one ? Math.min(room, 760) : room >= 2 * BESIDE + 24 ? (room - 24) / 2 : room;
    const colourName = (row) => (row.label(data.colour) ? colour(row.label(data.colour)) : "var(--mark)");
    const drawn = panels.map((panel) => {
      const inside = rows.filter((row) => row.label(data.panel) === panel);
      return el("div", {}, panel ? el("div", { class: "title", text: panel }) : null, dotPanel(inside, domain, width, panel, colourName, said, data.x, log));
    });
    return [el("div", { class: one ? "" : "pairs" }, ...drawn)];
  }));

  iclgd.widget("lines", (host, data) => {
    chart(host, data, (rows, room, said) => {
      const panels = unique(rows, data.panel), wide = room >= 960 ? 3 : room >= NARROW ? 2 : 1;
      const columns = Math.min(wide, panels.length), width = Math.min(panels.length === 1 ? 760 : 440, (room - 24 * (columns - 1)) / columns);
      const drawn = panels.map((panel) => {
        const inside = rows.filter((row) => row.label(data.panel) === panel);
        return el("div", {}, panel ? el("div", { class: "title", text: panel }) : null, linePanel(inside, data, extent(inside, data.log?.includes(panel)), width, panel, said));
      });
      return [legend(rows, data), el("div", { class: panels.length === 1 ? "" : "panels" }, ...drawn)];
    });
  });
})();
