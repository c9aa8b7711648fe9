// What makes the pages livelier. Each of them works without it.
"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));

  for (const element of all("[data-nojs]")) element.hidden = true;
  for (const element of all("[data-scale], .search")) element.hidden = false;

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

  // What a budget lets anybody gain: tanh(ε / 4) without a delta, and about as much more with one.
  for (const box of all("[data-advantage]")) {
    const [epsilon, delta] = ["epsilon", "delta"].map((id) => document.getElementById(id));
    const value = (field) => (field ? parseFloat(field.value.replace(",", ".")) || 0 : 0);
    const words = [[0.1, "Strong", "good"], [0.25, "Good", "good"], [0.5, "Moderate", "warn"], [0.75, "Weak", "bad"]];
    const show = () => {
      const [eps, fail] = [value(epsilon), value(delta)];
      if (!(eps > 0)) return;
      const [r, u] = [Math.exp(-eps / 2), Math.sqrt(Math.max(0, 1 - fail))];
      const gain = u > r ? (u - r) ** 2 / (1 - r * r) + fail : fail;
      const [, word, tone] = words.find(([most]) => gain <= most) || [1, "None in practice", "bad"];
      put(box.querySelector("[data-word]"), word);
      const points = Number((100 * Math.min(1, gain)).toPrecision(3));
      put(
        box.querySelector("[data-points]"),
        `Lets anybody guess up to ${points} percentage points better who is in the log.`,
      );
      box.className = `strength ${tone}`;
    };
    for (const field of [epsilon, delta]) if (field) field.addEventListener("input", show);
    for (const range of all("input[data-for]")) range.addEventListener("input", show);
  }

  // The word for a budget that protects nobody is asked for only there.
  for (const field of all("[data-above]")) {
    const number = document.getElementById("epsilon");
    const show = () => {
      field.hidden = !(parseFloat(number.value.replace(",", ".")) > Number(field.dataset.above));
    };
    number.addEventListener("input", show);
    show();
  }

  // What goes on is asked for again and again: a connection that stays open for each page would take all that a
  // browser has for one server.
  const put = (element, text) => {
    if (element && element.textContent !== text) element.textContent = text;
  };
  const fetched = async (address) => {
    const answer = await fetch(address);
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  };
  const again = (seconds, look) => {
    const next = async () => {
      if (document.hidden || !(await look().catch(() => false))) setTimeout(next, 1000 * seconds);
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
    });
  }
  for (const part of all("[data-live]")) {
    again(2, async () => {
      const now = (await fetched(location.href)).getElementById(part.id);
      const here = document.getElementById(part.id);
      if (here.querySelector("details[open]") || here.contains(document.activeElement)) return false;
      if (here.textContent !== now.textContent) here.replaceWith(document.adoptNode(now));
      return !now.hasAttribute("data-live");
    });
  }

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

  // A map that is wider than the window opens where cases start.
  for (const map of all(".map")) {
    const start = map.querySelector(".end");
    if (!start) continue;
    const [box, around] = [start.getBoundingClientRect(), map.getBoundingClientRect()];
    map.scrollLeft += (box.left + box.right - around.left - around.right) / 2;
  }

  // A map can be looked at from nearer or farther; without this it has its own size, and can be moved.
  for (const map of all(".map")) {
    const picture = map.querySelector("svg");
    const size = ["width", "height"].map((side) => Number(picture.getAttribute(side)));
    let scale = 1;
    const bar = Object.assign(document.createElement("p"), { className: "zoom" });
    for (const [words, factor] of [["Smaller", 0.8], ["Larger", 1.25]]) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
      button.setAttribute("aria-label", `${words}: ${picture.getAttribute("aria-label")}`);
      button.addEventListener("click", () => {
        scale = Math.min(3, Math.max(0.3, scale * factor));
        ["width", "height"].forEach((side, i) => picture.setAttribute(side, Math.round(size[i] * scale)));
      });
      bar.append(button);
    }
    map.before(bar);
  }

  // Find variants by their activities.
  const search = document.getElementById("search");
  if (search) {
    const rows = all(".variant");
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      if (wanted) for (const rest of all(".rest")) rest.open = true;
      for (const row of rows) {
        row.hidden = !row.querySelector(".chain").textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      put(document.getElementById("found"), wanted ? `${shown} of ${rows.length}` : "");
    });
  }

  // Where the dry run gets no answer, it must not look like the old one.
  const unanswered = () => {
    const plan = document.getElementById("plan");
    const words = document.createElement("p");
    words.className = "warning";
    words.textContent = "No answer: is the program still running? Reload the page.";
    plan.replaceChildren(words);
  };
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:responseError", unanswered);
})();
