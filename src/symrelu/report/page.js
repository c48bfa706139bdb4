"use strict";
// The script of a report page: decodes the data, and draws the map, the table and the figures.
// Names come from files of strangers: they are only ever set as textContent or drawn on a canvas.
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const names = data.names;
  const n = names.length;
  const collator = new Intl.Collator(undefined, { numeric: true });
  const numberFormat = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  const systemDark = matchMedia("(prefers-color-scheme: dark)");

  // ---- Data: see encoding.py for how arrays become text -------------------------------------------------

  function bytesOf(text) {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  }

  function varintsOf(text) {
    const numbers = [];
    let number = 0;
    let factor = 1; // products and not shifts, which have 32 bits
    for (const byte of bytesOf(text)) {
      number += (byte & 127) * factor;
      factor *= 128;
      if (byte < 128) {
        numbers.push(number);
        number = 0;
        factor = 1;
      }
    }
    return numbers;
  }

  function readColumn(column) {
    const read = {
      category: () => varintsOf(column.data).map((code) => (code ? column.categories[code - 1] : null)),
      integer: () => varintsOf(column.data).map((code) => (code ? unzigzag(code - 1) : null)),
      number: () => Array.from(new Float32Array(bytesOf(column.data).buffer), roundedFloat),
      text: () => column.data,
    };
    return { name: column.name, kind: column.kind, categories: column.categories, values: read[column.kind]() };
  }

  function unzigzag(code) {
    return code % 2 ? -(code + 1) / 2 : code / 2;
  }

  function roundedFloat(value) {
    return Number.isNaN(value) ? null : Number(value.toPrecision(7)); // the digits that a float32 has
  }

  // The links as for each node a stretch of `others`, which has its neighbours, the strongest first.
  function readLinks() {
    const numbers = varintsOf(data.links.pairs);
    const weights = data.links.weights && bytesOf(data.links.weights);
    const ends = [];
    let place = 0;
    for (let i = 0; i < n; i++) {
      let other = i;
      for (let left = numbers[place++]; left > 0; left--) ends.push([i, (other += numbers[place++])]);
    }
    const lists = Array.from({ length: n }, () => []);
    ends.forEach(([i, j], k) => {
      const weight = weights ? weights[k] : 1;
      lists[i].push([j, weight]);
      lists[j].push([i, weight]);
    });
    const neighbours = lists.map((list) => list.sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([j]) => j));
    return { ends, neighbours };
  }

  const coordinates = new Uint16Array(bytesOf(data.positions).buffer);
  const xs = Float64Array.from({ length: n }, (_, i) => coordinates[2 * i] / 65535);
  const ys = Float64Array.from({ length: n }, (_, i) => coordinates[2 * i + 1] / 65535);
  const columns = data.columns.map(readColumn);
  const { ends, neighbours } = readLinks();
  const degrees = columns.find((column) => column.name === "degree").values;

  // ---- State --------------------------------------------------------------------------------------------

  let focused = null; // the node that was chosen by a click, a key or the search
  let hovered = null; // the node under the pointer
  const selection = new Set();
  const active = () => hovered ?? focused;

  function announce(text) {
    $("announcement").textContent = text;
  }

  function focusNode(node, { centre = false, speak = true } = {}) {
    focused = node;
    hovered = null;
    showDetails();
    markRows();
    if (node !== null && centre) moveTo(xs[node], ys[node]);
    else draw();
    if (speak) announce(node === null ? "No node is in focus." : spoken(node));
  }

  function spoken(node) {
    const facts = columns.filter((c) => c.values[node] !== null).map((c) => `${c.name} ${shown(c.values[node])}`);
    const near = neighbours[node].slice(0, 3).map((other) => names[other]);
    const list = near.length ? ` Neighbours: ${near.join(", ")}${degrees[node] > near.length ? " and more" : ""}.` : "";
    return `${names[node]}. ${facts.join(", ")}.${list}`;
  }

  function select(nodes, { add = false } = {}) {
    if (!add) selection.clear();
    for (const node of nodes) selection.add(node);
    selectionChanged();
  }

  function toggle(node) {
    if (!selection.delete(node)) selection.add(node);
    selectionChanged();
  }

  function selectionChanged() {
    const count = selection.size;
    const text = count ? `${count} node${count === 1 ? " is" : "s are"} selected.` : "No node is selected.";
    $("selected").textContent = text;
    $("export").disabled = $("clear").disabled = !count;
    announce(text);
    if ($("only-selected").checked) refilter();
    else markRows();
    draw();
  }

  // Change what is in a box without losing the keyboard focus, if it is there: it goes to the control of the
  // same node, or to what the function for all other cases returns.
  function keepingFocus(box, change, otherwise) {
    const had = box.contains(document.activeElement) ? document.activeElement : null;
    change();
    if (!had || had.isConnected) return;
    const alike = [...box.querySelectorAll(had.tagName)].find((control) => control.node === had.node);
    (had.node !== undefined && alike ? alike : otherwise()).focus({ preventScroll: true });
  }

  // ---- Small helpers ------------------------------------------------------------------------------------

  function shown(value) {
    if (value === null) return "–";
    if (typeof value !== "number") return value;
    if (Number.isInteger(value)) return String(value);
    return Math.abs(value) < 1e-3 ? Number(value.toPrecision(3)).toExponential() : numberFormat.format(value);
  }

  function element(tag, text = "", attributes = {}) {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // A name may be written from right to left: bdi keeps its direction from its surroundings.
  function nameButton(node, action) {
    const button = element("button", "", { type: "button", class: "link" });
    button.append(element("bdi", names[node]));
    button.node = node;
    button.addEventListener("click", () => action(node));
    return button;
  }

  const isDark = () => {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : systemDark.matches;
  };

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // ---- Colours ------------------------------------------------------------------------------------------

  const PALETTE = ["#3b7dd8", "#e07b1a", "#2a9d5c", "#d43d51", "#8f63c9", "#a0683a", "#d35fb0", "#8a8f1c", "#1a9fb3", "#d9a900"];
  const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const GREY = "#8b929b";
  const STEPS = 24; // colours of a numeric column
  const LEGEND = 30; // entries

  function categoryColour(k) {
    return PALETTE[k] ?? `hsl(${Math.round(k * 137.5) % 360} 50% ${k % 2 ? 48 : 60}%)`;
  }

  // From 0 to 1: the largest values differ most from the background.
  function rampColour(share) {
    const place = (isDark() ? share : 1 - share) * (RAMP.length - 1);
    const low = Math.min(Math.floor(place), RAMP.length - 2);
    return RAMP[low].map((from, k) => Math.round(from + (RAMP[low + 1][k] - from) * (place - low)));
  }

  const css = (rgb) => `rgb(${rgb.join(" ")})`;

  // The groups of nodes of one colour, in the order in which they are drawn.
  let groups = [];
  let colourOf = [];

  function setColours() {
    const column = columns.find((one) => one.name === $("colour").value);
    const members = new Map();
    const place = groupPlace(column);
    for (let i = 0; i < n; i++) {
      const k = place(i);
      if (!members.has(k)) members.set(k, []);
      members.get(k).push(i);
    }
    groups = [...members].map(([k, nodes]) => ({ k, nodes, colour: groupColour(column, k) }));
    groups.sort((a, b) => a.k - b.k);
    colourOf = Array.from({ length: n });
    for (const group of groups) for (const node of group.nodes) colourOf[node] = group.colour;
    fillLegend(column);
    draw();
  }

  function groupPlace(column) {
    if (!column) return () => 0;
    if (column.kind === "category") {
      const places = new Map(column.categories.map((category, k) => [category, k]));
      return (i) => places.get(column.values[i]) ?? -1;
    }
    const [low, high] = range(column);
    return (i) => {
      const value = column.values[i];
      if (value === null) return -1;
      return high > low ? Math.round(((value - low) / (high - low)) * (STEPS - 1)) : STEPS - 1;
    };
  }

  function groupColour(column, k) {
    if (k < 0) return GREY;
    if (!column) return PALETTE[0];
    return column.kind === "category" ? categoryColour(k) : css(rampColour(k / (STEPS - 1)));
  }

  function range(column) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of column.values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return [low, high];
  }

  function fillLegend(column) {
    const legend = $("legend");
    legend.replaceChildren();
    if (!column) return;
    if (column.kind !== "category") {
      const [low, high] = range(column);
      const ramp = element("span", "", { class: "ramp" });
      ramp.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((t) => css(rampColour(t))).join()})`;
      legend.append(element("span", shown(low)), ramp, element("span", shown(high)));
      return;
    }
    for (const group of groups.slice(0, LEGEND)) {
      const button = element("button", "", { type: "button" });
      const swatch = element("span", "", { class: "swatch" });
      swatch.style.background = group.colour;
      const text = group.k < 0 ? "missing" : column.categories[group.k];
      button.append(swatch, element("bdi", text), element("span", `(${group.nodes.length})`));
      button.addEventListener("click", () => select(group.nodes));
      legend.append(button);
    }
    if (groups.length > LEGEND) legend.append(element("span", `and ${groups.length - LEGEND} more`));
  }

  // ---- The map ------------------------------------------------------------------------------------------

  const canvas = $("map");
  const context = canvas.getContext("2d");
  const view = { x: 0.5, y: 0.5, zoom: 1 }; // what is in the middle, and how large
  const MOST_ZOOM = 400;
  const NEAR = 14; // pixels within which a node is hit
  const MANY_LINKS = 6000; // not drawn unless asked for
  const MOST_LABELS = 40;
  const byDegree = Array.from({ length: n }, (_, i) => i).sort((a, b) => degrees[b] - degrees[a] || a - b);
  const extent = (values) => Math.max(...range({ values }).map((value) => Math.abs(value - 0.5))) * 2;
  const [width, height] = [extent(xs), extent(ys)];
  let polygon = null; // the lasso while it is drawn
  let pending = 0;

  function scale() {
    const fit = Math.min((canvas.clientWidth - 70) / (width || 0.1), (canvas.clientHeight - 50) / (height || 0.1));
    return Math.max(fit, 10) * view.zoom;
  }

  const place = (node) => [
    canvas.clientWidth / 2 + (xs[node] - view.x) * scale(),
    canvas.clientHeight / 2 - (ys[node] - view.y) * scale(),
  ];

  function draw() {
    pending ||= requestAnimationFrame(() => {
      pending = 0;
      drawNow();
    });
  }

  function drawNow() {
    const [w, h, dots] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (canvas.width !== Math.round(w * dots) || canvas.height !== Math.round(h * dots)) {
      canvas.width = Math.round(w * dots);
      canvas.height = Math.round(h * dots);
    }
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.clearRect(0, 0, w, h);
    const s = scale();
    const px = Float32Array.from(xs, (x) => w / 2 + (x - view.x) * s);
    const py = Float32Array.from(ys, (y) => h / 2 - (y - view.y) * s);
    const size = (n < 200 ? 6 : n < 2500 ? 4 : n < 8000 ? 3 : 2.2) * Math.min(1, Math.sqrt(w / 700));
    const radius = size * Math.min(2.5, view.zoom ** 0.3);
    const node = active();
    const visible = (i) => px[i] > -20 && px[i] < w + 20 && py[i] > -20 && py[i] < h + 20;
    if ($("show-links").checked) drawLinks(px, py, ends, style("--soft"), node === null ? 0.22 : 0.07, 0.8);
    context.globalAlpha = node === null ? (n > 8000 ? 0.75 : 0.9) : 0.28;
    for (const group of groups) drawDots(px, py, group.nodes.filter(visible), radius, group.colour);
    context.globalAlpha = 1;
    if (node !== null) {
      drawLinks(px, py, neighbours[node].map((other) => [node, other]), style("--accent"), 0.75, 1.5);
      for (const other of neighbours[node]) drawDots(px, py, [other], radius, colourOf[other]);
      drawDots(px, py, [node], radius * 1.5, colourOf[node]);
      drawRing(px[node], py[node], radius * 1.5 + 2, style("--ink"));
    }
    for (const other of selection) if (visible(other)) drawRing(px[other], py[other], radius + 1.5, style("--ink"));
    drawNames(px, py, radius, visible);
    if (polygon) drawPolygon();
  }

  function drawLinks(px, py, pairs, colour, alpha, thickness) {
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = thickness;
    context.beginPath();
    for (const [i, j] of pairs) {
      context.moveTo(px[i], py[i]);
      context.lineTo(px[j], py[j]);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  function drawDots(px, py, nodes, radius, colour) {
    context.fillStyle = colour;
    context.beginPath();
    for (const i of nodes) {
      context.moveTo(px[i] + radius, py[i]);
      context.arc(px[i], py[i], radius, 0, 7);
    }
    context.fill();
  }

  function drawRing(x, y, radius, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 1.8;
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.stroke();
  }

  // Names of the node and its neighbours, or of the nodes with most links, where there is room.
  function drawNames(px, py, radius, visible) {
    const node = active();
    let candidates = [];
    if (node !== null) candidates = [node, ...neighbours[node].slice(0, 12)];
    else if ($("show-names").checked) candidates = byDegree.filter(visible).slice(0, 400);
    context.font = "13px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken = [];
    for (const i of candidates) {
      const text = names[i].length > 30 ? `${names[i].slice(0, 29)}…` : names[i];
      const size = context.measureText(text).width;
      const left = px[i] + radius + 5 + size > canvas.clientWidth ? px[i] - radius - 5 - size : px[i] + radius + 5;
      const box = [left - 2, py[i] - 9, left + size + 2, py[i] + 9];
      if (taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      context.lineWidth = 3.5;
      context.strokeStyle = style("--map");
      context.fillStyle = style("--ink");
      context.strokeText(text, left, py[i]);
      context.fillText(text, left, py[i]);
      if (taken.length >= MOST_LABELS) break;
    }
  }

  function overlap(a, b) {
    return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  }

  function drawPolygon() {
    context.beginPath();
    for (const [x, y] of polygon) context.lineTo(x, y);
    context.closePath();
    context.globalAlpha = 0.15;
    context.fillStyle = style("--accent");
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = style("--accent");
    context.lineWidth = 1.5;
    context.stroke();
  }

  function nodeAt(x, y) {
    const s = scale();
    const [atX, atY] = [view.x + (x - canvas.clientWidth / 2) / s, view.y - (y - canvas.clientHeight / 2) / s];
    let [best, least] = [null, (NEAR / s) ** 2];
    for (let i = 0; i < n; i++) {
      const distance = (xs[i] - atX) ** 2 + (ys[i] - atY) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  function zoomBy(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    stopMoving();
    const before = scale();
    view.zoom = Math.min(MOST_ZOOM, Math.max(0.5, view.zoom * factor));
    const change = 1 / before - 1 / scale(); // the point under the pointer stays where it is
    view.x += (x - canvas.clientWidth / 2) * change;
    view.y -= (y - canvas.clientHeight / 2) * change;
    draw();
  }

  function panBy(x, y) {
    stopMoving();
    view.x -= x / scale();
    view.y += y / scale();
    draw();
  }

  function resetView() {
    stopMoving();
    Object.assign(view, { x: 0.5, y: 0.5, zoom: 1 });
    draw();
  }

  let moving = 0; // the next frame on the way to a node; whoever moves the map meanwhile ends that way

  function stopMoving() {
    cancelAnimationFrame(moving);
  }

  function moveTo(x, y) {
    stopMoving();
    const [fromX, fromY, begin] = [view.x, view.y, performance.now()];
    const step = () => {
      const share = reducedMotion.matches ? 1 : Math.min(1, (performance.now() - begin) / 250);
      const eased = share * (2 - share);
      view.x = fromX + (x - fromX) * eased;
      view.y = fromY + (y - fromY) * eased;
      drawNow();
      if (share < 1) moving = requestAnimationFrame(step);
    };
    step();
  }

  // One pointer moves the map or draws the lasso, two pinch.
  const pointers = new Map();
  let moved = 0;

  function onPointerDown(event) {
    stopMoving();
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved = 0;
    if (pointers.size > 1) polygon = null;
    else if (isLasso()) polygon = [[event.offsetX, event.offsetY]];
  }

  function onPointerMove(event) {
    const before = pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!before) {
      hover(nodeAt(...now));
      return;
    }
    const others = [...pointers.entries()].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    pointers.set(event.pointerId, now);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (others.length) {
      const gap = (point) => Math.hypot(point[0] - others[0][0], point[1] - others[0][1]) || 1;
      zoomBy(gap(now) / gap(before), (now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2);
    } else if (polygon) {
      polygon.push(now);
      draw();
    } else {
      panBy(now[0] - before[0], now[1] - before[1]);
    }
  }

  function onPointerUp(event) {
    if (!pointers.delete(event.pointerId)) return;
    if (polygon && polygon.length > 2) {
      const inside = [];
      for (let i = 0; i < n; i++) if (contains(polygon, place(i))) inside.push(i);
      select(inside, { add: event.shiftKey });
    } else if (moved < 5) {
      focusNode(nodeAt(event.offsetX, event.offsetY));
    }
    polygon = null;
    draw();
  }

  // The system took the pointer away, as for its own gestures: what was begun is not meant.
  function onPointerCancel(event) {
    pointers.delete(event.pointerId);
    polygon = null;
    draw();
  }

  function hover(node) {
    if (node === hovered) return;
    hovered = node;
    showDetails();
    draw();
  }

  // Whether a point is in a polygon: a ray from it crosses the border an odd number of times.
  function contains(border, [x, y]) {
    let inside = false;
    border.forEach(([x1, y1], k) => {
      const [x2, y2] = border[(k + 1) % border.length];
      if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
    });
    return inside;
  }

  const isLasso = () => $("lasso").getAttribute("aria-pressed") === "true";

  function setLasso(on) {
    $("lasso").setAttribute("aria-pressed", String(on));
    canvas.classList.toggle("lasso", on);
    if (on) announce("Drag a line around the nodes to select. By keyboard, space selects the node in focus.");
  }

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    const actions = {
      "+": () => zoomBy(1.4),
      "=": () => zoomBy(1.4),
      "-": () => zoomBy(1 / 1.4),
      0: resetView,
      " ": () => focused !== null && toggle(focused),
      Escape: () => focusNode(null),
    };
    if (arrow && event.shiftKey) panBy(-40 * arrow[0], 40 * arrow[1]);
    else if (arrow) step(arrow);
    else if (Object.hasOwn(actions, event.key)) actions[event.key]();
    else return;
    event.preventDefault();
  }

  // Go to the neighbour in a direction, or to the nearest node there if no neighbour is.
  function step(direction) {
    if (focused === null) {
      focusNode(byDegree[0], { centre: true });
      return;
    }
    const next = nearest(neighbours[focused], direction) ?? nearest(byDegree, direction);
    if (next === null) announce("There is no node in this direction.");
    else focusNode(next, { centre: true });
  }

  function nearest(candidates, [dx, dy]) {
    let [best, least] = [null, Infinity];
    for (const i of candidates) {
      const [x, y] = [xs[i] - xs[focused], ys[i] - ys[focused]];
      const length = Math.hypot(x, y);
      const straight = (x * dx + y * dy) / (length || 1);
      const cost = length * (1 + 3 * (1 - straight));
      if (i !== focused && straight > 0.3 && cost < least) [best, least] = [i, cost];
    }
    return best;
  }

  // ---- Details of a node, and the search ----------------------------------------------------------------

  const LISTED = 10;

  function showDetails() {
    const box = $("details");
    const parts = active() === null ? mostLinks() : detailsOf(active());
    keepingFocus(box, () => box.replaceChildren(...parts), () => box.querySelector("h3"));
  }

  function mostLinks() {
    const hint = element("p", "Point at a node, or find one by its name, to see its neighbours.", { class: "help" });
    const heading = element("h3", "Most links", { tabindex: "-1" });
    return [hint, heading, nodeList("Nodes with most links", byDegree)];
  }

  function detailsOf(node) {
    const heading = element("h3", "", { tabindex: "-1" });
    heading.append(element("bdi", names[node]));
    const list = element("dl");
    for (const column of columns) {
      const value = element("dd");
      value.append(element("bdi", shown(column.values[node])));
      list.append(element("dt", column.name), value);
    }
    const near = neighbours[node];
    const total = Math.max(degrees[node], near.length);
    const items = nodeList("Neighbours", near);
    const more = total - Math.min(near.length, LISTED);
    const all = element("button", "Select with neighbours", { type: "button" });
    all.addEventListener("click", () => select([node, ...near]));
    const parts = [heading, list];
    if (near.length) parts.push(all);
    parts.push(element("h3", total ? `Neighbours (${total})` : "No neighbours"), items);
    if (more > 0) parts.push(element("p", near.length ? `and ${more} more` : "not on this page", { class: "help" }));
    return parts;
  }

  function nodeList(label, nodes) {
    const list = element("ul", "", { "aria-label": label });
    for (const node of nodes.slice(0, LISTED)) {
      const item = element("li");
      item.append(nameButton(node, (chosen) => focusNode(chosen, { centre: true })));
      list.append(item);
    }
    return list;
  }

  const SUGGESTIONS = 8;
  let marked = -1; // the suggestion that Enter takes

  function suggest() {
    const text = $("search").value.trim().toLowerCase();
    const [begin, within] = [[], []];
    for (let i = 0; text && i < n && begin.length < SUGGESTIONS; i++) {
      const at = names[i].toLowerCase().indexOf(text);
      if (at === 0) begin.push(i);
      else if (at > 0 && within.length < SUGGESTIONS) within.push(i);
    }
    const found = [...begin, ...within].slice(0, SUGGESTIONS);
    $("suggestions").replaceChildren(
      ...found.map((node, k) => {
        const item = element("li", "", { role: "option", id: `suggestion-${k}`, "aria-selected": "false" });
        item.append(element("bdi", names[node]));
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault(); // the focus stays in the search box
          choose(node);
        });
        item.node = node;
        return item;
      }),
    );
    mark(found.length ? 0 : -1);
    open(Boolean(text));
    if (text && !found.length) $("suggestions").append(element("li", "No node has this name.", { role: "option" }));
  }

  function open(on) {
    $("suggestions").hidden = !on;
    $("search").setAttribute("aria-expanded", String(on));
  }

  function mark(k) {
    marked = k;
    [...$("suggestions").children].forEach((item, at) => item.setAttribute("aria-selected", String(at === k)));
    if (k < 0) $("search").removeAttribute("aria-activedescendant");
    else $("search").setAttribute("aria-activedescendant", `suggestion-${k}`);
  }

  function choose(node) {
    $("search").value = names[node];
    open(false);
    if (view.zoom < 2 && n > 500) view.zoom = 2;
    focusNode(node, { centre: true });
  }

  function onSearchKey(event) {
    const items = [...$("suggestions").children].filter((item) => item.node !== undefined);
    if (event.key === "Escape") open(false);
    else if (event.key === "Enter" && items[marked]) choose(items[marked].node);
    else if (event.key === "ArrowDown" && items.length) mark((marked + 1) % items.length);
    else if (event.key === "ArrowUp" && items.length) mark((marked + items.length - 1) % items.length);
    else return;
    event.preventDefault();
  }

  // ---- CSV ----------------------------------------------------------------------------------------------

  // The rules of cli/tables.py: text that a spreadsheet may run as a formula gets a leading apostrophe.
  const STARTS_FORMULA = /^'*(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/;
  const PLAIN_NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
  const NEEDS_QUOTES = /[,;\t"\r\n]|^[#%\s]|\s$|^$/;

  function csvCell(value) {
    if (value === null) return "";
    if (typeof value === "number") return String(value);
    const safe = STARTS_FORMULA.test(value) && !PLAIN_NUMBER.test(value) ? `'${value}` : value;
    return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function exportRows(nodes, file) {
    const rows = [["node", ...columns.map((column) => column.name)]];
    for (const node of nodes) rows.push([names[node], ...columns.map((column) => column.values[node])]);
    const text = rows.map((row) => row.map(csvCell).join(",") + "\n").join("");
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const link = element("a", "", { href: address, download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    announce(`${nodes.length} rows were exported to ${file}.`);
  }

  // ---- The table ----------------------------------------------------------------------------------------

  const ROWS = 15;
  const sorting = { key: null, descending: false };
  let texts = null; // what the filter searches, made when it is first used
  let rows = Array.from({ length: n }, (_, i) => i);
  let page = 0;

  function keyOf(column) {
    if (!column) return (node) => names[node];
    if (column.kind !== "category") return (node) => column.values[node];
    const places = new Map(column.categories.map((category, k) => [category, k]));
    return (node) => places.get(column.values[node]) ?? null;
  }

  function sortRows() {
    if (sorting.key === null) rows.sort((a, b) => a - b);
    else {
      const key = keyOf(columns[sorting.key]); // -1 for the names
      const sign = sorting.descending ? -1 : 1;
      rows.sort((a, b) => compare(key(a), key(b), sign) || a - b);
    }
  }

  // Missing values come last in both directions.
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b));
  }

  function filterTable() {
    page = 0;
    refilter();
  }

  function refilter() {
    texts ??= names.map((name, i) => [name, ...columns.map((c) => shown(c.values[i]))].join("\n").toLowerCase());
    const text = $("filter").value.trim().toLowerCase();
    const chosen = $("only-selected").checked;
    rows = [];
    for (let i = 0; i < n; i++) if (texts[i].includes(text) && (!chosen || selection.has(i))) rows.push(i);
    sortRows();
    fillTable();
  }

  function makeHead() {
    $("head").append(element("th", "", { scope: "col", "aria-label": "Selected" }));
    ["node", ...columns.map((column) => column.name)].forEach((name, at) => {
      const cell = element("th", "", { scope: "col", "aria-sort": "none" });
      if (at && ["integer", "number"].includes(columns[at - 1].kind)) cell.className = "number";
      const button = element("button", name, { type: "button" });
      button.addEventListener("click", () => sortBy(at - 1));
      cell.append(button);
      $("head").append(cell);
    });
  }

  function sortBy(key) {
    sorting.descending = sorting.key === key && !sorting.descending;
    sorting.key = key;
    [...$("head").children].slice(1).forEach((cell, at) => {
      const order = at - 1 !== key ? "none" : sorting.descending ? "descending" : "ascending";
      cell.setAttribute("aria-sort", order);
    });
    sortRows();
    page = 0;
    fillTable();
  }

  function fillTable() {
    const last = Math.max(0, Math.ceil(rows.length / ROWS) - 1);
    page = Math.min(page, last);
    const made = rows.slice(page * ROWS, (page + 1) * ROWS).map(tableRow);
    const otherwise = () => $("rows").querySelector("input") ?? $("only-selected");
    keepingFocus($("rows"), () => $("rows").replaceChildren(...made), otherwise);
    markRows();
    $("page").textContent = rows.length
      ? `${page * ROWS + 1} to ${Math.min((page + 1) * ROWS, rows.length)} of ${rows.length}`
      : "No row has this text.";
    $("previous").disabled = page === 0;
    $("next").disabled = page === last;
    $("export-table").disabled = !rows.length;
  }

  // Show which rows are selected and in focus. They are not made anew, because that would lose the focus.
  function markRows() {
    for (const row of $("rows").children) {
      const check = row.querySelector("input");
      check.checked = selection.has(check.node);
      row.classList.toggle("current", check.node === focused);
    }
  }

  function tableRow(node) {
    const row = element("tr");
    const check = element("input", "", { type: "checkbox", "aria-label": `Select ${names[node]}` });
    check.node = node;
    check.addEventListener("change", () => toggle(node));
    const cells = [element("td"), element("td")];
    cells[0].append(check);
    cells[1].append(nameButton(node, showOnMap));
    for (const column of columns) {
      const cell = element("td", "", ["integer", "number"].includes(column.kind) ? { class: "number" } : {});
      cell.append(element("bdi", shown(column.values[node])));
      cells.push(cell);
    }
    row.append(...cells);
    return row;
  }

  function showOnMap(node) {
    focusNode(node, { centre: true });
    canvas.scrollIntoView({ block: "nearest", behavior: reducedMotion.matches ? "auto" : "smooth" });
  }

  // ---- Figures ------------------------------------------------------------------------------------------

  function svg(tag, attributes, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  }

  // An empty plot in the width of its box: its drawing and the functions from values to pixels.
  function plot(box, label, [xLow, xHigh], [yLow, yHigh], toAxis, labels) {
    const [w, h, left, bottom] = [Math.max(box.clientWidth, 200), 230, 52, 34];
    const drawing = svg("svg", { viewBox: `0 0 ${w} ${h}`, height: h, role: "img", "aria-label": label });
    const x = (value) => left + ((value - xLow) / (xHigh - xLow || 1)) * (w - left - 12);
    const y = (value) => h - bottom - ((toAxis(value) - toAxis(yLow)) / (toAxis(yHigh) - toAxis(yLow) || 1)) * (h - bottom - 12);
    for (const value of labels.y) {
      drawing.append(svg("line", { class: "axis", x1: left, x2: w - 12, y1: y(value), y2: y(value) }));
      drawing.append(svg("text", { class: "tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
    }
    for (const value of labels.x) {
      drawing.append(svg("text", { class: "tick", x: x(value), y: h - bottom + 16, "text-anchor": "middle" }, shown(value)));
    }
    drawing.append(svg("text", { class: "tick", x: w - 12, y: h - 4, "text-anchor": "end" }, labels.xName));
    box.replaceChildren(drawing);
    return { drawing, x, y };
  }

  function ticks(low, high, count = 5) {
    const raw = (high - low || 1) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  function logTicks(low, high) {
    const factors = high / low > 30 ? [1] : [1, 2, 3, 5, 7];
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) found.push(Number((factor * 10 ** power).toPrecision(6)));
    }
    return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  }

  function drawCurve() {
    const curve = data.curve;
    $("curve-figure").hidden = !curve;
    if (!curve) return;
    const [low, high] = range({ values: curve.y });
    const logarithmic = curve.logarithmic && high > low;
    const bottom = logarithmic ? low : Math.min(0, low);
    const labels = {
      x: ticks(curve.x[0], curve.x.at(-1)),
      y: logarithmic ? logTicks(low, high) : ticks(bottom, high || 1),
      xName: curve.x_label,
    };
    const text = `${curve.y_label} against ${curve.x_label}: from ${shown(curve.y[0])} to ${shown(curve.y.at(-1))}.`;
    const span = [curve.x[0], curve.x.at(-1)];
    const { drawing, x, y } = plot($("curve"), text, span, [bottom, high || 1], logarithmic ? Math.log : Number, labels);
    drawing.append(svg("polyline", { class: "curve", points: curve.x.map((at, k) => `${x(at)},${y(curve.y[k])}`).join(" ") }));
    if (curve.x.length < 30) curve.x.forEach((at, k) => drawing.append(svg("circle", { class: "dot", cx: x(at), cy: y(curve.y[k]), r: 3 })));
    $("curve-text").textContent = text[0].toUpperCase() + text.slice(1);
  }

  function drawSpectrum() {
    const values = data.spectrum;
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const negative = values.filter((value) => value < 0).length;
    const text = `${values.length} eigenvalue${values.length === 1 ? "" : "s"} of X, ${negative} of them negative; the largest is ${shown(values[0])}.`;
    const labels = { x: [], y: ticks(low, high), xName: "in order of size" };
    const { drawing, x, y } = plot($("spectrum"), text, [0, values.length], [low, high || 1], Number, labels);
    const thickness = Math.max(1, (x(1) - x(0)) * 0.7);
    values.forEach((value, k) => {
      const [top, size] = [Math.min(y(0), y(value)), Math.abs(y(value) - y(0))];
      drawing.append(svg("rect", { class: value < 0 ? "down" : "up", x: x(k + 0.5) - thickness / 2, y: top, width: thickness, height: Math.max(size, 0.5) }));
    });
    $("spectrum-text").textContent = `${text} Bars upwards bring nodes together, bars downwards keep them apart.`;
  }

  function drawMatrices() {
    const { bins, titles, byCluster, cells, largest, decades } = data.matrices;
    const ramp = Array.from({ length: 256 }, (_, level) => rampColour(level / 255));
    $("matrices").replaceChildren(
      ...titles.map((title, k) => {
        const figure = element("figure");
        const picture = element("canvas", "", { width: bins, height: bins, role: "img", "aria-label": `${title}, as a picture` });
        const image = picture.getContext("2d").createImageData(bins, bins);
        bytesOf(cells[k]).forEach((level, cell) => {
          if (level) image.data.set([...ramp[level], 255], 4 * cell);
        });
        picture.getContext("2d").putImageData(image, 0, 0);
        figure.append(element("h3", title), picture);
        return figure;
      }),
    );
    const size = bins < n ? `Each cell is a mean over about ${Math.round(n / bins)} × ${Math.round(n / bins)} pairs. ` : "";
    const order = byCluster ? "by cluster and by place on the map" : "by place on the map";
    $("matrices-text").textContent = `Rows and columns are the nodes, ordered ${order}. ${size}The colours span ${decades} decades, up to ${shown(largest)}; empty cells are zero.`;
  }

  function drawFigures() {
    drawCurve();
    drawSpectrum();
    drawMatrices();
  }

  // ---- Theme and start ----------------------------------------------------------------------------------

  function showTheme() {
    $("theme").setAttribute("aria-pressed", String(isDark()));
    setColours();
    drawFigures();
  }

  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    showTheme();
  }

  function listen() {
    $("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
    systemDark.addEventListener("change", showTheme);
    $("colour").addEventListener("change", setColours);
    for (const id of ["show-links", "show-names"]) $(id).addEventListener("change", draw);
    $("zoom-in").addEventListener("click", () => zoomBy(1.4));
    $("zoom-out").addEventListener("click", () => zoomBy(1 / 1.4));
    $("zoom-reset").addEventListener("click", resetView);
    $("lasso").addEventListener("click", () => setLasso(!isLasso()));
    $("export").addEventListener("click", () => exportRows([...selection].sort((a, b) => a - b), "selection.csv"));
    $("clear").addEventListener("click", () => {
      select([]);
      $("lasso").focus(); // the button is disabled now, and could not keep the focus
    });
    $("search").addEventListener("input", suggest);
    $("search").addEventListener("keydown", onSearchKey);
    $("search").addEventListener("blur", () => open(false));
    $("filter").addEventListener("input", filterTable);
    $("only-selected").addEventListener("change", filterTable);
    $("export-table").addEventListener("click", () => exportRows(rows, "nodes.csv"));
    $("previous").addEventListener("click", () => turnPage(-1));
    $("next").addEventListener("click", () => turnPage(1));
    canvas.addEventListener("pointerdown", onPointerDown);
    canvas.addEventListener("pointermove", onPointerMove);
    canvas.addEventListener("pointerup", onPointerUp);
    canvas.addEventListener("pointercancel", onPointerCancel);
    canvas.addEventListener("pointerleave", () => hover(null));
    canvas.addEventListener("keydown", onKey);
    canvas.addEventListener("wheel", onWheel, { passive: false });
    addEventListener("resize", () => {
      draw();
      drawFigures();
    });
    listenToPrinting();
  }

  function turnPage(by) {
    page += by;
    fillTable();
    const [pressed, other] = by > 0 ? [$("next"), $("previous")] : [$("previous"), $("next")];
    if (pressed.disabled) other.focus(); // a disabled button cannot keep the focus
  }

  function onWheel(event) {
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY);
  }

  // Paper is white: both drawings and texts are printed in the light theme.
  function listenToPrinting() {
    let theme;
    addEventListener("beforeprint", () => {
      theme = document.documentElement.dataset.theme;
      setTheme("light");
      drawNow();
    });
    addEventListener("afterprint", () => {
      if (theme) document.documentElement.dataset.theme = theme;
      else delete document.documentElement.dataset.theme;
      showTheme();
    });
  }

  function start() {
    for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
    for (const column of columns) {
      if (column.kind !== "text") $("colour").append(element("option", column.name, { value: column.name }));
    }
    $("colour").append(element("option", "nothing", { value: "" }));
    $("colour").value = data.colour ?? "";
    $("show-links").checked = ends.length > 0 && ends.length <= MANY_LINKS;
    $("show-links").disabled = !ends.length;
    $("show-names").checked = data.hasNames;
    makeHead();
    listen();
    showDetails();
    fillTable();
    showTheme();
    drawNow();
    // For the console and for tests: the decoded data, and where a node is in the window.
    window.report = Object.freeze({
      names,
      columns,
      neighbours,
      view,
      selection,
      place(node) {
        const [box, [x, y]] = [canvas.getBoundingClientRect(), place(node)];
        return [box.left + x, box.top + y];
      },
    });
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }

  start();
})();
