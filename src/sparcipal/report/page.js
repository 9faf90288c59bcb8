"use strict";
(function loadings() {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const search = document.getElementById("search");
  const only = document.getElementById("only");
  const count = document.getElementById("count");

  function key(row, column) {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  }

  function sortBy(column, heading) {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    rows.sort(function (a, b) {
      const x = key(a, column), y = key(b, column);
      return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
    });
    body.append(...rows);
  }

  function filter() {
    const wanted = search.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const hit = row.cells[1].textContent.toLowerCase().includes(wanted)
        && (only.value === "" || row.cells[0].dataset.value === only.value);
      row.hidden = !hit;
      shown += hit;
    }
    count.textContent = shown + " of " + rows.length + " loadings";
  }

  function asCsv() {
    const quoted = (text) => '"' + text.replaceAll('"', '""') + '"';
    const lines = ["component,feature,weight,variance"];
    for (const row of rows) {
      if (row.hidden) continue;
      const [component, feature, weight, variance] = row.cells;
      lines.push([component.dataset.value, quoted(feature.dataset.name), weight.dataset.value,
        variance.dataset.value].join(","));
    }
    return lines.join("\n") + "\n";
  }

  Array.from(table.tHead.rows[0].cells).forEach(function (heading, column) {
    heading.firstElementChild.addEventListener("click", () => sortBy(column, heading));
  });
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  document.getElementById("copy").addEventListener("click", (event) => copy(asCsv(), event));
  for (const button of document.querySelectorAll(".take")) {
    const text = button.parentElement.querySelector("pre").textContent;
    button.addEventListener("click", (event) => copy(text + "\n", event));
  }
  filter();

  async function copy(text, event) {
    const button = event.currentTarget;
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {
      // A page opened from a file may not use the clipboard directly.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(function () { button.textContent = said; }, 1500);
  }
})();

