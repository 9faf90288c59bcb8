"use strict";
(function () {
  const table = document.getElementById("loadings");
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

  async function copy(event) {
    const text = asCsv();
    const button = event.currentTarget;
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
    setTimeout(function () { button.textContent = "copy as CSV"; }, 1500);
  }

  Array.from(table.tHead.rows[0].cells).forEach(function (heading, column) {
    heading.firstElementChild.addEventListener("click", () => sortBy(column, heading));
  });
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  document.getElementById("copy").addEventListener("click", copy);
  filter();
})();
