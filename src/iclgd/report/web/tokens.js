"use strict";
/* A text as tokens, each coloured by a number; pointed at, or walked with arrow keys, a token tells its number. */
iclgd.tokens = (said) => {
  const { el } = iclgd;
  const STRONGEST = 55; // per cent of colour behind a word that has to stay readable
  const spans = [];
  let current = 0;
  const box = el("div", { class: "tokens", tabindex: "0", role: "group", "aria-label": "Tokens of the prompt. Arrow keys go from one to the next." });

  const seen = (text) => text.replaceAll("\n", "⏎").replaceAll("\t", "⇥") || "∅";

  /* lines: of {title, kind, tokens: [{text, label}]}, in the order of the prompt */
  function lay(lines) {
    spans.length = 0;
    box.replaceChildren(...lines.map((line) => {
      const made = line.tokens.map((token) => {
        const span = el("span", { class: token.label ? "token label" : "token", text: seen(token.text) });
        spans.push({ span, where: line.title, text: token.text });
        return span;
      });
      return el("p", { class: `line ${line.kind}` }, el("span", { class: "where", text: line.title }), ...made);
    }));
  }

  /* values: a number or NaN for each token; a signed number takes one of two colours */
  function paint(values, largest, told) {
    spans.forEach((one, i) => {
      const value = values[i], strength = Math.min(1, Math.abs(value) / (largest || 1)) * STRONGEST;
      const none = Number.isNaN(value) || strength < 0.5;
      one.span.style.backgroundColor = none ? "" : `color-mix(in srgb, var(${value < 0 ? "--s1" : "--s0"}) ${strength.toFixed(1)}%, transparent)`;
      one.told = Number.isNaN(value) ? "" : told(value);
    });
  }

  function tell(i) {
    const one = spans[i];
    if (!one) return;
    current = i;
    const at = one.span.getBoundingClientRect();
    const text = `“${seen(one.text)}”, ${one.where}${one.told ? `\n${one.told}` : ""}`;
    iclgd.explain(text, at.left, at.bottom);
    said.textContent = text;
  }

  box.addEventListener("pointerover", (event) => {
    const i = spans.findIndex((one) => one.span === event.target);
    if (i >= 0) tell(i);
    else iclgd.hush();
  });
  box.addEventListener("pointerleave", iclgd.hush);
  box.addEventListener("blur", () => {
    iclgd.hush();
    spans[current]?.span.classList.remove("here");
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -spans.length, End: spans.length }[event.key];
    if (!step) return;
    event.preventDefault();
    spans[current]?.span.classList.remove("here");
    tell(Math.max(0, Math.min(spans.length - 1, current + step)));
    spans[current].span.classList.add("here");
  });
  return { box, lay, paint };
};