(function samples() {
  const source = document.getElementById("samples-data");
  if (source === null) return;
  const data = JSON.parse(source.textContent);
  const stage = document.querySelector(".stage");
  const drawing = stage.querySelector("svg");
  const marks = Array.from(drawing.querySelectorAll(".points path"));
  const tip = document.getElementById("tip");
  const chooser = document.getElementById("pair");
  const [left, right, bottom, top] = data.frame;
  const share = (axis, value) => (value - axis.low) / (axis.high - axis.low);
  const across = (axis, value) => left + share(axis, value) * (right - left);
  const up = (axis, value) => bottom - share(axis, value) * (bottom - top);
  const places = marks.map(function (mark) {
    const at = mark.transform.baseVal.consolidate().matrix;
    return [at.e, at.f];
  });
  let pair = data.axes.length > 1 ? [0, 1] : [0];
  let current = -1;

  function tick(name, attributes, text) {
    const made = document.createElementNS(drawing.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function drawAxes() {
    const [x, y] = pair.map((j) => data.axes[j]);
    const level = drawing.querySelector(".ticks.x"), upright = drawing.querySelector(".ticks.y");
    level.replaceChildren();
    upright.replaceChildren();
    for (const [value, text] of x.ticks) {
      const at = across(x, value);
      level.append(tick("path", { class: "grid", d: "M" + at + " " + top + "V" + bottom }),
        tick("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of y.ticks) {
      const at = up(y, value);
      upright.append(tick("path", { class: "grid", d: "M" + left + " " + at + "H" + right }),
        tick("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, text));
    }
    drawing.querySelector(".name.x").textContent = x.name;
    drawing.querySelector(".name.y").textContent = y.name;
    const numbers = pair.map((j) => j + 1).join(" and ");
    drawing.setAttribute("aria-label", "samples by their scores on components " + numbers);
  }

  function choose() {
    pair = chooser.value.split("-").map(Number);
    const [x, y] = pair.map((j) => data.axes[j]);
    marks.forEach(function (mark, i) {
      places[i] = [across(x, data.scores[i][pair[0]]), up(y, data.scores[i][pair[1]])];
      mark.setAttribute("transform", "translate(" + places[i].join(" ") + ")");
    });
    drawAxes();
    const [cx, cy, radius] = data.circle;
    const cloud = document.querySelector("svg.biplot .cloud");
    cloud.setAttribute("d", data.spread.map((at) => "M" + (cx + radius * at[pair[0]]) + " "
      + (cy - radius * at[pair[1]]) + "h0").join(""));
    for (const arrows of document.querySelectorAll("svg.biplot .arrows")) {
      arrows.toggleAttribute("hidden", arrows.dataset.pair !== chooser.value);
    }
    leave();
  }

  function line(name, value) {
    const row = document.createElement("div");
    const what = document.createElement("span"), figure = document.createElement("b");
    what.textContent = name;
    figure.textContent = value === null ? "missing" : value;
    row.append(what, " ", figure);
    return row;
  }

  function show(i) {
    leave();
    if (i < 0) return;
    current = i;
    marks[i].classList.add("on");
    const head = document.createElement("strong");
    head.textContent = data.names[i];
    tip.replaceChildren(head);
    if (data.labels) tip.append(line(data.label, data.labels[i]));
    for (const j of pair) {
      tip.append(line("component " + (j + 1), data.scores[i][j].toPrecision(3)));
    }
    for (const f of new Set(pair.flatMap((j) => data.own[j]))) {
      tip.append(line(data.features[f], data.values[i][f]));
    }
    const [own, height] = places[i];
    const beneath = places.filter(([a, b], other) => other !== i && seen(other)
      && Math.abs(a - own) < 1 && Math.abs(b - height) < 1).length;
    if (beneath > 0) tip.append(line("at the same place", beneath + " more"));
    tip.hidden = false;
    const unit = drawing.clientWidth / drawing.viewBox.baseVal.width;
    const [x, y] = places[i].map((at) => at * unit);
    const beside = x > drawing.clientWidth / 2 ? x - tip.offsetWidth - 12 : x + 12;
    tip.style.left = Math.max(0, beside) + "px";
    const highest = Math.max(0, drawing.clientHeight - tip.offsetHeight);
    tip.style.top = Math.min(Math.max(0, y - tip.offsetHeight / 2), highest) + "px";
  }

  function leave() {
    if (current >= 0) marks[current].classList.remove("on");
    current = -1;
    tip.hidden = true;
  }

  function seen(i) { return !marks[i].hasAttribute("hidden"); }

  function near(event) {
    const box = drawing.getBoundingClientRect();
    const unit = drawing.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * unit, y = (event.clientY - box.top) * unit;
    let best = -1, least = 18 * 18 * Math.max(1, unit);
    places.forEach(function ([a, b], i) {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least && seen(i)) { best = i; least = distance; }
    });
    if (best !== current) show(best);
  }

  function walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") leave();
    if (step === undefined) return;
    event.preventDefault();
    const upright = event.key === "ArrowUp" || event.key === "ArrowDown";
    const key = upright ? (i) => -places[i][1] : (i) => places[i][0];
    const order = marks.map((_, i) => i).filter(seen).sort((a, b) => key(a) - key(b) || a - b);
    if (order.length === 0) return;
    const at = order.indexOf(current);
    show(order[Math.min(Math.max(at < 0 ? 0 : at + step, 0), order.length - 1)]);
  }

  function toggle(event) {
    const button = event.currentTarget;
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    marks.forEach(function (mark, i) {
      if (data.group[i] === Number(button.dataset.group)) mark.toggleAttribute("hidden", !on);
    });
    leave();
  }

  stage.addEventListener("pointermove", near);
  stage.addEventListener("pointerdown", near);
  stage.addEventListener("pointerleave", leave);
  stage.addEventListener("blur", leave);
  stage.addEventListener("keydown", walk);
  for (const button of document.querySelectorAll(".key")) button.addEventListener("click", toggle);
  if (chooser !== null) chooser.addEventListener("change", choose);
})();
