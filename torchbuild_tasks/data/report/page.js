"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [NAME, KIND, LANE, START, SECONDS, CHAIN, BEFORE] = [0, 1, 2, 3, 4, 5, 6];
  const steps = data.steps;
  const byId = (id) => document.getElementById(id);
  const canvas = byId("timeline"), tip = byId("tip"), status = byId("status");
  const pen = canvas.getContext("2d");
  const AXIS = 24, PAD = 6;
  const lane = Math.max(5, Math.min(30, Math.floor(520 / Math.max(1, data.lanes))));
  const whole = Math.max(data.wall, 0.001);
  let from = 0, span = whole, onlyChain = false, chosen = -1, drag = null, waiting = false;

  const rows = Array.from({ length: data.lanes }, () => []);
  steps.forEach((step, index) => rows[step[LANE]].push(index));
  rows.forEach((row) => row.sort((a, b) => steps[a][START] - steps[b][START]));

  const two = (n) => String(n).padStart(2, "0");
  function clock(s) {
    const t = Math.round(s), h = Math.floor(t / 3600), m = Math.floor(t / 60) % 60;
    return h ? `${h}:${two(m)}:${two(t % 60)}` : `${m}:${two(t % 60)}`;
  }
  const took = (s) => `${s < 9.95 ? s.toFixed(2) : s.toFixed(1)} s`;

  const exact = (s) => `${s.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} s`;

  function describe(index) {
    const step = steps[index];
    const before = step[BEFORE] === null ? "" : `, ${took(step[BEFORE])} the time before`;
    return `${step[NAME]} \u2014 ${data.kinds[step[KIND]]}, ${took(step[SECONDS])}${before}, from ${clock(step[START])}`;
  }

  function ticks() {
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 36000];
    return steps.find((each) => span / each <= canvas.clientWidth / 80) || 86400;
  }

  function draw() {
    waiting = false;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const colours = data.kinds.map((_, index) => colour(`--k${data.colours[index]}`));
    const width = canvas.clientWidth, height = data.lanes * lane + AXIS + PAD;
    const dense = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
    }
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.clearRect(0, 0, width, height);
    const scale = width / span, every = ticks();
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let at = Math.ceil(from / every) * every; at <= from + span; at += every) {
      const x = Math.round((at - from) * scale) + 0.5;
      pen.fillStyle = colour("--line");
      pen.fillRect(x, AXIS - 5, 1, height);
      pen.fillStyle = colour("--soft");
      pen.textAlign = x < 20 ? "left" : x > width - 24 ? "right" : "center";
      pen.fillText(every < 1 ? `${at.toFixed(1)} s` : clock(at), x < 20 ? x + 3 : x, AXIS / 2);
    }
    rows.forEach((row, number) => {
      const y = AXIS + number * lane;
      let last = -1, lastColour = "";
      for (const index of row) {
        const step = steps[index];
        if (step[START] + step[SECONDS] < from || step[START] > from + span) continue;
        const x = (step[START] - from) * scale, w = step[SECONDS] * scale;
        const faint = onlyChain && !step[CHAIN];
        const paint = colours[step[KIND]] + (faint ? "|" : "");
        if (w < 1 && Math.floor(x) === last && paint === lastColour) continue;
        [last, lastColour] = [Math.floor(x), paint];
        pen.globalAlpha = faint ? 0.18 : 1;
        pen.fillStyle = colours[step[KIND]];
        pen.fillRect(x, y + 1, Math.max(w - (w > 4 ? 1 : 0), 0.6), lane - 2);
        if (!faint && w > 60 && lane >= 16) label(step, x, y, w, colours[step[KIND]]);
      }
    });
    pen.globalAlpha = 1;
    if (chosen >= 0) {
      const step = steps[chosen];
      pen.strokeStyle = colour("--ink");
      pen.lineWidth = 2;
      pen.strokeRect((step[START] - from) * scale, AXIS + step[LANE] * lane + 1, Math.max(step[SECONDS] * scale, 2), lane - 2);
    }
  }

  function label(step, x, y, w, paint) {
    const left = Math.max(x, 0) + 5, room = Math.min(x + w, canvas.clientWidth) - left - 4;
    if (room < 30) return;
    const name = step[NAME].slice(step[NAME].lastIndexOf("/") + 1);
    const fits = Math.floor(room / 6.6);
    if (fits < 4) return;
    pen.textAlign = "left";
    pen.fillStyle = bright(paint) ? "#14171b" : "#ffffff";
    pen.fillText(name.length > fits ? `${name.slice(0, fits - 1)}\u2026` : name, left, y + lane / 2);
  }

  function bright(hex) {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return part(1) * 0.299 + part(3) * 0.587 + part(5) * 0.114 > 140;
  }

  function redraw() {
    if (!waiting) { waiting = true; requestAnimationFrame(draw); }
  }

  function look(start, length) {
    span = Math.min(whole, Math.max(length, whole / 20000, 0.02));
    from = Math.min(Math.max(0, start), whole - span);
    redraw();
  }

  function zoom(factor, at = from + span / 2) {
    look(at - (at - from) * factor, span * factor);
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const number = Math.floor((event.clientY - box.top - AXIS) / lane);
    const at = from + (event.clientX - box.left) / box.width * span;
    const slack = 2 / box.width * span;
    let best = -1, distance = slack;
    for (const index of rows[number] || []) {
      const step = steps[index], end = step[START] + step[SECONDS];
      const away = at < step[START] ? step[START] - at : at > end ? at - end : 0;
      if (away <= distance && (best < 0 || away < distance)) [best, distance] = [index, away];
      if (best >= 0 && distance === 0) break;
    }
    return best;
  }

  function choose(index) {
    if (index === chosen) return;
    chosen = index;
    status.textContent = index < 0 ? "" : describe(index);
    redraw();
  }

  function showTip(event) {
    tip.hidden = chosen < 0;
    if (chosen < 0) return;
    tip.textContent = describe(chosen);
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    tip.style.left = `${Math.min(Math.max(4, x + 14), Math.max(4, box.width - tip.offsetWidth - 4))}px`;
    const below = y + 18 + tip.offsetHeight < box.height;
    tip.style.top = `${below ? y + 18 : Math.max(2, y - tip.offsetHeight - 10)}px`;
  }

  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      look(drag.from - (event.clientX - drag.x) / canvas.clientWidth * span, span);
      return;
    }
    choose(under(event));
    showTip(event);
  });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from };
    canvas.setPointerCapture(event.pointerId);
    tip.hidden = true;
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; choose(-1); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = from + (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth * span;
    zoom(event.deltaY > 0 ? 1.25 : 0.8, at);
  }, { passive: false });

  function beside(index, by) {
    const row = rows[steps[index][LANE]];
    return row[Math.min(Math.max(row.indexOf(index) + by, 0), row.length - 1)];
  }

  function across(index, by) {
    const row = rows[Math.min(Math.max(steps[index][LANE] + by, 0), rows.length - 1)];
    const middle = steps[index][START] + steps[index][SECONDS] / 2;
    return row.reduce((best, each) => Math.abs(steps[each][START] - middle) < Math.abs(steps[best][START] - middle) ? each : best, row[0]);
  }

  function bring(index) {
    const step = steps[index];
    if (step[START] < from || step[START] + step[SECONDS] > from + span) look(step[START] + step[SECONDS] / 2 - span / 2, span);
  }

  canvas.addEventListener("keydown", (event) => {
    const now = chosen < 0 ? (rows[0] || [])[0] : chosen;
    const moves = {
      ArrowLeft: () => beside(now, -1), ArrowRight: () => beside(now, 1),
      ArrowUp: () => across(now, -1), ArrowDown: () => across(now, 1),
    };
    const zooms = { "+": 0.5, "=": 0.5, "-": 2 };
    if (event.ctrlKey || event.metaKey || event.altKey || now === undefined) return;
    if (moves[event.key]) { const next = chosen < 0 ? now : moves[event.key](); choose(next); bring(next); }
    else if (zooms[event.key]) zoom(zooms[event.key], chosen < 0 ? undefined : steps[chosen][START] + steps[chosen][SECONDS] / 2);
    else if (event.key === "0") look(0, whole);
    else if (event.key === "Escape") { choose(-1); tip.hidden = true; }
    else return;
    event.preventDefault();
  });

  byId("in").addEventListener("click", () => zoom(0.5));
  byId("out").addEventListener("click", () => zoom(2));
  byId("all").addEventListener("click", () => look(0, whole));
  byId("critical").addEventListener("click", (event) => {
    onlyChain = !onlyChain;
    event.currentTarget.setAttribute("aria-pressed", String(onlyChain));
    redraw();
  });
  if (steps.length) document.querySelector(".tools").hidden = false;
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // Tables: a click on a head sorts; numbers come from data-value.
  const value = (cell) => cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  document.querySelectorAll("table.sorts").forEach((table) => {
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const number = head.classList.contains("num");
        const was = head.getAttribute("aria-sort");
        const down = was ? was === "ascending" : number;
        table.querySelectorAll("th").forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const sorted = [...body.rows].sort((a, b) => {
          const [x, y] = [value(a.cells[column]), value(b.cells[column])];
          return number ? x - y : String(x).localeCompare(String(y));
        });
        body.replaceChildren(...(down ? sorted.reverse() : sorted));
      });
    });
  });

  // The box above the slowest steps finds any step of the build.
  const find = byId("find");
  if (find) {
    const body = byId("slowest").tBodies[0], first = [...body.rows];
    const all = steps.map((_, index) => index).sort((a, b) => steps[b][SECONDS] - steps[a][SECONDS]);
    find.closest("label").hidden = false;
    find.addEventListener("input", () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) { body.replaceChildren(...first); return; }
      const found = all.filter((index) => words.every((word) => steps[index][NAME].toLowerCase().includes(word)));
      body.replaceChildren(...found.slice(0, 200).map(tableRow));
    });
  }

  function tableRow(index) {
    const step = steps[index], row = document.createElement("tr");
    const cell = (text, kind, number) => {
      const made = row.insertCell();
      made.textContent = text;
      made.className = kind;
      if (number !== undefined) made.dataset.value = String(number);
    };
    const cut = step[NAME].lastIndexOf("/") + 1, name = row.insertCell();
    const folder = document.createElement("span"), file = document.createElement("b");
    [folder.textContent, file.textContent] = [step[NAME].slice(0, cut), step[NAME].slice(cut)];
    name.className = "name";
    name.append(folder, file);
    cell(data.kinds[step[KIND]], "");
    cell(clock(step[START]), "num", step[START]);
    cell(exact(step[SECONDS]), "num", step[SECONDS]);
    if (data.compares) cell(step[BEFORE] === null ? "" : exact(step[BEFORE]), "num", step[BEFORE] === null ? -1 : step[BEFORE]);
    return row;
  }

  draw();
})();
