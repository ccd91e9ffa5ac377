# Writes OUTPUT: the files FOLDER/<name>.cl of NAMES as bytes of a C program, and the function that finds them.
# Bytes and not string literals, whose length compilers need not take.
set(text "/* Generated from the .cl files by embed.cmake. */\n#include <string.h>\n\n#include \"ocl.h\"\n\n")
foreach(name IN LISTS NAMES)
  file(READ ${FOLDER}/${name}.cl hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "static const char ${name}_source[] = {\n    ${bytes} 0};\n\n")
  string(APPEND table "      {\"${name}\", ${name}_source},\n")
endforeach()
string(APPEND text "const char *ocl_kernel_source(const char *name) {
  static const struct {
    const char *name, *source;
  } files[] = {
${table}  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    if (strcmp(name, files[i].name) == 0) return files[i].source;
  }
  return NULL;
}
")
file(WRITE ${OUTPUT} "${text}")
