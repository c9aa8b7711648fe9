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

  // A range from 0.01 to 10 beside its number: each follows the other.
  for (const range of all("input[data-for]")) {
    const number = document.getElementById(range.dataset.for);
    const follow = () => {
      const value = parseFloat(number.value.replace(",", "."));
      if (value > 0) range.value = Math.round(100 * (Math.log10(value) + 2));
      range.setAttribute("aria-valuetext", "epsilon " + number.value);
    };
    range.hidden = false;
    range.addEventListener("input", () => {
      number.value = Number((10 ** (range.value / 100 - 2)).toPrecision(2)).toString();
      range.setAttribute("aria-valuetext", "epsilon " + number.value);
    });
    number.addEventListener("input", follow);
    follow();
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

  // Progress: the same words as on the page that the server makes.
  const doing = (job) => {
    if (job.state === "queued") {
      if (!job.ahead) return "Waiting to begin.";
      return `Waiting: ${job.ahead} ${job.ahead === 1 ? "job is" : "jobs are"} before it.`;
    }
    return job.text ? job.text[0].toUpperCase() + job.text.slice(1) : "At work.";
  };
  const left = (seconds) => {
    if (seconds === null || seconds === undefined || seconds < 0) return "";
    if (seconds < 90) return `About ${Math.max(1, Math.round(seconds))} seconds left`;
    return `About ${Math.round(seconds / 60)} minutes left`;
  };
  const put = (element, text) => {
    if (element && element.textContent !== text) element.textContent = text;
  };
  for (const box of all("[data-events]")) {
    const source = new EventSource(box.dataset.events);
    const bar = box.querySelector("[data-bar]");
    source.addEventListener("progress", (event) => {
      const job = JSON.parse(event.data);
      put(box.querySelector("[data-text]"), doing(job));
      put(box.querySelector("[data-left]"), left(job.left));
      if (job.fraction === null || job.fraction === undefined) bar.removeAttribute("value");
      else bar.value = job.fraction;
    });
    source.addEventListener("done", () => {
      source.close();
      location.reload();
    });
    addEventListener("pagehide", () => source.close());
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
