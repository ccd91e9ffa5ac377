"""Tests of the generator: python3 -m unittest discover -s plugin_api/gen -p 'test_*.py'"""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate
import headers
import layout
import ops as descriptions
import schema as schemas
import tables
import text
from schema import DescriptionError

CORE, PRIMS, TRAIN = descriptions.TABLES

# Prims that equal no aten op of core or train, and why.
PRIMS_WITHOUT_EQUAL = {
    "no aten op of core or train": """
        as_strided_scatter broadcast_in_dim cbrt conj conj_physical copy_strided empty_permuted imag isfinite
        maximum_value minimum_value real view_of_dtype xor_sum _make_token _sink_tokens""",
    "the aten op takes other arguments": "collapse collapse_view iota reshape split_dim uniform",
    "truncates integers where aten::div.Tensor does not": "div",
    "reduces several dims where aten::prod.dim_int takes one": "prod",
}


def line(schema, number=1, slot=0, family="pointwise", route="slot", strides="contiguous",
         notes="-"):
    return "\t".join([str(number), str(slot), family, route, strides, notes, schema])


def op(schema, **columns):
    return descriptions.parse_line(CORE, line(schema, **columns))


class Schemas(unittest.TestCase):
    def refused(self, schema, message):
        with self.assertRaisesRegex(DescriptionError, message):
            schemas.parse(schema)

    def test_kinds_that_are_not_mapped_are_refused(self):
        for kind in ("Storage", "Stream", "Tensor[]?", "int?[]", "bool[]", "Device[]", "Dict", "ScalarType[]"):
            self.refused(f"aten::f({kind} x) -> Tensor", "not mapped")
        self.refused("aten::f(Tensor x) -> Dict", "not mapped")
        self.refused("aten::f(Tensor x", "not a schema")

    def test_every_kind_is_read(self):
        parsed = schemas.parse('aten::f.g(Tensor? a, Tensor?[] b, SymInt[2] c=0, *, int[]? d=None, bool[3] e, '
                               'str f="x", '
                               "bool? pin_memory=None, float g=1e-05, ScalarType? h=None) -> (Tensor y, Tensor[] z)")
        self.assertEqual([a.kind for a in parsed.arguments],
                         ["TENSOR", "TENSORS", "INTS", "INTS", "MASK", "STR", "FLAG", "FLOAT", "DTYPE"])
        self.assertEqual([a.default for a in parsed.arguments],
                         [None, None, [0, 0], None, None, "x", None, 1e-05, None])
        self.assertEqual([a.keyword_only for a in parsed.arguments], [False] * 3 + [True] * 6)
        self.assertEqual([(r.name, r.kind) for r in parsed.returns], [("y", "TENSOR"), ("z", "TENSORS")])

    def test_aliases(self):
        view = schemas.parse("aten::f(Tensor(a -> *) x) -> Tensor(a)[]")
        self.assertEqual(view.returns[0].kind, "TENSORS")
        self.assertFalse(view.arguments[0].mutated or view.returns[0].mutated)
        written = schemas.parse("aten::f(Tensor(a!) x) -> Tensor(a!)")
        self.assertTrue(written.arguments[0].mutated and written.returns[0].mutated)


