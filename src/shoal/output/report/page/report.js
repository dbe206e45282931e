(function () {
  var button = document.getElementById("theme"), root = document.documentElement;
  function dark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function name() { button.textContent = dark() ? "Light" : "Dark"; }
  button.hidden = false;
  button.addEventListener("click", function () {
    root.setAttribute("data-theme", dark() ? "light" : "dark");
    name();
  });
  name();
})();
