// What forms cannot do: progress as it happens, saving while one types, a filter without a reload, a map to click.
(function () {
  "use strict";

  // Put what the server now shows into the parts of the page that may change, and the number of the job into all forms.
  function refresh(text) {
    var fresh = new DOMParser().parseFromString(text, "text/html");
    document.querySelectorAll("[data-live]").forEach(function (part) {
      var other = fresh.getElementById(part.id);
      if (!other || (part.dataset.live === "once" && part.children.length)) return;
      part.replaceChildren.apply(part, Array.from(other.childNodes));
    });
    var at = fresh.querySelector("input[name=at]");
    if (at) document.querySelectorAll("input[name=at]").forEach(function (field) { field.value = at.value; });
    begin();
  }

  // Show another page in place of this one: it says why something could not be done.
  function show(text) {
    var fresh = new DOMParser().parseFromString(text, "text/html");
    ["main", "job-state"].forEach(function (id) {
      var part = document.getElementById(id), other = fresh.getElementById(id);
      if (part && other) part.replaceChildren.apply(part, Array.from(other.childNodes));
    });
    document.getElementById("main").focus();
    begin();
  }

  function reload() {
    return fetch(location.pathname + location.search).then(function (answer) { return answer.text(); }).then(refresh);
  }

  function follow(run) {
    if (run.dataset.followed) return;
    run.dataset.followed = "yes";
    var source = new EventSource(run.dataset.events), parts = 0;
    source.addEventListener("progress", function (event) {
      var found = JSON.parse(event.data), bar = run.querySelector("progress");
      run.querySelector(".stage").textContent = found.stage;
      if (found.share === null) bar.removeAttribute("value"); else bar.value = found.share;
      if (found.parts > parts) { parts = found.parts; source.close(); reload(); }
    });
    source.addEventListener("end", function () { source.close(); reload(); });
  }

  // A change of a role or kind is saved at once, as a job of its own; those made meanwhile wait for their turn.
  var waiting = Promise.resolve(), unsaved = 0;

  function autosave(form) {
    if (form.dataset.saving) return;
    form.dataset.saving = "yes";
    form.addEventListener("change", function (event) {
      var field = event.target;
      if (!/^(role|kind)-/.test(field.name)) return;
      unsaved += 1;
      waiting = waiting.then(function () {
        var said = form.querySelector(".saved"), body = new URLSearchParams();
        ["csrf", "at"].forEach(function (name) { body.set(name, form.elements[name].value); });
        body.set(field.name, field.value);
        return fetch(form.action, { method: "POST", body: body }).then(function (answer) {
          return answer.text().then(function (text) {
            if (!answer.ok) { show(text); return; }
            refresh(text);
            var row = field.closest("tr");
            row.classList.toggle("undecided", !form.elements[field.name.replace("kind", "role")].value);
            said.textContent = "Saved.";
          });
        });
      }).catch(function () {
        form.querySelector(".saved").textContent = "Not saved: shoal app does not answer. Start it again.";
      }).finally(function () { unsaved -= 1; });
    });
  }

  function filter(field) {
    if (field.dataset.filtering) return;
    field.dataset.filtering = "yes";
    field.addEventListener("input", function () {
      var wanted = field.value.toLowerCase();
      document.querySelectorAll(field.dataset.filter + " tbody tr").forEach(function (row) {
        row.hidden = row.dataset.name.indexOf(wanted) < 0;
      });
    });
  }

  function begin() {
    document.querySelectorAll("[data-events]").forEach(follow);
    document.querySelectorAll("form[data-autosave]").forEach(autosave);
    document.querySelectorAll("[data-filter]").forEach(filter);
  }

  // A link or a button waits too: a page that is left saves nothing more.
  document.addEventListener("click", function (event) {
    var target = event.target.closest && event.target.closest("a, button");
    if (!target || !unsaved) return;
    event.preventDefault();
    waiting.finally(function () { target.click(); });
  }, true);

  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest(".map a");
    if (!link) return;
    var row = document.getElementById(link.getAttribute("href").slice(1));
    document.querySelectorAll(".choices .chosen").forEach(function (other) { other.classList.remove("chosen"); });
    if (row) row.classList.add("chosen");
  });

  begin();
})();
