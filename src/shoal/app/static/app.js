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
    document.querySelectorAll('form[data-autosave="whole"]').forEach(function (form) { renew(form, fresh); });
    var at = fresh.querySelector("input[name=at]");
    if (at) document.querySelectorAll("input[name=at]").forEach(function (field) { field.value = at.value; });
    begin();
  }

  function shape(form) {
    return Array.from(form.elements).map(function (field) {
      return field.name + field.type + (field.options ? field.options.length : "");
    }).join();
  }

  // A form may have other fields than before: those of a household, once there is one; sheets, once they are known.
  function renew(form, fresh) {
    var other = fresh.querySelector('form[data-autosave][action="' + form.getAttribute("action") + '"]');
    if (!other || form.dataset.typed || shape(other) === shape(form)) return;
    var focused = document.activeElement && document.activeElement.id;
    form.replaceChildren.apply(form, Array.from(other.childNodes));
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
  }

  // Show another page in place of this one: it says why something could not be done.
  function show(text) {
    var fresh = new DOMParser().parseFromString(text, "text/html");
    ["main", "job-state"].forEach(function (id) {
      var part = document.getElementById(id), other = fresh.getElementById(id);
      if (part && other) part.replaceChildren.apply(part, Array.from(other.childNodes));
    });
    (document.querySelector("[aria-invalid]") || document.getElementById("main")).focus();
    begin();
  }

  function reload() {
    return fetch(location.pathname + location.search).then(function (answer) { return answer.text(); }).then(refresh);
  }

  function follow(run) {
    if (run.dataset.followed) return;
    run.dataset.followed = "yes";
    var source = new EventSource(run.dataset.events), parts = Number(run.dataset.parts);
    source.addEventListener("progress", function (event) {
      var found = JSON.parse(event.data), bar = run.querySelector("progress");
      run.querySelector(".stage").textContent = found.stage;
      if (found.share === null) bar.removeAttribute("value"); else bar.value = found.share;
      if (found.parts > parts) { source.close(); reload(); }
    });
    source.addEventListener("end", function () { source.close(); reload(); });
    source.addEventListener("error", ask);
  }

  // A change is saved at once, as a job of its own; those made meanwhile wait for their turn.
  var waiting = Promise.resolve(), unsaved = 0, refused = false;

  // What is sent: all fields of a form, or the one that was changed in a form of many columns.
  function content(form, field) {
    if (form.dataset.autosave === "whole") return new URLSearchParams(new FormData(form));
    var body = new URLSearchParams();
    ["csrf", "at"].forEach(function (name) { body.set(name, form.elements[name].value); });
    body.set(field.name, field.value);
    return body;
  }

  function autosave(form) {
    if (form.dataset.saving) return;
    form.dataset.saving = "yes";
    form.addEventListener("input", function () { form.dataset.typed = "yes"; });
    form.addEventListener("change", function (event) {
      var field = event.target, whole = form.dataset.autosave === "whole";
      if (whole ? field.value === "other:" : !/^(role|kind)-/.test(field.name)) return;
      unsaved += 1;
      waiting = waiting.then(function () {
        delete form.dataset.typed;
        return fetch(form.action, { method: "POST", body: content(form, field) }).then(function (answer) {
          return answer.text().then(function (text) {
            refused = !answer.ok;
            if (refused) { show(text); return; }
            form.querySelectorAll("[aria-invalid]").forEach(function (wrong) { wrong.removeAttribute("aria-invalid"); });
            form.querySelectorAll(".wrong").forEach(function (told) { told.textContent = ""; });
            refresh(text);
            if (!whole) field.closest("tr").classList.toggle("undecided", !form.elements[field.name.replace("kind", "role")].value);
            form.querySelector(".saved").textContent = "Saved.";
          });
        });
      }).catch(function () {
        form.querySelector(".saved").textContent = "Not saved: shoal app does not answer. Start it again.";
      }).finally(function () { unsaved -= 1; });
    });
  }

  // What was typed into a field that is still open when the page is left.
  window.addEventListener("pagehide", function () {
    document.querySelectorAll('form[data-autosave="whole"][data-typed]').forEach(function (form) {
      navigator.sendBeacon(form.action, content(form));
    });
  });

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
    waiting.finally(function () { if (!refused) target.click(); });
  }, true);

  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest(".map a");
    if (!link) return;
    var row = document.getElementById(link.getAttribute("href").slice(1));
    document.querySelectorAll(".choices .chosen").forEach(function (other) { other.classList.remove("chosen"); });
    if (row) row.classList.add("chosen");
  });

  // Whether the app still answers; a page that nobody sees does not ask.
  var connection = document.getElementById("connection"), asking = false, lost = false;

  function tell(text) {
    var told = document.createElement("p");
    told.textContent = text;
    connection.replaceChildren(told);
  }

  function ask() {
    if (asking || document.hidden) return;
    asking = true;
    var stop = new AbortController(), late = setTimeout(function () { stop.abort(); }, 4000);
    fetch(connection.dataset.alive, { signal: stop.signal }).then(function (answer) {
      if (!answer.ok) throw new Error();
      if (!lost) return;
      lost = false;
      connection.classList.remove("lost");
      tell(connection.dataset.back);
      setTimeout(function () { if (!lost) connection.replaceChildren(); }, 6000);
      reload();
    }).catch(function () {
      if (!lost) tell(connection.dataset.lost);
      lost = true;
      connection.classList.add("lost");
    }).finally(function () { clearTimeout(late); asking = false; });
  }

  if (connection) {
    setInterval(ask, 3000);
    document.addEventListener("visibilitychange", ask);
  }

  begin();
})();
