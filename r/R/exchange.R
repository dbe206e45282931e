# How columns reach Python and come back: files of plain numbers and of texts that end in a zero byte, in a folder of
# their own. No number is written in decimal, so none is rounded, and no package of R is needed.

column_to_python <- function(x, name, path) {
  if (inherits(x, "POSIXlt")) x <- as.POSIXct(x)
  odd <- if (!is.null(dim(x))) "a matrix or a data frame"
         else if (inherits(x, "integer64")) "of class integer64"
         else if (!is.factor(x) && !(typeof(x) %in% c("logical", "integer", "double", "character"))) typeof(x)
  if (!is.null(odd)) {
    refuse(sprintf("Column '%s' is %s, which shoal cannot read. Convert it to numbers, text, a factor or dates.", name, odd),
           classes = "SchemaError")
  }
  type <- if (is.ordered(x)) "ordered" else if (is.factor(x)) "factor" else if (inherits(x, "Date")) "date"
          else if (inherits(x, "POSIXct")) "time" else typeof(x)
  writeBin(as.raw(is.na(x)), paste0(path, ".missing"))
  if (type == "character") {
    writeBin(enc2utf8(as.vector(x)), paste0(path, ".values"), useBytes = TRUE)
  } else {
    values <- as.vector(unclass(x))
    writeBin(if (type %in% c("date", "time")) as.double(values) else values, paste0(path, ".values"), endian = "little")
  }
  labels <- if (is.factor(x)) NULL else attr(x, "labels", exact = TRUE)
  na_range <- attr(x, "na_range", exact = TRUE)
  ranges <- c(if (!is.null(na_range)) list(as.list(as.vector(na_range))),
              lapply(attr(x, "na_values", exact = TRUE), function(value) list(value, value)))
  labelled <- labels[!is.na(labels)]
  list(name = enc2utf8(name), type = type, levels = as.list(if (is.factor(x)) levels(x)),
       label = attr(x, "label", exact = TRUE), labels = as.list(as.vector(labelled)),
       texts = as.list(names(labelled)), missing = as.list(ranges))
}

# `like` is the column that it replaces, NULL if there was none.
column_to_r <- function(path, n, like) {
  type <- read_texts(paste0(path, ".type"))
  missing <- readBin(paste0(path, ".missing"), "raw", n) != 0
  file <- paste0(path, ".values")
  values <- switch(type,
    character = read_texts(file),
    factor = , ordered = , integer = , logical = readBin(file, "integer", n, endian = "little"),
    readBin(file, "double", n, endian = "little")
  )
  values[missing] <- NA
  kept <- attributes(like)[c("label", "format.spss", "format.stata", "format.sas", "display_width")]
  if (type == "logical") values <- as.logical(values)
  if (type == "date") values <- structure(values, class = "Date")
  if (type == "time") values <- as.POSIXct(values, origin = "1970-01-01", tz = if (is.null(attr(like, "tzone"))) "" else attr(like, "tzone")[1])
  if (type %in% c("factor", "ordered")) {
    levels <- read_texts(paste0(path, ".levels"))
    values <- structure(values, levels = levels, class = c(if (type == "ordered") "ordered", "factor"))
    # The order of the levels is that of the data frame; levels that no record has any more are left out.
    if (is.factor(like) && all(levels %in% levels(like))) {
      values <- factor(values, levels(like)[levels(like) %in% levels], ordered = is.ordered(like))
    }
  }
  is_plain <- !is.factor(like) && !inherits(like, c("Date", "POSIXt"))
  if (is_plain && (type %in% c("integer", "double")) == (typeof(like) %in% c("integer", "double"))) {
    kept <- c(kept, attributes(like)[c("class", "units")])
    labels <- attr(like, "labels", exact = TRUE)
    if (!is.null(labels)) kept$labels <- labels[labels %in% values]
    # haven compares the types of values and labels.
    if (typeof(values) != typeof(labels) && !is.null(labels)) storage.mode(kept$labels) <- storage.mode(values)
    if (inherits(like, "haven_labelled_spss")) kept$class <- setdiff(kept$class, "haven_labelled_spss")
  }
  for (name in names(present(kept))) attr(values, name) <- kept[[name]]
  values
}

# The same kind of data frame, without row names: they are the names of persons more often than not.
as_frame_like <- function(data, n, columns) {
  kinds <- list(c("tbl_df", "tbl", "data.frame"), c("data.table", "data.frame"))
  kind <- Filter(function(kind) all(kind %in% class(data)), kinds)
  structure(columns, class = c(kind, list("data.frame"))[[1]], row.names = .set_row_names(n))
}

read_texts <- function(path) {
  size <- file.size(path)
  if (is.na(size) || size == 0) return(character())
  texts <- readBin(path, "character", size)  # at most one text a byte
  Encoding(texts) <- "UTF-8"
  texts
}

to_json <- function(x) {
  if (is.null(x)) return("null")
  if (is.list(x) || !is.null(names(x)) || length(x) != 1) {
    parts <- vapply(as.list(x), to_json, "")
    if (is.null(names(x))) return(paste0("[", paste(parts, collapse = ","), "]"))
    return(paste0("{", paste0(vapply(names(x), to_json, ""), ":", parts, collapse = ","), "}"))
  }
  if (is.factor(x)) x <- as.character(x)
  if (is.na(x)) return("null")
  if (is.character(x)) return(quoted(x))
  if (is.logical(x)) return(if (x) "true" else "false")
  if (is.numeric(x) && is.finite(x)) return(format(as.vector(x), digits = 17, scientific = abs(x) >= 1e15, trim = TRUE))
  refuse("A setting is neither a text, a number, TRUE or FALSE, nor a list or vector of these.")
}

quoted <- function(text) {
  characters <- strsplit(enc2utf8(text), "")[[1]]
  special <- characters %in% c("\\", "\"") | grepl("[[:cntrl:]]", characters)
  characters[special] <- sprintf("\\u%04x", vapply(characters[special], utf8ToInt, 1L))
  paste0("\"", paste(characters, collapse = ""), "\"")
}
