# Python: where it is, how it gets there, and how it is run.

# Install shoal for Python in an environment of its own; `from` may also be a checkout, a wheel or a folder of wheels.
install_shoal <- function(from = "shoal-privacy", python = NULL) {
  candidates <- c(python, if (is.null(python)) c("python3", "python", paste0("python3.", 15:11), "py"))
  found <- Filter(is_recent, Sys.which(candidates))
  if (!length(found)) {
    refuse(paste("No Python 3.11 or newer was found. Install it from python.org or by your IT department, or name it:",
                 "install_shoal(python = \"path/to/python\")."), classes = "PythonError")
  }
  folder <- environment_folder()
  message("shoal for Python is installed in ", folder, ".")
  ended <- run(found[[1]], c("-m", "venv", "--clear", shQuote(folder)))
  wheels <- dir.exists(from) && length(list.files(from, "\\.whl$"))
  what <- if (wheels) c("--no-index", "--find-links", shQuote(from), "shoal-privacy") else shQuote(from)
  if (ended == 0) ended <- run(python_in(folder), c("-m", "pip", "install", "--disable-pip-version-check", what))
  if (ended != 0) {
    unlink(folder, recursive = TRUE)
    refuse("shoal for Python could not be installed; the messages above say why. Nothing was left behind.",
           classes = "PythonError")
  }
  invisible(python_in(folder))
}

# The one named by SHOAL_PYTHON, else that of `install_shoal`.
python <- function() {
  named <- Sys.getenv("SHOAL_PYTHON")
  if (nzchar(named)) return(named)
  ours <- python_in(environment_folder())
  if (file.exists(ours)) return(ours)
  if (interactive() && isTRUE(utils::askYesNo("shoal for Python is not installed. Install it now?"))) return(install_shoal())
  refuse(paste("shoal for Python is not installed. Run shoal::install_shoal(), or set the environment variable",
               "SHOAL_PYTHON to a Python that has it."), classes = "PythonError")
}

environment_folder <- function() file.path(tools::R_user_dir("shoal", "data"), "python")

python_in <- function(folder) {
  if (.Platform$OS.type == "windows") file.path(folder, "Scripts", "python.exe") else file.path(folder, "bin", "python")
}

run <- function(...) without_libraries_of_r(system2(...))

# R puts its own folders first in LD_LIBRARY_PATH, with the system's, where Python would find another libpython.
without_libraries_of_r <- function(started) {
  before <- Sys.getenv("LD_LIBRARY_PATH", NA)
  if (is.na(before)) return(started)
  on.exit(Sys.setenv(LD_LIBRARY_PATH = before))
  folders <- strsplit(before, ":")[[1]]
  ours <- startsWith(folders, R.home()) | grepl("^/(usr/)?lib(64)?(/|$)", folders)
  Sys.setenv(LD_LIBRARY_PATH = paste(folders[!ours], collapse = ":"))
  force(started)
}

is_recent <- function(python) {
  if (!nzchar(python)) return(FALSE)
  asked <- c("-c", shQuote("import sys, venv; sys.exit(sys.version_info < (3, 11))"))
  suppressWarnings(run(python, asked, stdout = FALSE, stderr = FALSE)) == 0
}

# Python writes a line at least four times a second. So an interrupt is noticed here, and the end of R there.
run_bridge <- function(python, folder, progress) {
  command <- paste(shQuote(python), "-I", "-X", "utf8", shQuote(bridge()), shQuote(folder))
  lines <- without_libraries_of_r(pipe(command, "r"))
  on.exit(close(lines))
  bar <- NULL
  while (length(line <- readLines(lines, 1))) {
    done <- as.numeric(strsplit(line, " ")[[1]])
    if (progress && length(done) == 2 && done[2] > 0) {
      if (is.null(bar)) bar <- utils::txtProgressBar(0, done[2], style = 3)
      utils::setTxtProgressBar(bar, done[1])
    }
  }
  if (!is.null(bar)) close(bar)
  if (!file.exists(file.path(folder, "outcome"))) {
    log <- file.path(folder, "log")
    said <- if (file.exists(log)) readLines(log, warn = FALSE) else character()
    refuse(paste(c(sprintf("Python ended without a result (%s). Check that it has shoal: shoal::install_shoal().", python),
                   utils::tail(said, 5)), collapse = "\n"), classes = "PythonError")
  }
}

bridge <- function() system.file("bridge.py", package = "shoal", mustWork = TRUE)
