"use strict";
/* An episode whose demonstrations can be moved: gradient descent, ridge regression and attention layers answer anew. */
iclgd.linear = (() => {
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const times = (matrix, vector) => matrix.map((row) => dot(row, vector));

  /* Minus the label slot of e_q + P V (1/N) Σ_i e_i (e_iᵀ Kᵀ Q e_q), e_q = (x, 0). */
  function layer({ qk, pv }, x, y, query) {
    const asked = times(qk, [...query, 0]), read = Array(query.length + 1).fill(0);
    x.forEach((input, i) => {
      const token = [...input, y[i]], score = dot(token, asked) / x.length;
      token.forEach((value, j) => (read[j] += score * value));
    });
    return -dot(pv.at(-1), read);
  }

  /* One step from zero: (η/N) Σ_i y_i x_i · x. */
  const descent = (rate, x, y, query) => rate * x.reduce((sum, input, i) => sum + y[i] * dot(input, query), 0);

  /* w = (XᵀX + λI)⁻¹ Xᵀy, by elimination with pivots. */
  function ridge(lambda, x, y, query) {
    const size = query.length, rows = [];
    for (let i = 0; i < size; i++) {
      const row = [];
      for (let j = 0; j < size; j++) row.push(x.reduce((sum, input) => sum + input[i] * input[j], i === j ? lambda : 0));
      rows.push([...row, x.reduce((sum, input, n) => sum + input[i] * y[n], 0)]);
    }
    for (let i = 0; i < size; i++) {
      const pivot = rows.slice(i).reduce((best, row, n) => (Math.abs(row[i]) > Math.abs(rows[best][i]) ? n + i : best), i);
      [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
      for (let n = 0; n < size; n++) {
        if (n === i) continue;
        const factor = rows[n][i] / rows[i][i];
        for (let j = i; j <= size; j++) rows[n][j] -= factor * rows[i][j];
      }
    }
    return dot(rows.map((row, i) => row[size] / row[i]), query);
  }

  return { layer, descent, ridge };
})();

iclgd.widget("linear play", (host, data) => {
  const { el, number, choice } = iclgd, { layer, descent, ridge } = iclgd.linear;
  const x = data.x.map((row) => [...row]), y = [...data.y], size = x[0].length;
  const counted = [...Array(size).keys()].map((i) => String(i + 1)), strengths = ["0.001", "0.01", "0.1", "1", "10"];
  const axis = () => Number(choice("coordinate", counted)) - 1;
  const said = el("p", { class: "away", "aria-live": "polite" }), table = el("div"), place = el("div");
  const seeds = Object.keys(data.trained);
  let asked = 0.6;

  const learners = () => ({
    "one gradient step": (query) => descent(data.rate, x, y, query),
    [`ridge, λ = ${choice("strength", strengths)}`]: (query) => ridge(Number(choice("strength", strengths)), x, y, query),
    "constructed layer": (query) => layer(data.constructed, x, y, query),
    "trained layer": (query) => layer(data.trained[choice("seed", seeds)], x, y, query),
  });
  const along = (value) => counted.map((_, i) => (i === axis() ? value : data.query[i]));

  function reset() {
    data.x.forEach((row, i) => (x[i] = [...row]));
    data.y.forEach((value, i) => (y[i] = value));
    draw();
  }

  function drawn(width) {
    const height = 340, reach = 2, tall = Math.max(1, ...data.y.map(Math.abs)) * 1.5;
    const across = d3.scaleLinear([-reach, reach], [36, width - 10]), up = d3.scaleLinear([-tall, tall], [height - 28, 8]);
    const svg = d3.create("svg").attr("class", "plot").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
    svg.append("g").attr("transform", `translate(0,${height - 28})`).attr("color", "var(--soft)").call(d3.axisBottom(across).ticks(5));
    svg.append("g").attr("transform", "translate(36,0)").attr("color", "var(--soft)").call(d3.axisLeft(up).ticks(5));
    Object.values(learners()).forEach((answer, i) => svg.append("line").attr("stroke", `var(--s${i})`).attr("stroke-width", i === 2 ? 5 : 2).attr("stroke-opacity", i === 2 ? 0.35 : 1)
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
      const stop = () => { removeEventListener("pointermove", follow); removeEventListener("pointerup", stop); };
      addEventListener("pointermove", follow);
      addEventListener("pointerup", stop);
    });
  }

  function draw(focused) {
    place.replaceChildren(drawn(Math.min(760, host.clientWidth || 360)));
    if (focused !== undefined) place.querySelector(`[data-id="${focused}"]`)?.focus();
    const rows = Object.entries(learners()).map(([name, answer], i) => {
      const swatch = el("span", { class: "chip" });
      swatch.style.backgroundColor = `var(--s${i})`;
      return el("tr", {}, el("th", { scope: "row" }, swatch, name), el("td", { text: number(answer(along(asked))) }), el("td", { text: number(answer(along(1)) - answer(along(0))) }));
    });
    const header = ["", `answer at x = ${number(asked, 2)}`, "slope"];
    table.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...header.map((name) => iclgd.head(name)))), el("tbody", {}, ...rows)));
  }

  host.append(el("div", { class: "bar" }, ...(size > 1 ? [iclgd.selector("coordinate", "coordinate", counted)] : []), iclgd.selector("strength", "ridge λ", strengths),
    ...(seeds.length > 1 ? [iclgd.selector("seed", "trained seed", seeds)] : []), el("button", { type: "button", text: "as drawn", onclick: reset })), place, table, said);
  iclgd.heard.push(() => draw());
  draw();
});
