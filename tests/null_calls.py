#!/usr/bin/env python3
"""Calls of every public function with NULL in each place: null_calls.py FOLDER_OF_HEADERS OUTPUT

Reads the declarations of the headers, with what GRAFT_NULLABLE and GRAFT_NULL_GIVES say of them, and writes rows for
test_null_calls.c: the call of a function whose arguments are all good but for one, which is NULL (or a list of one item
that is NULL), and what the answer must be. A type that no good value is known for is an error here: add it to GOOD.
"""

import re
import sys
from pathlib import Path

# Good values, by the parameter's name (the few whose type does not tell) or by its type. good_* are functions of
# test_null_calls.c. A count is 1 everywhere.
BY_NAME = {"reduce": '"mean"', "op_id": "GRAFT_OP_ABS", "meta_bytes": "sizeof(graft_meta)",
           "row_bytes": "sizeof(graft_fallback_info)", "info_bytes": "sizeof(graft_graph_exec_info)",
           "port_bytes": "sizeof(graft_graph_port)"}
GOOD = {
    "const char *": '"reference"', "graft_rt_backend *": "good_backend()", "graft_rt_device *": "good_device()",
    "graft_rt_stream *": "good_stream()", "graft_rt_event *": "good_event()", "graft_generator *": "good_generator()",
    "graft_tensor *": "good_tensor()", "graft_tensor *const *": "good_tensors()", "graft_storage *": "good_storage()",
    "graft_view *": "good_view()", "graft_tensor_space *": "good_memory()", "graft_tensor_parts *": "good_memory()", "graft_value *": "good_values()",
    "graft_memory_statistics *": "good_statistics()", "graft_scalar *": "good_scalars()", "int64_t *": "good_ints()",
    "struct DLManagedTensorVersioned *": "good_dlpack()", "struct DLManagedTensor *": "good_dlpack_old()",
    "const char *const *": "NULL", "graft_hook_fn": "good_hook", "graft_profile_take_fn": "good_take", "graft_log_sink_fn": "NULL",
    "void *": "good_memory()",
    "graft_graph *": "good_graph()", "graft_graph_exec *": "good_exec()", "graft_graph_exec_info *": "good_memory()",
    "graft_graph_port *": "good_memory()", "graft_graph_pool *": "good_pool()",
    "graft_graph_capture *": "good_memory()", "graft_graph_stand_in *": "good_memory()",
    "graft_meta *": "good_memory()", "graft_fallback_info *": "good_memory()", "graft_custom_op_info *": "good_memory()", "uint32_t *": "good_memory()",
    "uint64_t *": "good_memory()", "int32_t *": "good_memory()", "size_t *": "good_memory()",
    "double *": "good_memory()", "bool *": "good_memory()", "uint8_t *": "good_memory()",
    "bool": "false", "double": "1", "int32_t": "1", "int64_t": "0", "uint32_t": "1", "uint64_t": "64",
    "size_t": "64", "graft_dtype": "GRAFT_F32", "graft_scalar": "graft_scalar_int(1)", "graft_memory_format": "0",
    "graft_status": "GRAFT_OK", "graft_backward_flags": "0", "graft_exec_flags": "0", "graft_stream_flags": "0",
    "graft_event_flags": "0", "graft_device_key": "GRAFT_DEVICE_NAME",
    "graft_size_op": "GRAFT_SIZE_ADD",
}
DECLARATION = re.compile(r"GRAFT_EXPORT\s+([^;]*?)\s*\b(graft_\w+)\(([^;]*?)\)(?:\s*GRAFT_NULL_GIVES\(([^)]*)\))?;")


class Parameter:
    def __init__(self, text):
        self.nullable = text.startswith("GRAFT_NULLABLE ")
        text = text.removeprefix("GRAFT_NULLABLE ")
        self.type, self.name = re.fullmatch(r"(.*?)(\w+)", text, re.S).groups()
        self.type = self.type.strip()

    @property
    def is_pointer(self):
        return self.type.endswith("*") or self.type.endswith("_fn")

    @property
    def is_tensor_list(self):
        return self.type == "graft_tensor *const *"

    def good(self):
        plain = self.type if self.type == "const char *" else self.type.removeprefix("const ")
        if self.name in BY_NAME:
            return BY_NAME[self.name]
        if self.nullable and self.type == "const char *":
            return "NULL"
        if self.type in GOOD or plain in GOOD:
            return GOOD.get(self.type) or GOOD[plain]
        if self.type.endswith("**"):
            return "good_memory()"
        sys.exit(f"null_calls.py: no good value is known for {self.type} {self.name}")


def declarations(folder):
    """(header, the comment's schema or "", result, function, parameters, what NULL gives) of all functions."""
    for header in sorted(Path(folder).glob("*.h")):
        text = re.sub(r"[^\S\n]*\n \* ", " ", header.read_text(encoding="utf-8"))
        matches = list(DECLARATION.finditer(text))
        if len(matches) != text.count("GRAFT_EXPORT "):
            sys.exit(f"null_calls.py: {header}: {text.count('GRAFT_EXPORT ')} functions, {len(matches)} understood")
        for match in matches:
            comment = re.fullmatch(r"/\* (\w+::.*?)\s*\*/\s*", text[text.rfind("/*", 0, match.start()):match.start()],
                                   re.S)
            result, function, inside, gives = (re.sub(r"\s+", " ", part or "") for part in match.groups())
            parameters = [] if inside in ("", "void") else [Parameter(p.strip()) for p in inside.split(",")]
            yield comment[1] if comment else "", result, function, parameters, gives


def places(schema, parameters):
    """(index, whether an item of the list is meant, whether NULL is allowed there) of all places."""
    for index, parameter in enumerate(parameters):
        if parameter.is_pointer:
            yield index, False, parameter.nullable
        if parameter.is_tensor_list and schema:
            yield index, True, bool(re.search(rf"Tensor\?\[\d*\] {parameter.name}\b", schema))


def row(number, schema, result, function, parameters, gives, place):
    index, item, allowed = place
    arguments = [p.good() for p in parameters]
    arguments[index] = "good_null_item()" if item else "NULL"
    call = f"{function}({', '.join(arguments)})"
    name = parameters[index].name
    said = name.rstrip("_") if name != "out_out" else "out"  # where C needs another name than the schema's
    subject = schema.split("(")[0] if schema else function
    what = f'"{function}", "{name}{"[0]" if item else ""}"'
    body = f"(void){call};"
    if result == "graft_status":
        body = f"answer->status = {call};"
    elif not allowed and not gives:
        sys.exit(f"null_calls.py: GRAFT_NULL_GIVES is missing: what does {function} give if {name} is NULL?")
    elif not allowed and gives != "nothing":
        body = f"answer->given = {call} == {gives};"
    kind = "ALLOWED" if allowed else "STATUS" if result == "graft_status" else "VOID" if gives == "nothing" else "GIVES"
    return (f"static void call_{number}(null_answer *answer) {{\n  (void)answer;\n  {body}\n}}\n",
            f'  {{call_{number}, {kind}, {what}, "{subject}", "{said}"}},\n')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    calls, rows = [], []
    for schema, result, function, parameters, gives in declarations(sys.argv[1]):
        for place in places(schema, parameters):
            call, entry = row(len(rows), schema, result, function, parameters, gives, place)
            calls.append(call)
            rows.append(entry)
    text = f"/* Generated by tests/null_calls.py. */\n{''.join(calls)}\nstatic const null_call null_calls[] = {{\n"
    Path(sys.argv[2]).write_text(text + "".join(rows) + "};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
