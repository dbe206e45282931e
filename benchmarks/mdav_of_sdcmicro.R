# Run the MDAV of sdcMicro on a matrix, and print the processor seconds of a call, the mean of those in each run.
# Rscript mdav_of_sdcmicro.R LIBRARY k runs matrix.csv out.csv
# LIBRARY is "package", or a shared library with the function Mdav of sdcMicro's sources (src/Mdav.h).
arguments <- commandArgs(TRUE)
k <- as.integer(arguments[2])
X <- as.matrix(read.csv(arguments[4]))
if (arguments[1] == "package") {
  made <- function() as.matrix(sdcMicro::mdav(as.data.frame(X), variables = colnames(X), K = k))
} else {
  loadNamespace("Rcpp")
  dyn.load(arguments[1])
  made <- function() .Call("Mdav", X, X + NA, -999, rep(1, ncol(X)), k)$Res
}
for (run in seq_len(as.integer(arguments[3]))) {
  calls <- 0
  used <- 0
  while (used < 0.1) {  # the clock counts milliseconds
    time <- system.time(found <- made())
    used <- used + time[["user.self"]] + time[["sys.self"]]
    calls <- calls + 1
  }
  cat(used / calls, "\n")
}
write.csv(format(found, digits = 17), arguments[5], row.names = FALSE, quote = FALSE)
