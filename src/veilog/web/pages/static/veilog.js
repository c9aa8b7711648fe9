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

  // Maps that lie side by side are looked at together: from nearer or farther, the most frequent activities and paths
  // only, times in place of counts, and all that touches one activity. Without this they show all of it.
  const made = (name, facts, ...inside) => {
    const element = Object.assign(document.createElement(name), facts);
    element.append(...inside);
    return element;
  };
  const together = new Set(all("[data-map]").map((map) => map.closest(".maps") || map));
  const lively = (place) => {
    const maps = place.matches("[data-map]") ? [place] : Array.from(place.querySelectorAll("[data-map]"));
    const pictures = maps.map((map) => map.querySelector("svg"));
    const parts = (selector) => pictures.flatMap((picture) => Array.from(picture.querySelectorAll(selector)));
    const way = (part) => JSON.stringify([part.dataset.from, part.dataset.to]);
    // Of both maps, the larger share counts.
    const ranked = (selector, name) => {
      const most = new Map();
      for (const picture of pictures) {
        const found = Array.from(picture.querySelectorAll(selector));
        const sum = found.reduce((total, part) => total + Number(part.dataset.count), 0) || 1;
        for (const part of found) {
          most.set(name(part), Math.max(most.get(name(part)) || 0, Number(part.dataset.count) / sum));
        }
      }
      return [...most.keys()].sort((a, b) => most.get(b) - most.get(a));
    };
    const activities = ranked(".box", (box) => box.dataset.activity);
    const ways = ranked("path[data-from]", way);
    // The most frequent way into each activity from another one, and out of it, in each picture.
    const main = pictures.flatMap((picture) => ["from", "to"].map((end) => {
      const most = new Map();
      for (const part of picture.querySelectorAll("path[data-from]")) {
        const before = most.get(part.dataset[end]);
        const loop = part.dataset.from === part.dataset.to;
        const more = !before || Number(before.dataset.count) < Number(part.dataset.count);
        if (!loop && more) most.set(part.dataset[end], part);
      }
      return most;
    }));
    let [scale, picked, shown, drawn] = [1, null, activities.length, ways.length];
    const [counts, tells] = [{}, []];
    const show = () => {
      // What is shown keeps these ways, and what they lead over, however little is asked for.
      const kept = new Set([">", "<", ...activities.slice(0, shown)]);
      const often = new Set(ways.slice(0, drawn));
      for (const name of kept) {  // a set also hands out what is added meanwhile
        for (const part of main.map((most) => most.get(name)).filter(Boolean)) {
          often.add(way(part));
          kept.add(part.dataset.from).add(part.dataset.to);
        }
      }
      for (const box of parts(".box")) {
        box.classList.toggle("off", !kept.has(box.dataset.activity));
        box.classList.toggle("picked", box.dataset.activity === picked);
        box.setAttribute("aria-pressed", box.dataset.activity === picked);
      }
      counts.activities = kept.size - 2;
      counts.paths = [...often].filter((name) => JSON.parse(name).every((end) => kept.has(end))).length;
      for (const tell of tells) tell();
      for (const part of parts("[data-from]")) {
        const { from, to } = part.dataset;
        part.classList.toggle("off", !(kept.has(from) && kept.has(to) && often.has(way(part))));
        part.classList.toggle("faint", picked !== null && from !== picked && to !== picked);
      }
    };
    const bar = made("div", { className: "map-bar" });
    const sizes = pictures.map((picture) => picture.getAttribute("viewBox").split(" ").slice(2).map(Number));
    const whole = () => Math.min(1, ...maps.map((map, i) => map.clientWidth / sizes[i][0]));
    const zoom = (to) => {
      scale = Math.min(3, Math.max(0.2, to));
      pictures.forEach((picture, i) => {
        picture.setAttribute("width", Math.floor(sizes[i][0] * scale));
        picture.setAttribute("height", Math.floor(sizes[i][1] * scale));
      });
      const wider = maps.some((map) => map.scrollWidth > map.clientWidth);
      for (const hint of all(".narrow")) hint.style.display = wider ? "revert" : "none";
    };
    for (const [name, to] of [["smaller", () => scale * 0.8], ["larger", () => scale * 1.25], ["whole", whole]]) {
      const button = made("button", { type: "button", textContent: said(name) });
      button.setAttribute("aria-label", `${said(name)}: ${pictures.map((one) => one.getAttribute("aria-label")).join(", ")}`);
      button.addEventListener("click", () => zoom(to()));
      bar.append(button);
    }
    // What is moved in one is moved in the other.
    for (const map of maps) {
      map.addEventListener("scroll", () => {
        for (const other of maps) {
          if (Math.abs(other.scrollLeft - map.scrollLeft) > 1) other.scrollLeft = map.scrollLeft;
          if (Math.abs(other.scrollTop - map.scrollTop) > 1) other.scrollTop = map.scrollTop;
        }
      });
    }
    const slider = (name, most, follow) => {
      const says = made("span", { className: "dim" });
      const range = made("input", { type: "range", min: 1, max: most, value: most });
      const told = () => {
        says.textContent = ` ${said("some", { n: counts[name], most })}`;
      };
      range.addEventListener("input", () => {
        follow(Number(range.value));
        show();
      });
      tells.push(told);
      if (most > 1) bar.append(made("label", {}, said(name), says, range));
    };
    slider("activities", activities.length, (value) => { shown = value; });
    slider("paths", ways.length, (value) => { drawn = value; });
    if (parts(".long").length) {
      const box = made("input", { type: "checkbox" });
      box.addEventListener("change", () => {
        for (const map of maps) map.classList.toggle("times", box.checked);
      });
      bar.append(made("label", { className: "times-box" }, box, ` ${said("times")}`));
    }
    // An activity that is picked: what touches it, and the variants that have it.
    for (const picture of pictures) picture.setAttribute("role", "group");
    for (const box of parts(".box")) {
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
    place.before(bar);
    zoom(Math.max(0.7, whole()));
    // A map that is wider than the window opens where cases start.
    for (const map of maps) {
      const start = map.querySelector(".end");
      if (!start) continue;
      const [box, around] = [start.getBoundingClientRect(), map.getBoundingClientRect()];
      map.scrollLeft += (box.left + box.right - around.left - around.right) / 2;
    }
  };
  // They lie far below: the page is there before they are measured.
  addEventListener("load", () => setTimeout(() => together.forEach(lively)));

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
