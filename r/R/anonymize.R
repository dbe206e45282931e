# One release: the data frame goes to Python, what may be published comes back, and its k is counted once more.

anonymize <- function(data, k, keyVars = NULL, numVars = NULL, sensibleVar = NULL, excludeVars = NULL, other = NULL,
                      weightVar = NULL, hhId = NULL, strataVar = NULL, key = NULL, ..., file = NULL, report = NULL,
                      save_job = NULL, force = FALSE, open = interactive(), progress = interactive()) {
  if (!is.data.frame(data)) refuse("'data' is not a data frame. Convert it by as.data.frame().")
  if (missing(k)) refuse("k is missing. Give the smallest number of records in a class, such as k = 5.")
  more <- list(...)
  is_date <- vapply(numVars, function(name) inherits(data[[name]], c("Date", "POSIXt")), NA)
  more$quasi_identifiers <- c(more$quasi_identifiers, numVars[is_date])  # numVars of Python are numbers alone
  named <- list(k = k, keyVars = keyVars, numVars = numVars[!is_date], confidential = sensibleVar, identifiers = excludeVars,
                other = other, weightVar = weightVar, hhId = hhId, strataVar = strataVar, key = key)
  if (open && is.null(report)) report <- tempfile("report-", fileext = ".html")
  paths <- lapply(list(path = file, report = report, save_job = save_job), full_path)

  folder <- tempfile("shoal-")
  dir.create(folder, mode = "0700")
  on.exit(unlink(folder, recursive = TRUE))
  columns <- Map(function(x, name, place) column_to_python(x, name, file.path(folder, place)),
                 unclass(data), names(data), seq_along(data))
  asked <- list(columns = unname(columns), records = nrow(data), settings = present(c(named, more)),
                writing = present(c(paths, force = force)))
  writeLines(to_json(asked), file.path(folder, "call.json"), useBytes = TRUE)
  run_bridge(python(), folder, progress)

  answer <- function(name) read_texts(file.path(folder, name))
  outcome <- answer("outcome")
  for (text in answer("warnings")) warn(text)
  if (outcome[1] != "release") refuse(outcome[1], classes = outcome[-1])
  names <- answer("names")
  n <- as.numeric(outcome[3])  # fewer than there were, if some are withheld
  released <- lapply(seq_along(names), function(place) {
    column_to_r(file.path(folder, paste0("released-", place)), n, data[[names[place]]])
  })
  released <- as_frame_like(data, n, stats::setNames(released, names))
  recount(released[answer("classes")], as.numeric(outcome[2]))
  message(paste(outcome[-(1:3)], collapse = "\n"))
  if (open) utils::browseURL(report)
  released
}

# What leaves is counted here as well: the columns have been converted since Python counted them.
recount <- function(quasi, k) {
  if (is.na(k) || nrow(quasi) == 0) return(invisible())
  classes <- rep(1, nrow(quasi))
  for (column in quasi) {
    codes <- match(column, unique(column))
    both <- classes * (max(codes) + 1) + codes
    classes <- match(both, unique(both))
  }
  smallest <- min(tabulate(classes))
  if (smallest < k) {
    refuse(sprintf("The data frame has a class of %d records, and k is %d. Nothing was released. This is a fault of shoal.",
                   smallest, k), classes = c("RecountError", "GuaranteeError"))
  }
}

full_path <- function(path) {
  if (is.null(path)) NULL else file.path(normalizePath(dirname(path), mustWork = FALSE), basename(path))
}

present <- function(settings) Filter(Negate(is.null), settings)

# Conditions: of classes shoal_error, and shoal_guarantee_error, shoal_schema_error ... as Python's are called.
refuse <- function(message, classes = "ParameterError") {
  classes <- paste0("shoal_", sub("error", "_error", tolower(classes)))
  stop(structure(list(message = message, call = NULL), class = unique(c(classes, "shoal_error", "error", "condition"))))
}

warn <- function(message) {
  warning(structure(list(message = message, call = NULL), class = c("shoal_warning", "warning", "condition")))
}
