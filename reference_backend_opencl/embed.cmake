# Writes OUTPUT: the FILES of FOLDER, <family>/<topic>.cl, as bytes of a C program, and the function that finds them by
# that path without its ending.
# Bytes and not string literals, whose length compilers need not take.
set(text "/* Generated from the .cl files by embed.cmake. */\n#include <string.h>\n\n#include \"runtime/ocl.h\"\n\n")
foreach(file IN LISTS FILES)
  string(REGEX REPLACE "[.]cl$" "" path ${file})
  string(REPLACE "/" "_" name ${path})
  file(READ ${FOLDER}/${file} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "static const char ${name}_source[] = {\n    ${bytes} 0};\n\n")
  string(APPEND table "      {\"${path}\", ${name}_source},\n")
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
