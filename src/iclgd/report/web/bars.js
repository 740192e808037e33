"use strict";
/* Counts as bars of parts that stand side by side, one bar a row; a part that is pressed chooses what it stands for. */
(() => {
  const { el } = iclgd;
  const SVG = "http://www.w3.org/2000/svg", NARROW = 560, LETTER = 6.8, AIR = 1.5; // between two parts of a bar
  const unique = (rows, name) => [...new Set(rows.map((row) => row.label(name)))];

  function legend(parts) {
    const chip = (part) => {
      const svg = document.createElementNS(SVG, "svg"), box = document.createElementNS(SVG, "rect");
      for (const [name, value] of Object.entries({ class: "plot swatch", width: 14, height: 12, viewBox: "0 0 14 12", "aria-hidden": "true" })) svg.setAttribute(name, value);
      for (const [name, value] of Object.entries({ width: 14, height: 12, rx: 2, fill: iclgd.colour(part) })) box.setAttribute(name, value);
      svg.append(box);
      return svg;
    };
    return el("ul", { class: "legend" }, ...parts.map((part) => el("li", {}, chip(part), part)));
  }

  function bars(rows, data, room, said) {
    const names = unique(rows, data.name), longest = 16 + LETTER * Math.max(...names.map((name) => name.length));
    const narrow = room < NARROW || longest > room / 2, width = Math.min(room, 860), step = narrow ? 36 : 25;
    const ends = new Map(), marks = rows.map((row) => {
      const name = row.label(data.name), from = ends.get(name) ?? 0, to = from + row.values[0];
      ends.set(name, to);
      return { name, part: row.label(data.colour), count: row.values[0], from, to };
    });
    const most = Math.max(...ends.values()), left = narrow ? 6 : longest, dy = narrow ? 8 : 0;
    const svg = iclgd.plot({
      width, height: step * names.length + 46, marginLeft: left, marginRight: 30, marginTop: 4, marginBottom: 42,
      x: { domain: [0, most], label: null }, y: { domain: names, axis: null, type: "band", padding: narrow ? 0.62 : 0.28 }, color: { type: "identity" },
      ariaLabel: `${data.x}: ${names.map((name) => `${name} ${marks.filter((mark) => mark.name === name).map((mark) => `${mark.count} ${mark.part}`).join(", ")}`).join("; ")}`,
      marks: [
        Plot.barX(marks, { y: "name", x1: "from", x2: "to", fill: (mark) => iclgd.colour(mark.part), insetRight: AIR, dy }),
        Plot.text([...ends], { y: "0", x: "1", text: (end) => String(end[1]), textAnchor: "start", dx: 5, dy, fill: "var(--soft)" }),
        Plot.text(names, { y: (name) => name, text: (name) => name, frameAnchor: "left", textAnchor: narrow ? "start" : "end", dx: narrow ? 0 : -10, dy: narrow ? -9 : 0, fill: "var(--ink)" }),
        Plot.axisX({ label: data.x, labelArrow: "none", color: "var(--soft)", ticks: Math.min(most, Math.max(3, Math.round(width / 140))), tickFormat: (v) => (Number.isInteger(v) ? String(v) : "") }),
      ],
    });
    const [x, y] = [svg.scale("x"), svg.scale("y")], middle = (mark) => y.apply(mark.name) + y.bandwidth / 2 + dy;
    const lines = names.map((name) => marks.filter((mark) => mark.name === name).map((mark) => ({ x: x.apply((mark.from + mark.to) / 2), y: middle(mark), text: `${name}\n${mark.part}: ${mark.count}` })));
    iclgd.pointed(svg, lines, said);
    if (data.presses) svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect(), [at, row] = [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.width) * width];
      const mark = marks.find((one) => x.apply(one.from) <= at && at <= x.apply(one.to) && Math.abs(middle(one) - row) <= y.bandwidth / 2);
      if (!mark || !data.presses.names.includes(mark.name)) return;
      iclgd.choose(data.presses.name, mark.name);
      iclgd.choose(data.presses.part, mark.part);
    });
    return svg;
  }

  iclgd.widget("bars", (host, data) => iclgd.chart(host, data, (rows, room, said) => {
    const counted = rows.filter((row) => row.values[0] > 0), parts = data.names[data.colour].filter((part) => counted.some((row) => row.label(data.colour) === part));
    return [legend(parts), el("div", {}, bars(counted, data, room, said))];
  }));
})();
