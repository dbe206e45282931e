# The tests need a Python with shoal: SHOAL_PYTHON, or what install_shoal has made.
ready <- function() {
  testthat::skip_if(inherits(try(shoal:::python(), silent = TRUE), "try-error"), "there is no Python with shoal")
}

people <- function(n = 200) {
  set.seed(1)
  pick <- function(values) sample(values, n, TRUE)
  data <- data.frame(
    name = paste("person", seq_len(n)),
    age = pick(18:80),
    zip = factor(pick(c("c", "a", "\u00e9")), levels = c("unused", "\u00e9", "c", "a")),
    health = factor(pick(c("poor", "fair", "good")), levels = c("poor", "fair", "good"), ordered = TRUE),
    born = as.Date("1960-01-01") + pick(9000),
    seen = as.POSIXct("2020-01-01", tz = "Europe/Vienna") + pick(1e6),
    income = ifelse(runif(n) < 0.1, NA, rexp(n)),
    ill = pick(c(TRUE, FALSE, NA)),
    note = pick(c("\u65e5\u672c", "", "say \"no\"\n", NA)),
    wait = as.difftime(pick(c(1.5, 60)), units = "mins"),
    row.names = paste("row", seq_len(n))
  )
  data$region <- structure(pick(c(1, 2)), class = c("haven_labelled", "vctrs_vctr", "double"), label = "Region",
                           labels = c(north = 1, south = 2, islands = 3))
  data
}
others <- c("income", "ill", "note", "wait")
release <- function(data = people(), k = 5, keyVars = c("zip", "health", "region"), numVars = c("age", "born", "seen"),
                    excludeVars = "name", other = others, seed = 1, ...) {
  ready()
  suppressMessages(suppressWarnings(anonymize(data, k, keyVars = keyVars, numVars = numVars, excludeVars = excludeVars,
                                              other = other, seed = seed, ...)))
}
smallest_class <- function(data) min(table(do.call(paste, data))[do.call(paste, data)])

test_that("a data frame comes back with its kinds of columns, in its order, with k", {
  data <- people()
  released <- release(data)
  expect_identical(names(released), setdiff(names(data), "name"))
  expect_identical(released[others], `rownames<-`(data[others], NULL))
  expect_gte(smallest_class(released[c("zip", "health", "region", "age", "born", "seen")]), 5)
  expect_identical(levels(released$zip), c("\u00e9", "c", "a"))
  expect_identical(levels(released$health), levels(data$health))
  expect_true(is.ordered(released$health))
  expect_s3_class(released$born, "Date")
  expect_identical(attr(released$seen, "tzone"), "Europe/Vienna")
  expect_lt(abs(as.numeric(mean(released$seen)) - as.numeric(mean(data$seen))), 1)
  expect_identical(attr(released$region, "label"), "Region")
  expect_identical(attr(released$region, "labels"), c(north = 1, south = 2))
  expect_identical(class(released$region), class(data$region))
})

test_that("a release is made after an earlier one of the same people, and says less of those it must withhold", {
  ready()
  folder <- tempfile("series-")
  dir.create(folder)
  survey <- function(ids) data.frame(id = ids, age = 18 + (ids * 7919) %% 60, income = (ids * 104729) %% 1000)
  of <- function(ids, name, ...) {
    suppressMessages(anonymize(survey(ids), 5, numVars = c("age", "income"), key = "id", seed = 1,
                               file = file.path(folder, name), open = FALSE, ...))
  }
  of(1:200, "a.csv", reserve = 0.1)
  cells <- file.path(folder, "a.csv.cells")
  expect_true(file.exists(cells))
  expect_error(of(2:200, "b.csv", after = cells), "may_withhold = 0", class = "shoal_guarantee_error")
  second <- of(2:200, "b.csv", after = cells, may_withhold = 0.1)
  expect_lt(nrow(second), 199)
  expect_gt(nrow(second), 180)
  expect_gte(smallest_class(second), 5)
})

test_that("the visits of a person stay linked by new identifiers", {
  ready()
  visits <- data.frame(patient = rep(1:60, each = 2), day = rep(c(1, 30), 60), age = rep(20 + (1:60) %% 30, each = 2))
  released <- suppressMessages(suppressWarnings(
    anonymize(visits, 3, numVars = c("day", "age"), subject = "patient", keep_link = "subject", link_order = "day",
              seed = 1, open = FALSE)))
  expect_identical(sort(unique(as.numeric(table(released$patient)))), 2)
})

test_that("means keep their totals to the last bits, and a seed repeats", {
  data <- people()
  expect_equal(sum(release(data)$age), sum(data$age), tolerance = 1e-14)
  expect_identical(release(data), release(data))
})

test_that("doubles and texts cross unchanged", {
  odd <- c(5e-324, .Machine$double.xmax, 0.1 + 0.2, -0, 2^53 + 2, pi)
  data <- data.frame(age = rep(1:2, 3), exact = odd, text = c("NA", "", NA, " \u00fc ", "a,b", "\\"))
  expect_identical(release(data, 2, NULL, "age", NULL, c("exact", "text"))[-1], data[-1])
})

