"use strict";
/* An episode whose demonstrations can be moved: gradient descent, ridge regression and attention layers answer anew. */
iclgd.widget("linear play", (host, data) => {
  const { el, number, choice } = iclgd, { layer, descent, ridge } = iclgd.regression, { cells, largest, shape } = iclgd.heat;
  iclgd.learned(data.slots);
  const x = data.x.map((row) => [...row]), y = [...data.y], size = x[0].length;
  const counted = [...Array(size).keys()].map((i) => String(i + 1)), strengths = ["0.1", "0.001", "0.01", "1", "10"];
  const axis = () => Number(choice("coordinate", counted)) - 1;
  const said = el("p", { class: "away", "aria-live": "polite" }), table = el("div"), place = el("div"), steps = el("div");
  const seeds = Object.keys(data.trained);
  let asked = 0.5 * Math.max(...data.x.flat().map(Math.abs));

  const learners = () => ({
    "one gradient step": (query) => descent(data.rate, x, y, query),
    [`ridge, λ = ${choice("strength", strengths)}`]: (query) => ridge(Number(choice("strength", strengths)), x, y, query),
    "constructed layer": (query) => layer(data.constructed, x, y, query),
    "trained layer": (query) => layer(data.trained[choice("seed", seeds)], x, y, query),
  });
  const names = Object.keys(data.slots); // in the order of the learners
  const along = (value) => counted.map((_, i) => (i === axis() ? value : data.query[i]));

  function reset() {
    data.x.forEach((row, i) => (x[i] = [...row]));
    data.y.forEach((value, i) => (y[i] = value));
    draw();
  }

  function drawn(width) {
    const height = 340, reach = Math.max(...data.x.flat().map(Math.abs), 0.5) * 1.4, tall = Math.max(0.5, ...data.y.map(Math.abs)) * 1.5;
    const across = d3.scaleLinear([-reach, reach], [36, width - 10]), up = d3.scaleLinear([-tall, tall], [height - 28, 8]);
    const svg = d3.create("svg").attr("class", "plot").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
    svg.append("g").attr("transform", `translate(0,${height - 28})`).attr("color", "var(--soft)").call(d3.axisBottom(across).ticks(5));
    svg.append("g").attr("transform", "translate(36,0)").attr("color", "var(--soft)").call(d3.axisLeft(up).ticks(5));
    svg.append("clipPath").attr("id", "linear-inside").append("rect").attr("x", 36).attr("y", 8).attr("width", width - 46).attr("height", height - 36);
    const inside = svg.append("g").attr("clip-path", "url(#linear-inside)");
    Object.values(learners()).forEach((answer, i) => inside.append("line").attr("stroke", iclgd.colour(names[i])).attr("stroke-width", i === 2 ? 5 : 2).attr("stroke-opacity", i === 2 ? 0.35 : 1)
      .attr("x1", across(-reach)).attr("x2", across(reach)).attr("y1", up(answer(along(-reach)))).attr("y2", up(answer(along(reach)))));
    svg.append("line").attr("stroke", "var(--ink)").attr("stroke-dasharray", "3 3").attr("x1", across(asked)).attr("x2", across(asked)).attr("y1", 8).attr("y2", height - 28);
    x.forEach((row, i) => handle(svg, `demonstration ${i + 1}`, across(row[axis()]), up(y[i]), (dx, dy) => {
      row[axis()] = clip(across.invert(across(row[axis()]) + dx), reach);
      y[i] = clip(up.invert(up(y[i]) + dy), tall);
      return `demonstration ${i + 1}: x ${number(row[axis()], 2)}, y ${number(y[i], 2)}`;
    }, "var(--paper)", i));
    handle(svg, "query", across(asked), height - 28, (dx) => `query: x ${number((asked = clip(across.invert(across(asked) + dx), reach)), 2)}`, "var(--ink)", "query");
    return svg.node();
  }

  const clip = (value, most) => Math.max(-most, Math.min(most, value));

  /* A point that is dragged with the mouse, or moved with arrow keys while it has the focus. */
  function handle(svg, name, cx, cy, move, fill, id) {
    const point = svg.append("circle").attr("cx", cx).attr("cy", cy).attr("r", 7).attr("fill", fill).attr("stroke", "var(--ink)").attr("stroke-width", 1.6)
      .attr("class", "handle").attr("data-id", id).attr("tabindex", 0).attr("role", "button").attr("aria-label", `${name}, moved by arrow keys`);
    const by = (dx, dy) => { said.textContent = move(dx, dy); draw(id); };
    point.on("keydown", (event) => {
      const step = { ArrowLeft: [-6, 0], ArrowRight: [6, 0], ArrowUp: [0, -6], ArrowDown: [0, 6] }[event.key];
      if (step) { event.preventDefault(); by(...step); }
    });
    point.on("pointerdown", (event) => {
      event.preventDefault();
      let [fromX, fromY] = [event.clientX, event.clientY];
      const follow = (moved) => { const [dx, dy] = [moved.clientX - fromX, moved.clientY - fromY]; [fromX, fromY] = [moved.clientX, moved.clientY]; by(dx, dy); };
      const stop = () => { removeEventListener("pointermove", follow); for (const end of ["pointerup", "pointercancel"]) removeEventListener(end, stop); };
      addEventListener("pointermove", follow);
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, stop);
    });
  }

  /* The step that each learner takes from zero: the weight it gives every coordinate of the query. */
  function weights(answer) {
    return counted.map((_, i) => answer(counted.map((_, j) => (i === j ? 1 : 0))));
  }

  function stepped() {
    const rows = Object.values(learners()).map(weights), called = Object.keys(learners()), most = largest(rows), [left, side] = [150, Math.min(34, 300 / size)];
    const width = left + side * size + 4, height = 22 + side * rows.length;
    const svg = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": `Steps: ${called.map((name, i) => `${name} ${rows[i].map((v) => number(v, 2)).join(" ")}`).join("; ")}` });
    svg.append(...cells(rows, most, side, [left, 20]));
    const text = (x, y, anchor, words) => { const made = shape("text", { x, y, "text-anchor": anchor, dy: "0.32em", fill: "var(--soft)" }); made.textContent = words; svg.append(made); };
    called.forEach((name, i) => text(left - 8, 20 + (i + 0.5) * side, "end", name));
    counted.forEach((name, j) => text(left + (j + 0.5) * side, 10, "middle", name));
    iclgd.pointed(svg, rows.map((row, i) => row.map((value, j) => ({ x: left + (j + 0.5) * side, y: 20 + (i + 0.5) * side, text: `${called[i]}\nweight of coordinate ${j + 1}: ${number(value)}` }))), said);
    return svg;
  }

  function draw(focused) {
    place.replaceChildren(drawn(Math.min(760, host.clientWidth || 360)));
    steps.replaceChildren(el("div", { class: "title", text: "The step of each: its weight for every coordinate" }), stepped());
    if (focused !== undefined) place.querySelector(`[data-id="${focused}"]`)?.focus();
    const rows = Object.entries(learners()).map(([name, answer], i) => {
      const swatch = el("span", { class: "chip" });
      swatch.style.backgroundColor = iclgd.colour(names[i]);
      return el("tr", {}, el("th", { scope: "row" }, swatch, name), el("td", { text: number(answer(along(asked))) }), el("td", { text: number(answer(along(1)) - answer(along(0))) }));
    });
    const header = ["", `answer at x = ${number(asked, 2)}`, "slope"];
    table.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...header.map((name) => iclgd.head(name)))), el("tbody", {}, ...rows)));
  }

  host.append(el("div", { class: "bar" }, ...(size > 1 ? [iclgd.selector("coordinate", "coordinate", counted)] : []), iclgd.selector("strength", "ridge λ", strengths),
    ...(seeds.length > 1 ? [iclgd.selector("seed", "trained seed", seeds)] : []), el("button", { type: "button", text: "as drawn", onclick: reset })), place, table, steps, said);
  iclgd.heard.push(() => draw());
  draw();
});
