"use strict";
/* What can be taken away: tables as CSV, LaTeX and Markdown, figures as SVG, PNG and PDF. */
iclgd.save = (() => {
  const { el } = iclgd;

  function hand(name, content, kind) {
    const address = URL.createObjectURL(new Blob([content], { type: kind }));
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
  const latex = (text) => [...text].map((c) => TEX[c] ?? ("&%$#_{}".includes(c) ? "\\" + c : c)).join("");
  const markdown = (text) => text.replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("\n", " ");

  /* A spreadsheet runs a text that begins like a formula: it gets an apostrophe in front. */
  const plain = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text);

  /* rows: of {text, value?, low?, high?}; a column of numbers has its interval beside it in CSV */
  function csv(header, rows) {
    const wide = header.map((_, i) => rows.some((row) => row[i]?.low != null));
    const head = header.flatMap((name, i) => (wide[i] ? [name, `${name} low`, `${name} high`] : [name]));
    const line = (row) => row.flatMap((cell, i) => {
      const own = cell.value != null ? String(cell.value) : plain(cell.text);
      return wide[i] ? [own, cell.low ?? "", cell.high ?? ""] : [own];
    });
    return [head, ...rows.map(line)].map((cells) => cells.map((cell) => quoted(String(cell))).join(",")).join("\r\n") + "\r\n";
  }

  function asLatex(header, rows) {
    const line = (cells) => cells.map(latex).join(" & ") + " \\\\";
    const body = rows.map((row) => line(row.map((cell) => cell.text)));
    return [`\\begin{tabular}{l${"r".repeat(header.length - 1)}}`, "\\toprule", line(header), "\\midrule", ...body, "\\bottomrule", "\\end{tabular}", ""].join("\n");
  }

  function asMarkdown(header, rows) {
    const line = (cells) => `| ${cells.map(markdown).join(" | ")} |`;
    return [line(header), line(header.map(() => "---")), ...rows.map((row) => line(row.map((cell) => cell.text)))].join("\n") + "\n";
  }

  function tableBar(name, read) {
    const one = (title, kind, form, end) => el("button", { type: "button", text: title, "aria-label": `${title}: ${name}`, onclick: () => hand(`${name}.${end}`, form(...read()), kind) });
    return el("span", { class: "save" }, el("span", { text: "table" }),
      one("CSV", "text/csv", csv, "csv"), one("LaTeX", "application/x-tex", asLatex, "tex"), one("Markdown", "text/markdown", asMarkdown, "md"));
  }

  /* Colours of the bright page, which the first rule for the root has: a figure goes into a paper, and that is white. */
  const bright = () => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).find((rule) => rule.selectorText === ":root").style;

  /* A drawing on its own: colours written into it, on white. */
  function standalone(svg) {
    const copy = svg.cloneNode(true), style = bright();
    copy.querySelectorAll("style, [aria-label=tip]").forEach((one) => one.remove());
    const [, , width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of Object.entries({ width, height, fill: "var(--paper)" })) paper.setAttribute(key, value);
    copy.prepend(paper);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("color", "var(--ink)");
    copy.setAttribute("font-size", 12);
    const text = new XMLSerializer().serializeToString(copy);
    return { width, height, text: text.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim() || "currentColor") };
  }

  async function canvas(address, width, height, scale) {
    const image = new Image();
    image.src = address;
    await image.decode();
    const made = el("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
    const brush = made.getContext("2d");
    brush.fillStyle = bright().getPropertyValue("--paper");
    brush.fillRect(0, 0, made.width, made.height);
    brush.drawImage(image, 0, 0, made.width, made.height);
    return made;
  }

  const encoded = (text) => "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  const blob = (made, kind) => new Promise((done) => made.toBlob(done, kind, 0.95));

  async function png(name, address, width, height) {
    hand(`${name}.png`, await blob(await canvas(address, width, height, 3), "image/png"), "image/png");
  }

  /* One page with the picture on it. */
  async function pdf(name, address, width, height) {
    const made = await canvas(address, width, height, 4);
    const picture = new Uint8Array(await (await blob(made, "image/jpeg")).arrayBuffer());
    const parts = [], starts = [];
    let length = 0;
    const put = (part) => { parts.push(part); length += part.length; };
    const object = (...inside) => { starts.push(length); put(`${starts.length} 0 obj\n`); inside.forEach(put); put("\nendobj\n"); };
    const content = `q ${width} 0 0 ${height} 0 0 cm /I Do Q`;
    put("%PDF-1.4\n");
    object("<</Type/Catalog/Pages 2 0 R>>");
    object("<</Type/Pages/Kids[3 0 R]/Count 1>>");
    object(`<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${width} ${height}]/Resources<</XObject<</I 4 0 R>>>>/Contents 5 0 R>>`);
    object(`<</Type/XObject/Subtype/Image/Width ${made.width}/Height ${made.height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode/Length ${picture.length}>>stream\n`, picture, "\nendstream");
    object(`<</Length ${content.length}>>stream\n${content}\nendstream`);
    const table = starts.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
    put(`xref\n0 6\n0000000000 65535 f \n${table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n${length}\n%%EOF`);
    hand(`${name}.pdf`, new Blob(parts), "application/pdf");
  }

  /* find: the drawing as it is when it is asked for */
  function figureBar(name, find) {
    const one = (title, give) => el("button", { type: "button", text: title, "aria-label": `${title}: ${name}`, onclick: give });
    const made = (give) => () => { const { text, width, height } = standalone(find()); return give(text, width, height); };
    return el("span", { class: "save" }, el("span", { text: "figure" }),
      one("SVG", made((text) => hand(`${name}.svg`, text, "image/svg+xml"))),
      one("PNG", made((text, width, height) => png(name, encoded(text), width, height))),
      one("PDF", made((text, width, height) => pdf(name, encoded(text), width, height))));
  }

  return { hand, csv, asLatex, asMarkdown, tableBar, figureBar, png };
})();