class Lines(unittest.TestCase):
    def refused(self, text_line, message, table=CORE):
        with self.assertRaisesRegex(DescriptionError, message):
            descriptions.parse_line(table, text_line)

    def test_bad_columns(self):
        schema = "aten::f(Tensor self) -> Tensor"
        self.refused(line(schema, number=10001), "id 10001")
        self.refused(line(schema, slot="01"), "slot 01")
        self.refused(line(schema, family="misc"), "unknown family")
        self.refused(line(schema, route="slots"), "unknown route")
        self.refused(line(schema, strides="dense"), "unknown strides")
        self.refused(line(schema, strides="like"), "name an argument")
        self.refused(line(schema, strides="like:other"), "no argument")
        self.refused(line(schema, number=10001), "does not belong", PRIMS)
        self.refused(schema, "columns")

    def test_bad_notes(self):
        schema = "aten::f(Tensor self) -> Tensor"
        self.refused(line(schema, notes="randon"), "unknown note")
        self.refused(line(schema, notes="level=3"), "unknown note")
        self.refused(line(schema, notes="mutates=mean"), "no argument")
        self.refused(line(schema, notes="optional=other"), "no argument")
        self.refused(line(schema, notes="dynamic=out1"), "no result")
        self.refused(line(schema, notes="novalue=out1"), "no result")
        self.refused(line(schema, notes="index=self"), "not ARG<SIZE")
        self.refused(line(schema, notes="index=self<other"), "names other")
        self.refused(line(schema, notes="index=0<self<self"), "up to the size")
        self.refused(line(schema, notes="index=self<self?flag"), "names flag")
        self.refused(line("aten::f(Tensor self, int n) -> Tensor", notes="index=self<n[0]"), "no tensor")
        self.refused(line(schema, notes="equal=aten::g(selv)"), "equal names selv")
        self.refused(line("aten::f(str mode) -> Tensor"), "needs a note str:mode")
        self.refused(line("aten::f__g(Tensor self) -> Tensor"), "reserved")

    def test_ids_and_names_are_used_once(self):
        first, second = line("aten::f(Tensor self) -> Tensor", 1), line("aten::_f(Tensor self) -> Tensor", 2, 1)
        with self.assertRaisesRegex(DescriptionError, "C name f twice"):
            descriptions.check_all(descriptions.parse_table(CORE, f"{first}\n{second}\n"))
        with self.assertRaisesRegex(DescriptionError, "never reused"):
            descriptions.parse_table(CORE, f"{first}\n{first}\n")
        renamed = line("aten::_f(Tensor self) -> Tensor", 2, 1, notes="c_name=f_private")
        descriptions.check_all(descriptions.parse_table(CORE, f"{first}\n{renamed}\n"))

    def test_str_enums_agree(self):
        values = [op("aten::f(str mode) -> Tensor", notes="str:mode=a|b"),
                  op("aten::g(str mode) -> Tensor", notes="str:mode=a|c", number=2)]
        with self.assertRaisesRegex(DescriptionError, "other values elsewhere"):
            descriptions.str_enums(values)

    def test_equal_is_checked_against_its_target(self):
        target = op("aten::f(Tensor self, int dim, bool keep=False) -> Tensor")

        def check(call):
            text_line = line("prims::f(Tensor a, int n) -> Tensor", 10001, notes=f"equal={call}")
            prim = descriptions.parse_line(PRIMS, text_line)
            descriptions.check_all([target, prim])

        check("aten::f(a,n)")
        check("aten::f(a,0,True)")
        for call, message in (("aten::g(a)", "in no table"), ("aten::f(a)", "needs an argument dim"),
                              ("aten::f(n,a)", "does not fit"), ("aten::f(a,True)", "does not fit"),
                              ("aten::f(a,n,True,n)", "more arguments")):
            with self.assertRaisesRegex(DescriptionError, message):
                check(call)


class Slots(unittest.TestCase):
    """A slot's place is its number, which is appended; neither the order of the ids nor a route decides it."""

    @classmethod
    def setUpClass(cls):
        cls.text = (generate.ROOT / TRAIN.source).read_text(encoding="utf-8")
        cls.slots = [o.c_name for o in cls.table(cls.text)]

    @staticmethod
    def table(text_of_table):
        return descriptions.slots_of(TRAIN, descriptions.parse_table(TRAIN, text_of_table))

    def rms_norm(self, slot):
        """The table with a slot for an op in its middle, which PyTorch composes today."""
        before = "20226\t-\tnormalization\tcomposite\t"
        self.assertIn(before, self.text)
        return self.text.replace(before, f"20226\t{slot}\tnormalization\tslot\t")

    def refused(self, text_of_table, message):
        with self.assertRaisesRegex(DescriptionError, message):
            descriptions.parse_table(TRAIN, text_of_table)

    def test_a_new_slot_is_the_last(self):
        self.assertEqual(self.table(self.rms_norm(len(self.slots)))[-1].c_name, "rms_norm")
        self.assertEqual([o.c_name for o in self.table(self.rms_norm(len(self.slots)))][:-1], self.slots)

    def test_a_route_alone_makes_no_slot(self):
        self.refused(self.rms_norm("-"), f"rms_norm has the route slot and no slot number; the next one is "
                                         f"{len(self.slots)}")

    def test_a_slot_is_not_shared_nor_left_out(self):
        self.refused(self.rms_norm(224), "appended")
        self.refused(self.rms_norm(len(self.slots) + 1), f"where slot {len(self.slots)} is next")
        self.refused("\n".join(row for row in self.text.splitlines() if not row.startswith("20100\t")), "appended")

    def test_a_slot_stays_when_the_route_changes(self):
        kept = re.sub(r"^(20100\t.*\t)slot(\t)", r"\1composite\2", self.text, flags=re.M)
        self.assertNotEqual(kept, self.text)
        self.assertEqual([o.c_name for o in self.table(kept)], self.slots)


