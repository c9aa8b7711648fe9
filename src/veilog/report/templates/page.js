(function () {
  "use strict";
  document.querySelectorAll(".map").forEach(function (map) {
    var first = map.querySelector(".end");
    if (!first) { return; }
    var start = first.getBoundingClientRect();
    var around = map.getBoundingClientRect();
    map.scrollLeft += (start.left + start.right - around.left - around.right) / 2;
  });
  function plain(text) { return text.replace(/\s+/g, " ").toLowerCase(); }
  var box = document.getElementById("search");
  var note = document.getElementById("found");
  var rows = Array.prototype.slice.call(document.querySelectorAll("[data-search]"));
  if (!box) { return; }
  box.closest("p").hidden = false;
  box.addEventListener("input", function () {
    var wanted = plain(box.value.trim());
    var shown = 0;
    var folded = document.querySelector("details.more [data-search]");
    if (folded && wanted) { folded.closest("details").open = true; }
    rows.forEach(function (row) {
      var fits = plain(row.getAttribute("data-search")).indexOf(wanted) !== -1;
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    note.textContent = wanted
      ? note.getAttribute("data-said").replace("{shown}", shown).replace("{all}", rows.length)
      : "";
  });
})();
