# Splits a page into its fenced blocks. Usage: awk -v out=FOLDER -f blocks.awk PAGE.md
#
# Block N becomes FOLDER/N; FOLDER/index has a line per block: "N LANGUAGE PATH", PATH being the block's title="…", or "-".
/^```/ && !inside {
  inside = 1
  name = sprintf("%03d", ++count)
  language = $1
  sub(/^```/, "", language)
  if (language == "") language = "-"
  path = "-"
  if (match($0, /title="[^"]*"/)) path = substr($0, RSTART + 7, RLENGTH - 8)
  print name, language, path > (out "/index")
  printf "" > (out "/" name)
  next
}
/^```/ { inside = 0; close(out "/" name); next }
inside { print > (out "/" name) }