class Layouts(unittest.TestCase):
    def placed(self, schema, **columns):
        result = layout.of(op(schema, **columns))
        return [(f.name, f.offset, f.total_bytes) for f in result.fields], result.bytes

    def test_padding_is_explicit(self):
        fields, size = self.placed("aten::f(bool a, ScalarType b, bool[3] c, Tensor d, bool e) -> Tensor")
        self.assertEqual(fields, [("a", 16, 1), ("reserved_0", 17, 3), ("b", 20, 4), ("c", 24, 3),
                                  ("reserved_1", 27, 5), ("d", 32, 8), ("e", 40, 1), ("reserved_2", 41, 7),
                                  ("out", 48, 8)])
        self.assertEqual(size, 56)

    def test_no_struct_has_a_hole(self):
        for described in descriptions.load(generate.ROOT / "plugin_api/ops"):
            if described.has_slot:
                end = layout.HEAD_BYTES
                placed = layout.of(described)
                for field in placed.fields:
                    self.assertEqual(field.offset, end, described.c_name)
                    self.assertEqual(field.offset % field.alignment, 0)
                    end += field.total_bytes
                self.assertEqual((placed.bytes, end % 8), (end, 0))

    def test_philox(self):
        names = [f[0] for f in self.placed("aten::f(Tensor self) -> Tensor", notes="random")[0]]
        self.assertEqual(names, ["self", "philox", "out"])
        names = [f[0] for f in self.placed("aten::f(Generator? generator=None, *, Device? device=None) -> Tensor")[0]]
        self.assertEqual(names, ["philox", "out"])

    def test_results(self):
        schema = "aten::f(Tensor a, Tensor(x!) b) -> (Tensor a, Tensor(x!), Tensor default)"
        names = [f[0] for f in self.placed(schema)[0]]
        self.assertEqual(names, ["a", "b", "a_out", "default_"])
        dynamic = layout.of(op("aten::f(Tensor a) -> (Tensor, Tensor)", notes="dynamic=out1"))
        self.assertEqual([f.type for f in dynamic.fields[1:]], ["const graft_tensor_desc *", "graft_output *"])

    def test_clashes_are_refused(self):
        for schema in ("aten::f(Tensor head) -> Tensor", "aten::f(Tensor reserved_0) -> Tensor",
                       "aten::f(Tensor philox, Generator? generator) -> Tensor"):
            with self.assertRaisesRegex(DescriptionError, "can't be a member"):
                layout.of(op(schema))


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ops = descriptions.load(generate.ROOT / "plugin_api/ops")

    def test_defaults(self):
        values = tables.Values()
        self.assertEqual(values.pointer(schemas.SCALAR, 1), "&op_values[0]")
        self.assertEqual(values.pointer(schemas.SCALAR, 1.0), "&op_values[1]")
        self.assertEqual(values.pointer(schemas.INTS, [0, 0]), "&op_values[2]")
        self.assertEqual(values.pointer(schemas.SCALAR, 1), "&op_values[0]")

    def test_what_is_prepared(self):
        ops = descriptions.parse_table(CORE, line("aten::f(Tensor self) -> Tensor"))
        prepared = descriptions.with_prepared(ops, "# words\n1\tself promoted\n")
        self.assertEqual(prepared[0].prepared, "self promoted")
        self.assertIn(" * Prepared: self promoted. */", headers.args_struct(prepared[0]))
        for wrong in ("2\tself promoted\n", "1\ta\n1\tb\n", "self promoted\n"):
            with self.assertRaisesRegex(DescriptionError, "prepared.tsv:"):
                descriptions.with_prepared(ops, wrong)

    def test_comments_wrap(self):
        lines = text.comment("word " * 60)
        self.assertTrue(all(len(row) <= text.COLUMNS for row in lines))
        self.assertTrue(lines[0].startswith("/* ") and lines[-1].endswith("*/"))

    def test_generation_is_deterministic(self):
        again = descriptions.load(generate.ROOT / "plugin_api/ops")
        self.assertEqual(generate.outputs(self.ops), generate.outputs(again))

    def test_no_name_is_reserved(self):
        for path, content in generate.outputs(self.ops).items():
            words = content.replace("__cplusplus", "")
            self.assertNotRegex(words, r"\bgraft_\w*__|\bgraft__", path)

    def test_checked_in_files_are_current(self):
        for path, content in generate.outputs(self.ops).items():
            self.assertTrue(generate.is_current(generate.ROOT / path, content), path)

    def test_a_row_follows_from_its_id(self):
        gap = [op for op in self.ops if op.id != 7]
        with self.assertRaisesRegex(DescriptionError, "id 8 leaves a gap"):
            tables.first_rows(gap)

    def test_prims_without_equal_are_known(self):
        expected = {name for names in PRIMS_WITHOUT_EQUAL.values() for name in names.split()}
        self.assertEqual({o.schema.name for o in self.ops if o.table is PRIMS and not o.equal}, expected)


if __name__ == "__main__":
    unittest.main()
