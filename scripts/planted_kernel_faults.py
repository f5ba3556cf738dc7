#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in the device kernels, and sees whether a test notices.

Each fault is an edit or two of fpga_dma/kernels/. The kernels are built with it,
sequential and threaded, and tests/fpga_dma/kernels/ run until one fails. Faults
of the area "deadlock" have to pass in the sequential build, as they would in
plain C simulation, and to be found as a deadlock in the threaded one. A fault
whose text is no longer in its file is an error: change it along with the code.

  scripts/planted_kernel_faults.py               # all, as a Markdown table
  scripts/planted_kernel_faults.py --only mask   # those whose area or name has it
"""

import concurrent.futures
import queue
import shutil
import sys

from commands import failed_test
from fault_planting import DOES_NOT_BUILD, Fault, main, planted
from kernel_builder import KERNEL_FOLDER, KernelBuilder, copy_tree

# (area, what is wrong, [(file, old text, new text), ...])
FAULTS = [
    ("deadlock", "V before K", [("decode_front.h", """\
      ReadRun(kv, command.k_beat, geometry.tile_beats, k_beats);
    }
    if (pending) ReadRun(kv, pending_v_beat, geometry.tile_beats, v_beats);
""", """\
      ReadRun(kv, command.v_beat, geometry.tile_beats, v_beats);
      ReadRun(kv, command.k_beat, geometry.tile_beats, k_beats);
    }