test_that("a row name, an unused level and an attribute do not leave", {
  data <- people()
  names(data$income) <- NULL
  attr(data$age, "source") <- "planted"
  levels(data$zip)[1] <- "planted"
  rownames(data)[7] <- "planted"
  expect_false(any(grepl("planted", rawToChar(serialize(release(data), NULL, ascii = TRUE)))))
})

test_that("tibbles and data.tables stay what they are", {
  data <- people()
  for (kind in list(c("tbl_df", "tbl", "data.frame"), c("data.table", "data.frame"))) {
    expect_identical(class(release(structure(data, class = kind))), kind)
  }
  expect_identical(class(release(structure(data, class = c("grouped", "data.frame")))), "data.frame")
})

test_that("values declared missing are missing", {
  data <- data.frame(age = rep(1:2, 30))
  data$income <- structure(rep(c(1, 2, -9), 20), class = c("haven_labelled_spss", "haven_labelled", "vctrs_vctr", "double"),
                           labels = c(refused = -9), na_values = -9)
  expect_error(release(data, 3, NULL, "age", NULL, NULL, quasi_identifiers = "income"), 'columns = list(income = list(kind = "numeric"))',
               fixed = TRUE, class = "shoal_question_error")
  released <- release(data, 3, NULL, c("age", "income"), NULL, NULL)
  expect_equal(sum(is.na(released$income)), 20)
})

test_that("settings reach Python", {
  data <- people()
  released <- release(data, columns = list(age = list(top = 60)), models = list(list(model = "l-diversity", column = "ill", l = 2)),
                      other = setdiff(others, "ill"), sensibleVar = "ill", missing = "own-value")
  expect_lte(max(released$age), 60)
  coded <- release(transform(data, age = ifelse(age > 60, -9, age)), columns = list(age = list(missing_codes = -9)),
                   missing = "own-value")
  expect_gte(sum(is.na(coded$age)), 5)
  expect_error(release(data, objective = "nothing"), class = "shoal_parameter_error")
  expect_error(release(data, columns = list(age = list(top = sum))), class = "shoal_parameter_error")
})

test_that("errors and warnings are conditions, and name columns", {
  ready()
  data <- people()
  expect_error(release(data[1:3, ]), "only 3 records", class = "shoal_guarantee_error")
  expect_error(release(data, other = NULL), "'income'", class = "shoal_schema_error")
  expect_error(release(data, k = "many"), class = "shoal_parameter_error")
  expect_error(anonymize(as.matrix(1:3), 2), class = "shoal_parameter_error")
  expect_error(anonymize(data), "k is missing", class = "shoal_error")
  data$list <- as.list(seq_len(nrow(data)))
  expect_error(release(data, other = c(others, "list")), "'list'", class = "shoal_schema_error")
  few <- data.frame(age = 1:9, income = 1:9)
  expect_warning(suppressMessages(anonymize(few, 3, numVars = "age", sensibleVar = "income")), "income", class = "shoal_warning")
})

test_that("files are written with their report, all or none", {
  file <- file.path(folder <- tempfile("out"), "r.csv")
  dir.create(folder)
  release(file = file, report = file.path(folder, "r.html"), save_job = file.path(folder, "job.toml"))
  expect_setequal(list.files(folder),
                  c("r.csv", "r.csv.public.json", "r.csv.internal.json", "r.html", "job.toml"))
  expect_equal(nrow(read.csv(file)), 200)
  expect_error(release(file = file), class = "shoal_file_error")
  alone <- file.path(folder, "alone.html")
  release(report = alone)
  expect_match(paste(readLines(alone, warn = FALSE), collapse = ""), "<html")
})

test_that("no folder stays behind, after an error too", {
  release()
  try(release(k = 10000), silent = TRUE)
  expect_identical(list.files(tempdir(), "^shoal-"), character())
})

test_that("a Python without shoal is named, with the remedy", {
  before <- Sys.getenv("SHOAL_PYTHON", NA)
  on.exit(if (is.na(before)) Sys.unsetenv("SHOAL_PYTHON") else Sys.setenv(SHOAL_PYTHON = before))
  Sys.setenv(SHOAL_PYTHON = file.path(tempdir(), "no python"))
  expect_error(suppressWarnings(anonymize(people(), 5, numVars = "age")), "install_shoal", class = "shoal_python_error")
  expect_error(install_shoal(python = "no-such-python"), "3.11", class = "shoal_python_error")
})

test_that("k is counted again in the data frame", {
  expect_error(shoal:::recount(data.frame(a = c(1, 1, 2, 2), b = c("x", "x", "x", NA)), 2), class = "shoal_recount_error")
  expect_silent(shoal:::recount(data.frame(a = c(1, 1, 2, 2), b = c("x", "x", NA, NA)), 2))
})

test_that("JSON says what R says", {
  given <- list(a = 1L, b = c("x", "\"\\\n\u00e9"), c = list(), d = list(e = TRUE, f = NULL), g = 0.1, h = NA, i = c(j = 2))
  expect_identical(shoal:::to_json(given),
                   "{\"a\":1,\"b\":[\"x\",\"\\u0022\\u005c\\u000a\u00e9\"],\"c\":[],\"d\":{\"e\":true,\"f\":null},\"g\":0.10000000000000001,\"h\":null,\"i\":{\"j\":2}}")
})
