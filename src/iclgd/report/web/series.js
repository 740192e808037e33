"use strict";
/* Series of numbers among which a reader chooses; and a drawing that can be pointed at, or walked with arrow keys. */
iclgd.series = (data) => {
  const width = data.points.length || 1;
  const { names, count } = data;

  /* Codes of 16 bits, least byte first whatever the machine; or of 8, where there are as many bytes as codes. */
  function unpacked(text, expected = 0) {
    const bytes = atob(text), wide = bytes.length !== expected, found = new Uint16Array(wide ? bytes.length / 2 : expected);
    for (let i = 0; i < found.length; i++) found[i] = wide ? bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1) : bytes.charCodeAt(i);
    return found;
  }

  /* Rows of numbers, decoded when they are shown. */
  function numbers(given) {
    const all = Array.isArray(given) ? given : unpacked(given.codes);
    const plain = (value) => value ?? NaN, scaled = (code) => (code > given.steps ? NaN : given.low + (code / given.steps) * (given.high - given.low));
    return (place) => Float64Array.from(all.slice(place * width, (place + 1) * width), Array.isArray(given) ? plain : scaled);
  }

  const codes = Object.fromEntries(Object.entries(data.codes).map(([name, given]) => [name, Array.isArray(given) ? given : unpacked(given, count)]));
  const [values, low, high] = [data.values, data.low, data.high].map(numbers);
  const limits = new Map(data.limited.map((row, place) => [row, place])), none = new Float64Array(width).fill(NaN);
  const label = (row, name) => (name in names ? names[name][codes[name][row]] : "");

  /* What a selector offers: every value of its label but the empty one, which is true of any choice. */
  const offered = (name) => names[name].filter((value) => value !== "");

  function shown() {
    const asked = Object.keys(data.choose).filter((name) => name in names).map((name) => [name, iclgd.choice(name, offered(name))]);
    const found = [];
    for (let row = 0; row < count; row++) {
      if (!asked.every(([name, value]) => ["", value].includes(label(row, name)))) continue;
      const place = limits.get(row), limit = (of) => (place === undefined ? none : of(place));
      found.push({ row, label: (name) => label(row, name), values: values(row), low: limit(low), high: limit(high) });
    }
    return found;
  }

  function bar() {
    const boxes = Object.entries(data.choose).filter(([name]) => name in names && offered(name).length > 1);
    return boxes.map(([name, title]) => iclgd.selector(name, title, offered(name)));
  }

  return { shown, bar, names, offered, choices: new Set(Object.keys(data.choose)) };
};

/* lines: for each line its points {x, y, text} in the drawing's own coordinates. */
iclgd.pointed = (svg, lines, said) => {
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  for (const [name, value] of Object.entries({ r: 6, fill: "none", stroke: "currentColor", "stroke-width": 1.5, visibility: "hidden", "aria-hidden": "true" })) ring.setAttribute(name, value);
  svg.append(ring);
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "img");
  const alone = lines.every((points) => points.length === 1); // dots below each other: a row is pointed at, its interval too
  let line = 0, place = 0;

  function show() {
    const point = lines[line]?.[place];
    if (!point) return;
    ring.setAttribute("cx", point.x);
    ring.setAttribute("cy", point.y);
    ring.setAttribute("visibility", "visible");
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    iclgd.explain(point.text, box.left + point.x * scale + 8, box.top + point.y * scale + 4);
    said.textContent = point.text;
  }

  function away() {
    ring.setAttribute("visibility", "hidden");
    iclgd.hush();
  }

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const [x, y] = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
    let best = Infinity;
    for (const [i, points] of lines.entries()) for (const [j, point] of points.entries()) {
      const far = Number.isNaN(point.y) ? Infinity : Math.hypot(alone ? 0 : 1.5 * (point.x - x), point.y - y);
      if (far < best) [best, line, place] = [far, i, j];
    }
    if (best < 60 || lines.length === 1) show();
    else away();
  });
  svg.addEventListener("pointerleave", away);
  svg.addEventListener("blur", away);
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && show());
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    line = (line + (alone ? step[0] + step[1] : step[0]) + lines.length) % lines.length;
    place = Math.max(0, Math.min(lines[line].length - 1, place + step[1]));
    show();
  });
};
