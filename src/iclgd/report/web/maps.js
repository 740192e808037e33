"use strict";
/* Numbers by row and column as heat maps in small panels, each on a scale of its own: a series is a row. */
(() => {
  const { el, number, brief } = iclgd;
  const { shape } = iclgd.heat;
  const LEFT = 34, TOP = 4, BELOW = 52, RIGHT = 6;
  const FAINT = 0.1; // of the least on a logarithmic scale: it is there, unlike what is not known

  /* From what is shown of a panel: how strong a number's colour is, and what the strongest and faintest stand for. */
  function scale(values, log) {
    const known = values.filter((value) => (log ? value > 0 : !Number.isNaN(value))), sizes = known.map(Math.abs);
    const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
    if (!known.length) return { strength: () => 0, told: "no numbers" };
    const share = (value) => (high > low ? Math.log(value / low) / Math.log(high / low) : 1);
    if (log) return { strength: (value) => (value > 0 ? FAINT + (1 - FAINT) * share(value) : 0), told: `faintest ${brief(low)}, strongest ${brief(high)}` };
    const below = known.some((value) => value < 0) ? ", orange below zero" : "";
    return { strength: (value) => Math.abs(value) / (high || 1), told: `strongest ${number(high)}${below}` };
  }

  function text(x, y, said, anchor = "middle") {
    const made = shape("text", { x, y, "text-anchor": anchor, fill: "var(--soft)", "font-size": 11 });
    made.textContent = said;
    return made;
  }

  /* Every so many of them, so that their names do not run into each other. */
  const some = (names, size, room) => names.map((name, i) => [name, i]).filter(([, i]) => i % Math.ceil(room / size) === 0);

  function map(rows, data, width, title, said) {
    const above = [...rows].reverse(), columns = data.points, log = data.log.includes(title); // the first row is lowest
    const across = Math.min(34, (width - LEFT - RIGHT) / columns.length), down = Math.max(6, Math.min(22, 260 / rows.length));
    const height = TOP + down * rows.length, { strength, told } = scale(rows.flatMap((row) => [...row.values]), log);
    const svg = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height + BELOW}`, width, height: height + BELOW, "aria-label": `${title}: ${data.y} by ${data.x}, ${told}` });
    const at = (i, j) => [LEFT + j * across, TOP + i * down], end = LEFT + columns.length * across;
    for (const [i, row] of above.entries()) for (const [j, value] of row.values.entries()) {
      const [x, y] = at(i, j), opacity = Number.isNaN(value) ? 0 : strength(value);
      if (opacity) svg.append(shape("rect", { x, y, width: across, height: down, fill: value < 0 ? "var(--s1)" : "var(--s0)", "fill-opacity": opacity.toFixed(3) }));
    }
    svg.append(shape("rect", { x: LEFT, y: TOP, width: end - LEFT, height: height - TOP, fill: "none", stroke: "var(--line)" }));
    for (const [name, j] of some(columns, across, 26)) svg.append(text(at(0, j)[0] + across / 2, height + 14, name));
    for (const [row, i] of some(rows, down, 15)) svg.append(text(LEFT - 5, height - (i + 0.5) * down + 4, row.label(data.name), "end"));
    svg.append(text(LEFT, height + 31, `${data.x} across, ${data.y} upwards`, "start"), text(LEFT, height + 47, told, "start"));
    iclgd.pointed(svg, above.map((row, i) => columns.map((column, j) => {
      const [x, y] = at(i, j);
      return { x: x + across / 2, y: y + down / 2, text: `${title}\n${data.y} ${row.label(data.name)}, ${data.x} ${column}: ${number(row.values[j])}` };
    })), said);
    return svg;
  }

  iclgd.widget("maps", (host, data) => iclgd.chart(host, data, (rows, room, said) => {
    const panels = [...new Set(rows.map((row) => row.label(data.panel)))], wide = room >= 960 ? 3 : room >= 560 ? 2 : 1;
    const columns = Math.min(wide, panels.length), width = Math.min(440, (room - 24 * (columns - 1)) / columns);
    const drawn = panels.map((panel) => el("div", {}, el("div", { class: "title", text: panel }), map(rows.filter((row) => row.label(data.panel) === panel), data, width, panel, said)));
    return [el("div", { class: "panels" }, ...drawn)];
  }));
})();
