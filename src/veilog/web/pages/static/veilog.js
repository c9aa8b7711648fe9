// What makes the pages livelier. Each of them works without it.
"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));

  const put = (element, text) => {
    if (element && element.textContent !== text) element.textContent = text;
  };

  // The page says what is said here, in its language, with placeholders for numbers and names.
  const words = JSON.parse(document.querySelector("meta[name=words]").content);
  const said = (name, values = {}) => words[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);

  for (const element of all("[data-nojs]")) element.hidden = true;
  for (const element of all("[data-lively], .search")) element.hidden = false;

  // The page first, then what it needs only to be livelier.
  addEventListener("load", () => {
    for (const { content } of all("meta[name=after-load]")) {
      document.head.append(Object.assign(document.createElement("script"), { src: content }));
    }
  });

  // A range from 0.01 to 10 beside its number: each follows the other. Every step of it is another number.
  const nice = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const budget = (step) => Number((nice[step % 12] * 10 ** (Math.floor(step / 12) - 2)).toPrecision(2));
  for (const range of all("input[data-for]")) {
    const number = document.getElementById(range.dataset.for);
    const follow = () => {
      const value = parseFloat(number.value.replace(",", "."));
      const far = (step) => Math.abs(Math.log(budget(step) / value));
      if (value > 0) range.value = [...Array(37).keys()].reduce((best, step) => (far(step) < far(best) ? step : best));
      range.setAttribute("aria-valuetext", "epsilon " + number.value);
    };
    range.hidden = false;
    range.addEventListener("input", () => {
      number.value = budget(Number(range.value)).toString();
      range.setAttribute("aria-valuetext", "epsilon " + number.value);
    });
    number.addEventListener("input", follow);
    follow();
  }

  // Fields that mean something for one answer alone, and the word for a budget that protects nobody.
  for (const field of all("[data-only], [data-unless]")) {
    const [name, value] = (field.dataset.only || field.dataset.unless).split("=");
    const show = () => {
      const chosen = document.querySelector(`[name="${name}"]:checked`);
      field.hidden = field.dataset.only ? !chosen || chosen.value !== value : !chosen || chosen.value === value;
    };
    for (const one of document.getElementsByName(name)) one.addEventListener("change", show);
    show();
  }
  for (const field of all("[data-unprotected]")) {
    const number = document.getElementById("epsilon");
    const show = () => {
      const [value, typed] = [parseFloat(number.value.replace(",", ".")), field.querySelector("input").value];
      field.hidden = !(value > 3.89) && !typed;
    };
    for (const one of [number, ...all("input[data-for]")]) one.addEventListener("input", show);
    show();
  }

  // A log is read as soon as it is chosen; of the columns of a table one is the case, one the activity, one the time.
  for (const form of all("form[data-chosen]")) {
    form.querySelector("input[type=file]").addEventListener("change", (event) => {
      if (event.target.files.length) form.requestSubmit();
    });
  }
  for (const select of all("select[data-role]")) {
    select.addEventListener("change", () => {
      if (!["case", "activity", "timestamp", "person"].includes(select.value)) return;
      for (const other of all("select[data-role]")) {
        if (other === select || other.value !== select.value) continue;
        if (!other.querySelector('option[value=""]')) other.prepend(new Option("–", ""));
        other.value = "";
      }
    });
  }

  // A hundred people: those are marked who are found by what an attacker knows.
  for (const picture of all("[data-dots]")) {
    const levels = JSON.parse(picture.dataset.dots);
    const [range, day] = ["knows", "day"].map((id) => document.getElementById(id));
    const sizes = [...new Set(levels.map((level) => level.size))].sort((a, b) => a - b);
    range.max = sizes.length - 1;
    range.value = Math.max(0, sizes.indexOf(3));
    day.disabled = !levels.some((level) => level.day);
    day.checked = !day.disabled;
    const show = () => {
      const level = levels.find((one) => one.size === sizes[range.value] && one.day === day.checked);
      if (!level) return;
      picture.querySelectorAll("circle").forEach((dot, place) => dot.classList.toggle("on", place < level.found));
      put(document.querySelector("[data-found]"), String(level.found));
      put(document.querySelector("[data-known]"), level.says);
      range.setAttribute("aria-valuetext", level.says);
    };
    for (const field of [range, day]) field.addEventListener("input", show);
    show();
  }

  // What goes on is asked for again and again: a connection that stays open for each page would take all that a
  // browser has for one server.
  const fetched = async (address) => {
    const answer = await fetch(address);
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  };
  const again = (seconds, look, lost = () => false) => {
    const next = async () => {
      if (document.hidden || !(await look().catch(lost))) setTimeout(next, 1000 * seconds);
    };
    setTimeout(next, 1000 * seconds);
  };
  for (const box of all("[data-now]")) {
    again(1, async () => {
      const page = await fetched(box.dataset.now);
      const [now, before] = [page && page.querySelector("[data-stage]"), box.querySelector("[data-stage]")];
      if (!now || now.dataset.stage !== before.dataset.stage) {
        location.reload();
        return true;
      }
      put(before.querySelector("[data-text]"), now.querySelector("[data-text]").textContent);
      put(before.querySelector("[data-left]"), now.querySelector("[data-left]").textContent);
      const [bar, value] = [before.querySelector("[data-bar]"), now.querySelector("[data-bar]").getAttribute("value")];
      if (value === null) bar.removeAttribute("value");
      else bar.value = value;
      return false;
    }, () => {
      put(box.querySelector("[data-text]"), said("unanswered"));
      put(box.querySelector("[data-left]"), "");
      return false;
    });
  }
  for (const part of all("[data-live]")) {
    again(2, async () => {
      const now = (await fetched(part.dataset.live || location.href)).getElementById(part.id);
      const here = document.getElementById(part.id);
      if (here.querySelector("details[open]") || here.contains(document.activeElement)) return false;
      const ended = !now.hasAttribute("data-live");
      if (here.textContent !== now.textContent) here.replaceWith(document.adoptNode(now));
      dispatchEvent(new Event("replaced"));
      return ended;
    });
  }

  // What a form was refused for is read first, and told of its field.
  for (const problem of all("[data-wrong]")) {
    const wrong = problem.dataset.wrong;
    const field = document.getElementById(wrong);
    if (!field) continue;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `problem ${field.getAttribute("aria-describedby") || ""}`.trim());
    for (let part = field.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    field.addEventListener("input", () => field.removeAttribute("aria-invalid"), { once: true });
  }
  const refused = document.getElementById("problem");
  if (refused) refused.focus({ preventScroll: true });

  // A form that takes a moment says so, and is not sent twice.
  for (const form of all("form[data-busy]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      const button = event.submitter || form.querySelector("button");
      form.dataset.sent = "yes";
      button.dataset.words = button.textContent;
      button.textContent = form.dataset.busy;
      form.classList.add("busy");
    });
  }
  addEventListener("pageshow", () => {
    for (const form of all("form[data-sent]")) {
      delete form.dataset.sent;
      form.classList.remove("busy");
      const button = form.querySelector("button[data-words]");
      if (button) button.textContent = button.dataset.words;
    }
  });

  // A map is looked at from nearer or farther, with the most frequent activities and paths only, and with all that
  // touches one activity. Without this it shows what it opens with.
  const made = (name, facts, ...inside) => {
    const element = Object.assign(document.createElement(name), facts);
    element.append(...inside);
    return element;
  };
  const lively = (place) => {
    const [map, picture] = [place.querySelector(".map"), place.querySelector(".map svg")];
    const parts = (selector) => Array.from(picture.querySelectorAll(selector));
    const steps = parts(".step");
    const boxes = parts(".box");
    const sizes = ["count", "after"].filter((log) => boxes.some((box) => box.dataset[log]));
    // Of two logs, the larger share counts.
    const sums = sizes.map((log) => boxes.reduce((sum, box) => sum + Number(box.dataset[log]), 0) || 1);
    const share = (box) => Math.max(...sizes.map((log, i) => Number(box.dataset[log]) / sums[i]));
    const activities = boxes.filter((box) => !box.classList.contains("aside"))
      .toSorted((a, b) => share(b) - share(a)).map((box) => box.dataset.activity);
    const aside = new Set(boxes.map((box) => box.dataset.activity).filter((name) => !activities.includes(name)));
    // The most frequent way into each activity from another one, and out of it, in each log; and a step from it to
    // itself, where that is more frequent.
    const main = sizes.flatMap((log) => ["from", "to"].map((end) => {
      const most = new Map();
      for (const step of steps.toSorted((a, b) => b.dataset[log] - a.dataset[log])) {
        const before = most.get(step.dataset[end]) || [];
        if (Number(step.dataset[log]) && before.every((one) => one.dataset.from === one.dataset.to)) {
          most.set(step.dataset[end], [...before, step]);
        }
      }
      return most;
    }));
    let [scale, picked, shown] = [1, null, activities.length];
    let drawn = steps.filter((step) => !step.classList.contains("off")).length;
    const [counts, tells] = [{}, []];
    const show = () => {
      // What is shown keeps these ways, and what they lead over, however little is asked for.
      const kept = new Set([">", "<", ...activities.slice(0, shown)]);
      const often = new Set(steps.slice(0, drawn));
      for (const name of kept) {  // a set also hands out what is added meanwhile
        for (const step of aside.has(name) ? [] : main.flatMap((most) => most.get(name) || [])) {
          often.add(step);
          kept.add(step.dataset.from).add(step.dataset.to);
        }
      }
      for (const box of boxes) {
        box.classList.toggle("off", !kept.has(box.dataset.activity));
        box.classList.toggle("picked", box.dataset.activity === picked);
        box.setAttribute("aria-pressed", box.dataset.activity === picked);
      }
      const seen = steps.map((step) => often.has(step) && kept.has(step.dataset.from) && kept.has(step.dataset.to));
      counts.activities = activities.filter((name) => kept.has(name)).length;
      counts.paths = seen.filter(Boolean).length;
      for (const tell of tells) tell();
      for (const part of parts("[data-step]")) {
        const { from, to } = steps[part.dataset.step].dataset;
        part.classList.toggle("off", !seen[part.dataset.step]);
        part.classList.toggle("faint", picked !== null && from !== picked && to !== picked);
      }
    };
    const bar = made("div", { className: "map-bar" });
    const size = picture.getAttribute("viewBox").split(" ").slice(2).map(Number);
    const whole = () => Math.min(1, map.clientWidth / size[0]);
    const zoom = (to) => {
      scale = Math.min(3, Math.max(0.2, to));
      picture.setAttribute("width", Math.floor(size[0] * scale));
      picture.setAttribute("height", Math.floor(size[1] * scale));
      for (const hint of all(".narrow")) hint.style.display = map.scrollWidth > map.clientWidth ? "revert" : "none";
    };
    for (const [name, to] of [["smaller", () => scale * 0.8], ["larger", () => scale * 1.25], ["whole", whole]]) {
      const button = made("button", { type: "button", textContent: said(name) });
      button.setAttribute("aria-label", `${said(name)}: ${picture.getAttribute("aria-label")}`);
      button.addEventListener("click", () => zoom(to()));
      bar.append(button);
    }
    const slider = (name, most, value, follow) => {
      const says = made("span", { className: "dim" });
      const range = made("input", { type: "range", min: 1, max: most, value });
      range.addEventListener("input", () => {
        follow(Number(range.value));
        show();
      });
      tells.push(() => {
        says.textContent = ` ${said("some", { n: counts[name], most })}`;
      });
      if (most > 1) bar.append(made("label", {}, said(name), says, range));
    };
    slider("activities", activities.length, shown, (value) => { shown = value; });
    slider("paths", steps.length, drawn, (value) => { drawn = value; });
    // An activity that is picked: what touches it, and the variants that have it.
    picture.setAttribute("role", "group");
    for (const box of boxes) {
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", said("only", { activity: box.dataset.activity }));
      const pick = () => {
        picked = picked === box.dataset.activity ? null : box.dataset.activity;
        show();
        const search = document.getElementById("search");
        if (search) {
          search.value = picked || "";
          search.dispatchEvent(new Event("input"));
        }
      };
      box.addEventListener("click", pick);
      box.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        pick();
      });
    }
    show();
    map.before(bar);
    zoom(Math.max(0.7, whole()));
    // A map that is wider than the window opens where cases start.
    const start = map.querySelector(".end");
    if (!start) return;
    const [box, around] = [start.getBoundingClientRect(), map.getBoundingClientRect()];
    map.scrollLeft += (box.left + box.right - around.left - around.right) / 2;
  };
  // They lie far below: the page is there before they are measured.
  addEventListener("load", () => setTimeout(() => all("[data-flow]").forEach(lively)));

  // Find variants by their activities.
  const search = document.getElementById("search");
  if (search) {
    const rows = all(".variant");
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      if (wanted) for (const rest of all(".rest")) rest.open = true;
      for (const row of rows) {
        const chain = row.querySelector(".chain");
        const names = [chain.textContent, ...Array.from(chain.querySelectorAll("[title]"), (one) => one.title)];
        row.hidden = !names.some((name) => name.toLowerCase().includes(wanted));
        shown += row.hidden ? 0 : 1;
      }
      put(document.getElementById("found"), wanted ? said("some", { n: shown, most: rows.length }) : "");
    });
  }

  // Where the dry run gets no answer, it must not look like the old one.
  const unanswered = () => {
    const plan = document.getElementById("plan");
    const warning = document.createElement("p");
    warning.className = "warning";
    warning.textContent = said("unanswered");
    plan.replaceChildren(warning);
  };
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:responseError", unanswered);
})();
