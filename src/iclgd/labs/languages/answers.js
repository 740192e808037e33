"use strict";
/* Words typed in, and what the trained layer and every learner answer about them, behind demonstrations that can be
   changed: words to codes, codes to answers, all of it computed here. */
iclgd.membership = (() => {
  const { dot, times, layer, ridge, nearest } = iclgd.regression;
  const sigmoid = (value) => 1 / (1 + Math.exp(-value));

  /* A block of numbers for every position, one of them 1; the last of a block is padding. */
  function oneHot(symbols, width, letters) {
    const found = Array(width * letters).fill(0);
    for (let i = 0; i < width; i++) found[i * letters + (symbols[i] ?? letters - 1)] = 1;
    return found;
  }

  /* The last state of a gated recurrent unit over the positions, mapped to the code. */
  function recurrent({ read, keep, gates, code }, symbols, width, letters) {
    const size = gates.length / 3;
    let state = Array(size).fill(0);
    for (let i = 0; i < width; i++) {
      const symbol = symbols[i] ?? letters - 1, held = times(keep, state), seen = gates.map((bias, j) => bias + read[j][symbol]);
      state = state.map((value, j) => {
        const update = sigmoid(seen[j] + held[j]), reset = sigmoid(seen[size + j] + held[size + j]);
        return update * value + (1 - update) * Math.tanh(seen[2 * size + j] + reset * held[2 * size + j]);
      });
    }
    return times(code, state);
  }

  /* A word's code; null where it is too long or has a letter that is none. */
  function coded({ alphabet, width }, encoder, word) {
    const symbols = [...word].map((letter) => alphabet.indexOf(letter)), letters = alphabet.length + 1;
    if (symbols.includes(-1) || symbols.length > width) return null;
    const base = encoder.read ? recurrent(encoder, symbols, width, letters) : oneHot(symbols, width, letters);
    const off = base.map((value, i) => value - encoder.mean[i]);
    return encoder.matrix[0].map((_, j) => off.reduce((sum, value, i) => sum + value * encoder.matrix[i][j], 0));
  }

  /* Every learner's answer, by name, in the order of the tables. */
  function answers(seed, x, y, query) {
    const { kept, weights } = seed, plain = dot(kept.classifier, query);
    const hits = x.reduce((sum, input, i) => sum + Math.sign(dot(kept.classifier, input)) * y[i], 0) / x.length;
    return {
      trained: layer(weights.trained, x, y, query),
      gd: layer(weights.gd, x, y, query),
      "preconditioned gd": layer(weights["preconditioned gd"], x, y, query),
      ridge: ridge(kept.penalty, x, y, query),
      [`${kept.neighbours} nearest`]: nearest(kept.neighbours, x, y, query),
      "no context": plain,
      "stored × hits": kept.scale * hits * plain,
    };
  }

  return { coded, answers };
})();

iclgd.widget("membership", (host, data) => {
  const { el, choice, number } = iclgd, { coded, answers } = iclgd.membership, { path } = iclgd.automaton;
  const seeds = Object.keys(data.seeds), seed = () => data.seeds[choice("seed", seeds)];
  const demos = [], list = el("div", { class: "typed" }), told = el("div"), said = el("p", { role: "status" });
  const box = el("input", { type: "text", size: 30, "aria-label": "Words to ask about, separated by spaces", spellcheck: "false", oninput: () => draw() });
  box.value = data.words.join(" ");
  iclgd.learned(data.slots);

  function begin() {
    demos.splice(0, demos.length, ...seed().episode.map(([word, label]) => ({ word, label })));
    lay();
  }

  function lay() {
    list.replaceChildren(...demos.map((demo, i) => {
      const word = el("input", { type: "text", size: 11, value: demo.word, "aria-label": `demonstration ${i + 1}`, spellcheck: "false", oninput: (event) => { demo.word = event.target.value; draw(); } });
      const sign = el("button", { type: "button", text: demo.label > 0 ? "+1" : "−1", "aria-label": `label of demonstration ${i + 1}`, onclick: () => { demo.label *= -1; lay(); list.querySelectorAll("button")[i].focus(); } });
      return el("span", { class: "pair" }, word, sign);
    }));
    draw();
  }

  const turned = () => { for (const demo of demos) demo.label *= -1; lay(); };

  function draw() {
    const usable = demos.map((demo) => ({ x: coded(data, seed().encoder, demo.word), y: demo.label })).filter((demo) => demo.x && demo.x.length);
    const words = box.value.split(/\s+/).filter(Boolean), lost = demos.length - usable.length;
    const wrong = (word) => (word.length > data.width ? `longer than ${data.width} letters` : `has a letter that is not in ${data.alphabet}`);
    const names = Object.keys(data.slots), rows = words.map((word) => {
      const query = coded(data, seed().encoder, word), states = path(data, word);
      if (!query || !usable.length) return el("tr", {}, el("th", { scope: "row", text: word }), el("td", { colspan: names.length + 1, text: usable.length ? wrong(word) : "no demonstration is left" }));
      const found = answers(seed(), usable.map((demo) => demo.x), usable.map((demo) => demo.y), query);
      return el("tr", {}, el("th", { scope: "row", text: word }), el("td", { text: data.accepting[states.at(-1)] ? "✓ member" : "✗ no member" }), ...names.map((name) => cell(found[name])));
    });
    const head = (name) => {
      const chip = el("span", { class: "chip" });
      chip.style.backgroundColor = iclgd.colour(name);
      return el("th", { scope: "col" }, chip, name);
    };
    told.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, iclgd.head("word"), iclgd.head("is"), ...names.map(head))), el("tbody", {}, ...rows)));
    said.textContent = `${usable.length} demonstrations${lost ? `; ${lost} cannot be read and ${lost === 1 ? "is" : "are"} left out` : ""}. Above zero means +1.`;
  }

  function cell(value) {
    const made = el("td", { class: "number", text: `${value >= 0 ? "+" : ""}${number(Math.round(100 * value) / 100, 2)}` }), { fill } = iclgd.heat.painted(value, 1);
    made.style.backgroundColor = `color-mix(in srgb, ${fill} ${Math.round(35 * Math.min(1, Math.abs(value)))}%, transparent)`;
    return made;
  }

  host.append(
    el("div", { class: "bar" }, ...(seeds.length > 1 ? [iclgd.selector("seed", "trained seed", seeds)] : []), el("button", { type: "button", text: "turn every label", onclick: turned }), el("button", { type: "button", text: "as drawn", onclick: begin })),
    el("div", { class: "title", text: "Demonstrations" }), list, el("div", { class: "bar" }, el("label", {}, el("span", { text: "ask about" }), box)),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answers" }, told), said);
  iclgd.heard.push((what) => ["", "seed"].includes(what) && begin());
  begin();
});
