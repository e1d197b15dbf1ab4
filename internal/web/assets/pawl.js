// What Pawl's pages do beside htmx: charts from tables, times in the reader's
// zone, decisions that do not move under the pointer, and a word when the live
// stream is broken. Pages work without it.
"use strict";

(() => {
  // Tooltips of instants tell the reader's own time, too.
  const localTimes = (root) => {
    for (const el of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const at = new Date(el.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      el.dataset.local = "yes";
      el.title = at.toLocaleString() + " · " + el.dateTime;
    }
  };

  // A chart draws the table that it names: instants on the left, numbers on the
  // right. The table stays for those who do not see the picture.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const draw = (room) => {
    const table = document.getElementById(room.dataset.chart);
    if (!table || typeof uPlot === "undefined" || room.childElementCount) return;
    const times = [], values = [];
    for (const row of table.tBodies[0].rows) {
      times.push(new Date(row.cells[0].textContent).getTime() / 1000);
      values.push(Number(row.cells[1].textContent));
    }
    const span = times[times.length - 1] - times[0];
    const labels = (u, splits) => splits.map((t) => {
      const at = new Date(t * 1000);
      if (span > 2 * 86400) return at.toLocaleDateString([], { day: "numeric", month: "short" });
      return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: span < 600 ? "2-digit" : undefined, hourCycle: "h23" });
    });
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const accent = colour("--accent");
    const looks = {
      bars: { stroke: accent, fill: accent, width: 0, paths: uPlot.paths.bars({ size: [0.7, 18] }), points: { show: false } },
      points: { stroke: accent, paths: () => null, points: { show: true, size: 6, fill: accent } },
    };
    const gap = times.length > 1 ? (times[times.length - 1] - times[0]) / (times.length - 1) / 2 : 1;
    new uPlot({
      width: room.clientWidth, height: 140, legend: { show: false }, cursor: { y: false },
      scales: {
        x: { range: (u, low, high) => [low - gap, high + gap] }, // room for the first and the last one
        y: { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [{ ...axis, values: labels, size: 30, space: 70 }, { ...axis, size: 56 }],
      series: [{}, looks[room.dataset.kind] ?? looks.points],
    }, [times, values], room);
  };

  const charts = (root) => {
    for (const room of root.querySelectorAll("[data-chart]")) draw(room);
  };

  const redraw = () => {
    for (const room of document.querySelectorAll("[data-chart]")) {
      room.replaceChildren();
      draw(room);
    }
  };

  const fresh = () => { localTimes(document); charts(document); };

  // When an action replaced the page, the keyboard goes on at what it says.
  const focusNotice = () => {
    if (document.activeElement === document.body) document.querySelector(".notice")?.focus();
  };

  // What is about to be decided holds still: a click that was meant for one call
  // must never reach another. While a decision has the pointer or the keyboard
  // nothing is merged into the page; and when something did move, clicks on
  // decisions count for nothing until a person can have seen it.
  const settle = 1000; // ms
  let movedAt = -Infinity, before = -Infinity, places = "", owed = false, dimmed = 0;

  const decisions = () => [...document.querySelectorAll("[data-decision]")];
  const busy = () => decisions().some((el) => el.matches(":hover") || el.contains(document.activeElement));
  const where = () => decisions().map((el) => el.dataset.decision + "@" + Math.round(el.getBoundingClientRect().top + scrollY)).join("|");

  const hold = (yes) => {
    owed = yes;
    const el = document.getElementById("held");
    if (el) el.hidden = !yes;
  };

  const moved = () => {
    if (where() === places) {
      movedAt = before;
      return;
    }
    movedAt = performance.now();
    document.documentElement.dataset.moved = "yes";
    clearTimeout(dimmed);
    dimmed = setTimeout(() => { delete document.documentElement.dataset.moved; }, settle);
  };

  // The live part fetches itself; what a person asked for replaces the page. The
  // number in the menu is out of the way and always follows.
  document.addEventListener("htmx:before:swap", (e) => {
    places = where();
    [before, movedAt] = [movedAt, Infinity]; // until it is known whether anything moves
    if (e.target.id !== "live" || !busy()) return;
    const { tasks } = e.detail;
    tasks.splice(0, tasks.length, ...tasks.filter((task) => task.type === "oob"));
    hold(true);
  });

  const release = () => {
    if (!owed || busy()) return;
    hold(false);
    document.getElementById("live-line")?.dispatchEvent(new Event("change"));
  };
  for (const name of ["pointermove", "pointerup", "pointercancel", "focusout", "scrollend"]) {
    document.addEventListener(name, () => setTimeout(release), { passive: true });
  }
  document.documentElement.addEventListener("pointerleave", () => setTimeout(release));

  const refuse = (e) => {
    if (performance.now() - movedAt >= settle || !e.target.closest?.("[data-decision] .actions")) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  };
  for (const name of ["click", "submit"]) addEventListener(name, refuse, true);

  document.addEventListener("DOMContentLoaded", fresh);
  document.addEventListener("htmx:after:swap", () => { fresh(); focusNotice(); });
  document.addEventListener("htmx:finally:swap", moved);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  let wait = 0;
  addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(redraw, 200); });

  // Only a stream that stays broken is worth a word.
  const broken = (yes) => {
    const el = document.getElementById("live-state");
    if (el) el.hidden = !yes;
  };
  document.addEventListener("htmx:sse:error", (e) => {
    if (e.detail?.status === 401) location.reload(); // the session is over: this leads to the sign-in page and back
    broken(true);
  });
  document.addEventListener("htmx:sse:after:connection", () => broken(false));
})();
