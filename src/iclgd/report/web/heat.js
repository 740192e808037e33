"use strict";
/* Matrices as heat maps; two of them in one place, with a border between them that is dragged or moved by keys. */
(() => {
  const { el, number, choice } = iclgd;
  const SVG = "http://www.w3.org/2000/svg";
  const largest = (rows) => rows.reduce((most, row) => row.reduce((m, value) => Math.max(m, Math.abs(value)), most), 0);

  function shape(tag, given) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
    return made;
  }

  /* A number's colour: blue above zero, orange below, stronger the nearer to the largest. */
  const painted = (value, most) => ({ fill: value < 0 ? "var(--s1)" : "var(--s0)", "fill-opacity": (Math.abs(value) / (most || 1)).toFixed(3) });

  function cells(rows, most, size, at = [0, 0]) {
    return rows.flatMap((row, i) => row.map((value, j) => shape("rect", { x: at[0] + j * size, y: at[1] + i * size, width: size, height: size, ...painted(value, most) })));
  }

  /* Where one block of coordinates ends and the next begins, and what they are called. */
  function marked(blocks, size, left, top) {
    const made = [], total = blocks.reduce((sum, [, count]) => sum + count, 0) * size;
    let from = 0;
    for (const [name, count] of blocks) {
      const middle = (from + count / 2) * size;
      const across = shape("text", { x: left + middle, y: top - 6, "text-anchor": "middle", fill: "var(--soft)" }), down = shape("text", { x: left - 8, y: top + middle, dy: "0.32em", "text-anchor": "end", fill: "var(--soft)" });
      across.textContent = down.textContent = name;
      made.push(across, down);
      if (from) made.push(shape("path", { d: `M${left + from * size},${top}v${total}M${left},${top + from * size}h${total}`, stroke: "var(--soft)", "stroke-opacity": 0.7, fill: "none" }));
      from += count;
    }
    return made;
  }

  /* How alike two matrices are, whatever their size: cos = ⟨A, B⟩ / ‖A‖‖B‖; and ‖A − B‖ / ‖A‖. */
  function likeness(one, other) {
    const [a, b] = [one.flat(), other.flat()], norm = (v) => Math.hypot(...v);
    const product = a.reduce((sum, value, i) => sum + value * b[i], 0);
    return { cosine: product / (norm(a) * norm(b)), distance: norm(a.map((value, i) => value - b[i])) / norm(a) };
  }

  iclgd.heat = { cells, painted, largest, likeness, shape };

  iclgd.widget("wipe", (host, data) => {
    const matrices = Object.keys(data.pictures), sides = Object.keys(data.pictures[matrices[0]]);
    const picked = () => data.pictures[choice("matrix", matrices)];
    const left = () => choice("left", sides), right = () => choice("right", [sides[1] ?? sides[0], ...sides]);
    const place = el("div"), said = el("p", { role: "status" }), away = el("p", { class: "away", "aria-live": "polite" });
    const slider = el("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": "Border between the two matrices, per cent from the left", oninput: () => border() });
    slider.value = 50;
    let drawn = null;

    function border() {
      const share = Number(slider.value) / 100, { clips, line, grip, x, width } = drawn, at = x + share * width;
      clips[0].setAttribute("width", share * width);
      clips[1].setAttribute("x", at);
      clips[1].setAttribute("width", (1 - share) * width);
      line.setAttribute("d", `M${at},${drawn.y}v${drawn.height}`);
      grip.setAttribute("cx", at);
    }

    function draw() {
      const [one, other] = [picked()[left()], picked()[right()]], most = Math.max(largest(one), largest(other)), count = one.length;
      const size = Math.max(3, Math.min(34, (Math.min(560, host.clientWidth || 340) - 60) / one[0].length)), [x, y] = [44, 24], width = size * one[0].length, height = size * count;
      const svg = shape("svg", { class: "plot wipe", viewBox: `0 0 ${x + width + 10} ${y + height + 10}`, width: x + width + 10, height: y + height + 10, "aria-label": `${choice("matrix", matrices)}: ${left()} to the left of the border, ${right()} to the right` });
      const name = host.dataset.from, clips = [shape("rect", { x, y, height }), shape("rect", { y, height })];
      clips.forEach((clip, i) => {
        const path = shape("clipPath", { id: `${name}-${i}` }), group = shape("g", { "clip-path": `url(#${name}-${i})` });
        path.append(clip);
        group.append(...cells(i ? other : one, most, size, [x, y]));
        svg.append(path, group);
      });
      svg.append(shape("rect", { x, y, width, height, fill: "none", stroke: "var(--line)" }), ...marked(data.blocks, size, x, y));
      const line = shape("path", { stroke: "var(--ink)", "stroke-width": 2 }), grip = shape("circle", { cy: y + height / 2, r: 9, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2, class: "handle" });
      drawn = { clips, line, grip, x, y, width, height };
      const points = one.map((row, i) => row.map((value, j) => ({ x: x + (j + 0.5) * size, y: y + (i + 0.5) * size, text: `row ${i + 1}, column ${j + 1}\n${left()}: ${number(value)}\n${right()}: ${number(other[i][j])}` })));
      svg.append(line, grip);
      iclgd.pointed(svg, points, away);
      svg.addEventListener("pointerdown", (event) => dragged(event, svg));
      place.replaceChildren(svg);
      border();
      const { cosine, distance } = likeness(one, other);
      said.textContent = `Left: ${left()}. Right: ${right()}. Cosine ${number(cosine)}, distance ${number(distance)} of the left one's size; strongest ${number(most)}.`;
    }

    function dragged(event, svg) {
      event.preventDefault();
      const move = (now) => {
        const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
        slider.value = (100 * ((now.clientX - box.left) / scale - drawn.x)) / drawn.width;
        border();
      };
      const stop = () => { removeEventListener("pointermove", move); for (const end of ["pointerup", "pointercancel"]) removeEventListener(end, stop); };
      move(event);
      addEventListener("pointermove", move);
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, stop);
    }

    const bar = [iclgd.selector("matrix", "matrix", matrices), iclgd.selector("left", "left", sides), iclgd.selector("right", "right", [sides[1] ?? sides[0], ...sides.filter((_, i) => i !== 1)])];
    host.append(el("div", { class: "bar" }, ...bar, el("label", {}, el("span", { text: "border" }), slider), iclgd.save.figureBar("matrices", () => place.firstElementChild)), place, said, away);
    iclgd.heard.push((what) => ["", "matrix", "left", "right"].includes(what) && draw());
    draw();
  });
})();