""")]),
    ("deadlock", "scales behind V, and a short FIFO of this", [
        ("decode_front.h", "  bool pending = false;\n",
         "  bool pending = false;\n  TileScales held, next;\n"),
        ("decode_front.h", "scales.write(tile_scales);",
         "next = tile_scales;"),
        ("decode_front.h", "    if (pending) "
         "ReadRun(kv, pending_v_beat, geometry.tile_beats, v_beats);\n",
         "    if (pending) {\n"
         "      ReadRun(kv, pending_v_beat, geometry.tile_beats, v_beats);\n"
         "      if (geometry.int8) scales.write(held);\n    }\n"
         "    held = next;\n"),
        ("paged_decode.cpp", "v_beats, 32", "v_beats, 16")]),
    ("deadlock", "a tile's command behind its sums, and a short FIFO of these", [
        ("decode_back.h", "    softmax_tiles.write(tile);\n"
         "    if (tile.stop) break;\n",
         "    if (tile.stop) {\n      softmax_tiles.write(tile);\n"
         "      break;\n    }\n"),
        ("decode_back.h", "        partial_scores.write(sum);\n      }\n    }\n",
         "        partial_scores.write(sum);\n      }\n    }\n"
         "    softmax_tiles.write(tile);\n"),
        ("paged_decode.cpp", "partial_scores, 16", "partial_scores, 4")]),
    ("deadlock", "a tile's command behind its rows, and a short FIFO of these", [
        ("kv_append.cpp", "    read_tiles.write(tile);\n    if (tile.stop) break;\n"
         "    ReadRun(rows,", "    if (tile.stop) {\n"
         "      read_tiles.write(tile);\n      break;\n    }\n    ReadRun(rows,"),
        ("kv_append.cpp", "geometry.token_beats, row_beats);\n",
         "geometry.token_beats, row_beats);\n    read_tiles.write(tile);\n"),
        ("kv_append.cpp", "row_beats, 128", "row_beats, 32")]),
    ("deadlock", "a FIFO that is too short for the beats of a stored run", [
        ("stream/kv_store.cpp", "beats, 128", "beats, 32")]),
    ("order", "the two dims of a pair exchanged", [
        ("decode_back.h", "const float q0 = query[head][2 * step];",
         "const float q0 = query[head][2 * step + 1];"),
        ("decode_back.h", "const float q1 = query[head][2 * step + 1];",
         "const float q1 = query[head][2 * step];")]),
    ("order", "K of the wrong tile goes with V", [
        ("decode_front.h", "out.v_beat = out.k_beat + half_beats;",
         "out.v_beat = slice_beat + half_beats;")]),
    ("order", "sums added in another order", [
        ("decode_back.h", "before[t] + (q0 * k0[t] + q1 * k1[t])",
         "(before[t] + q0 * k0[t]) + q1 * k1[t]")]),
    ("mask", "the slot behind the last one has a weight", [
        ("decode_back.h", "t >= tile.begin && t < tile.end;\n    const float power",
         "t >= tile.begin && t <= tile.end;\n    const float power")]),
    ("mask", "slots before the first one raise the maximum", [
        ("decode_back.h", "if (inside && scaled[t] > tile_maximum)",
         "if (t < tile.end && scaled[t] > tile_maximum)")]),
    ("mask", "V of unused slots is multiplied by 0", [
        ("decode_back.h", "v[e] = inside ? v[e] : 0.0f;", "")]),
    ("mask", "the first slot is forgotten", [
        ("decode_front.h", "out.tile.begin = slot - tile_slot;",
         "out.tile.begin = 0;")]),
    ("table", "one page for all", [
        ("decode_front.h", "      entry += command.item.table_step;\n", "")]),
    ("table", "steps are ignored", [
        ("decode_front.h", "entry += command.item.table_step;", "++entry;")]),
    ("table", "the page before the last change", [
        ("decode_front.h", "const uint32_t index = page_indices.read();",
         "static thread_local uint32_t stale = 0;\n"
         "      const uint32_t index = stale;\n"
         "      stale = page_indices.read();")]),
    ("bounds", "a page index at the limit", [
        ("decode_front.h", "if (index >= limits.num_pages)",
         "if (index > limits.num_pages)")]),
    ("bounds", "an entry behind the table", [
        ("decode_front.h", "if (*detail >= limits.table_entries)",
         "if (*detail > limits.table_entries)")]),
    ("bounds", "products of 32 bits", [
        ("decode_front.h", "uint64_t{*num_pages - 1} * item.table_step",
         "(*num_pages - 1) * item.table_step")]),
    ("bounds", "a bad item does not end the list", [
        ("decode_front.h", "      stop.result.detail = detail;\n      break;\n",
         "      stop.result.detail = detail;\n      continue;\n")]),
    ("bounds", "endless slices in one place", [
        ("kv_append.cpp", "if (item.num_slices > 1 && *detail < slice_beats)",
         "if (item.num_slices > kMaxWorkItems * 2u && *detail + 1 == 0)")]),
    ("status", "a later launch hides the error", [
        ("work_list.h", "if (Word(before, 0) != 0) {", "if (false) {")]),
    ("status", "more items than the list holds", [
        ("work_list.h", "launch.num_items > max_items ||", "false ||")]),
    ("tail", "the last, partly filled tile is left out", [
        ("decode_front.h", "tile * kTileSlots < end; ++tile",
         "(tile + 1) * kTileSlots <= end; ++tile")]),
    ("tail", "a block more than the tokens need", [
        ("decode_front.h", "((end_slot - 1) / geometry.block_tokens + 1)",
         "(end_slot / geometry.block_tokens + 1)")]),
    ("scale", "powers of e taken for powers of 2", [
        ("decode_front.h", "command.item.scale * kLog2E",
         "command.item.scale")]),
    ("scale", "outputs keep the old maximum", [
        ("decode_back.h", "sum.value[e] = ScaleDown(sum.value[e], shift);",
         "")]),
    ("scale", "the sum of weights keeps the old maximum", [
        ("decode_back.h", "ScaleDown(tile.first ? 0.0f : *sum, *shift)",
         "(tile.first ? 0.0f : *sum)")]),
    ("scale", "the next item starts with the last one's maximum", [
        ("decode_back.h",
         "tile.first ? FloatOfBits(kNegativeInfinityBits) : *maximum",
         "*maximum")]),
    ("scale", "a larger maximum hides a NaN", [
        ("kernel_arithmetic.h",
         "if (exponent == static_cast<int>(kNoExponent)) return value;",
         "if (exponent == static_cast<int>(kNoExponent) && shift > -128.0f) "
         "return value;")]),
    ("scale", "a tile of nothing but -infinity is NaN", [
        ("decode_back.h", "none ? 0.0f : after", "after")]),
    ("scale", "log-sum-exp without the maximum", [
        ("decode_back.h", "command.maximum[head] + Log2(command.sum[head])",
         "Log2(command.sum[head])")]),
    ("scale", "the smallest elements count", [
        ("kernel_arithmetic.h", "ZeroBelow(FloatOfBits(bits << 16), -55)",
         "FloatOfBits(bits << 16)")]),
    ("int8 scale", "the scale of K is that of V", [
        ("decode_front.h", "tile_scales.k = kv[command.k_scale_beat]",
         "tile_scales.k = kv[command.v_scale_beat]")]),
    ("int8 scale", "scores without the scale of K", [
        ("decode_back.h", "ZeroBelow(out.tile.scale * k_scale, -60)",
         "out.tile.scale")]),
    ("int8 scale", "weights without the scale of V", [
        ("decode_back.h", "inside ? weight[t] * factors.weight[t] : 0.0f;",
         "inside ? weight[t] : 0.0f;")]),
    ("int8 scale", "the sum of weights has the scale of V", [
        ("decode_back.h", "    weight[t] = Exp2(power);",
         "    weight[t] = Exp2(power) * factors.weight[t];"),
        ("decode_back.h", "inside ? weight[t] * factors.weight[t] : 0.0f;",
         "inside ? weight[t] : 0.0f;")]),
    ("int8 scale", "scales of the block's first tile for all", [
        ("decode_front.h", "slice_beat + data_beats + tile;",
         "slice_beat + data_beats;")]),
    ("int8 scale", "scales of unused slots count", [
        ("decode_back.h", "out.weight[t] = inside ? v_scale : 0.0f;",
         "out.weight[t] = v_scale;"),
        ("decode_back.h", "inside ? weight[t] * factors.weight[t] : 0.0f;",
         "weight[t] * factors.weight[t];")]),
    ("int8 scale", "the smallest scales count", [
        ("kernel_arithmetic.h", "ZeroBelow(FloatOfBits(bits), -60)",
         "FloatOfBits(bits)")]),
    ("int8", "magnitudes without a sign", [
        ("kernel_arithmetic.h",
         "static_cast<float>(static_cast<int8_t>(bits & 0xFFu))",
         "static_cast<float>(bits & 0xFFu)")]),
    ("int8", "the lower half of a word of K twice", [
        ("decode_back.h", "PairOf(Word(beat, t), geometry.int8, upper)",
         "PairOf(Word(beat, t), geometry.int8, false)")]),
    ("int8", "the first half of a beat of V twice", [
        ("decode_back.h", "first_word = upper ? kWordsPerBeat / 2 : 0;",
         "first_word = 0;")]),
    ("bursts", "a burst crosses 4 KiB", [
        ("beat.h", "kBurstBeats - beat % kBurstBeats", "kBurstBeats")]),
    ("append", "a tile forgets its older slots", [
        ("kv_append.cpp", "out.keep_k = out.begin != 0;",
         "out.keep_k = false;")]),
    ("append", "a beat of V forgets its older rows", [
        ("kv_append.cpp", "out.keep_v = out.begin % geometry.slots_per_beat != 0;",
         "out.keep_v = false;")]),
    ("append", "scales of older slots are forgotten", [
        ("append_tiles.h",
         "  if (tile.keep_k) beat = old_beats.read();\n"
         "  for (uint32_t t = 0; t < kTileSlots; ++t) {\n"
         "#pragma HLS unroll\n    if (t >= tile.begin && t < tile.end) "
         "SetWord(&beat, t, scales[t]);",
         "  if (tile.keep_k) old_beats.read();\n"
         "  for (uint32_t t = 0; t < kTileSlots; ++t) {\n"
         "    if (t >= tile.begin && t < tile.end) "
         "SetWord(&beat, t, scales[t]);")]),
    ("append", "an infinite scale is taken", [
        ("append_tiles.h", "bits < (kNoExponent << 23)",
         "bits <= (kNoExponent << 23)")]),
    ("append", "items behind one with a bad scale are done", [
        ("append_tiles.h", "    if (failed) {\n", "    if (!good) {\n")]),
    ("append", "a beat of V starts with what was there", [
        ("append_tiles.h", "if (!first) beat =", "beat =")]),
    ("append", "all slices get the first one's rows", [
        ("kv_append.cpp", "        source += uint64_t{end - slot}",
         "        if (i == 0) source += uint64_t{end - slot}")]),
    ("copy", "partly filled tiles are left out", [
        ("kv_copy.cpp", "(filled_tokens + kTileSlots - 1) / kTileSlots",
         "filled_tokens / kTileSlots")]),
    ("copy", "V one row short", [
        ("kv_copy.cpp", "(filled_tokens * row_bytes + kBeatBytes - 1)",
         "(filled_tokens * row_bytes - 1)")]),
    ("copy", "the scales of V stay behind", [
        ("kv_copy.cpp", "geometry.element == KvElement::kInt8 ? 4 : 2",
         "geometry.element == KvElement::kInt8 ? 3 : 2")]),
    ("copy", "target slices at the source's stride", [
        ("kv_copy.cpp", "target += item.target_slice_stride_beats;",
         "target += item.source_slice_stride_beats;")]),
    ("scatter", "every run at the page's start", [
        ("kv_scatter.cpp", "limits.page_stride_beats + item.page_beat;",
         "limits.page_stride_beats;")]),
    ("scatter", "a beat beyond the slab", [
        ("kv_scatter.cpp", "if (*detail > limits.source_beats)",
         "if (*detail > limits.source_beats + 1)")]),
    ("scatter", "a beat beyond the page", [
        ("kv_scatter.cpp", "if (*detail > limits.page_stride_beats)",
         "if (*detail > limits.page_stride_beats + 1)")]),
    ("store", "beats that hold nothing are stored", [
        ("stream/kv_store.cpp", "if (full && count < slab_beats)",
         "if (count < slab_beats)")]),
    ("store", "beats behind the slab are stored", [
        ("stream/kv_store.cpp", "if (full && count < slab_beats)",
         "if (full)")]),
    ("store", "the last, short run is forgotten", [
        ("stream/kv_store.cpp", "(last && run.beats > 0)", "false")]),
    ("store", "a refused launch leaves its stream where it is", [
        ("stream/kv_store.cpp", "if (launch.refused) slab_beats = 0;",
         "if (launch.refused) return;")]),
]




def files_of(fault):
    """Named from the folder of the kernels."""
    return [file.removeprefix(f"{KERNEL_FOLDER}/")
            for file, _, _ in fault.edits]


def noticed_by(builder, fault):
    """The test that fails, None if none does."""
    moves = all("kv_" in file for file in files_of(fault))
    if fault.area == "deadlock":
        code, output = builder.test("*Sequential*")
        if code != 0:
            return None
        code, output = builder.test("*Threaded*:*NoScheduleOfTheStagesBlocks*")
        if code == 0 or "deadlock: stage" not in output:
            return None
    else:
        code, output = builder.test("*Move*:*Store*" if moves else "*")
        if code == 0:
            return None
    return failed_test(output, "a crash")


def kernel_bench(folder, faults, jobs):
    """Trees with the same objects, each for one fault at a time."""
    tree = folder / "sound"
    copy_tree(tree)
    sound = KernelBuilder(tree, jobs)
    if not sound.build(sound.harness + sound.device):
        sys.exit("the kernels do not build")
    code, output = sound.test()
    if code != 0:
        sys.exit(f"tests fail without any fault\n{output}")
    builders = queue.SimpleQueue()
    for i in range(jobs):
        builders.put(KernelBuilder(
            shutil.copytree(tree, folder / f"tree{i}"), 1))

    def test_of(fault):
        builder = builders.get()
        sources = builder.dependents(files_of(fault))
        with planted(fault, builder.tree):
            built = builder.build(sources)
            test = noticed_by(builder, fault) if built else DOES_NOT_BUILD
        builder.take_objects(sound, sources)
        builders.put(builder)
        return test

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(test_of, faults)


if __name__ == "__main__":
    main(__doc__,
         [Fault(area, name, [(f"{KERNEL_FOLDER}/{file}", old, new)
                             for file, old, new in edits])
          for area, name, edits in FAULTS],
         kernel_bench)
