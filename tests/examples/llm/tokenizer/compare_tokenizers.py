#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the byte-level tokenizer with Hugging Face's on generated lines.

The reference is the PyPI package `tokenizers`, given the vocabulary and merges
of the model file and the pre-tokenizer that SmolLM2's tokenizer.json has. Exits
with 77 (skipped) where the package or the model is missing.

  compare_tokenizers.py ENCODE_LINES [MODEL.gguf] [--lines=N] [--seed=S]
"""

import argparse
import os
import random
import struct
import subprocess
import sys
import unicodedata

SKIPPED = 77
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTROL = 3  # token type

# GGUF's scalar value types, by number.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
           10: "Q", 11: "q", 12: "d"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def read_metadata(path):
    """The metadata of a GGUF file, by key."""
    with open(path, "rb") as file:
        def read(form):
            size = struct.calcsize("<" + form)
            return struct.unpack("<" + form, file.read(size))

        def read_string():
            return file.read(read("Q")[0]).decode("utf-8")

        def read_value(kind):
            if kind == 8:
                return read_string()
            if kind != 9:
                return read(SCALARS[kind])[0]
            element, count = read("IQ")
            if element == 8:
                return [read_string() for _ in range(count)]
            return list(read(f"{count}{SCALARS[element]}"))

        magic, version, _, keys = read("4sIQQ")
        assert magic == b"GGUF" and version in (2, 3), (magic, version)
        metadata = {}
        for _ in range(keys):
            key = read_string()
            metadata[key] = read_value(read("I")[0])
        return metadata


def reference_tokenizer(metadata):
    try:
        from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    except ImportError:
        skip("the Python package `tokenizers` is not installed")
    pre = metadata["tokenizer.ggml.pre"]
    if metadata["tokenizer.ggml.model"] != "gpt2" or pre != "smollm":
        skip(f"the reference is for smollm, the model has {pre}")
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in metadata["tokenizer.ggml.merges"]]
    vocabulary = {text: i for i, text in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    types = metadata["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens([
        AddedToken(text, normalized=False)
        for text, kind in zip(tokens, types) if kind == CONTROL])
    return tokenizer


WORDS = """the of and Paris it's WE'LL don't they'd I'm Über naïve Straße señor
été Ελλάδα привет мир שלום مرحبا नमस्ते สวัสดี 日本語 東京都 中文字符 你好，世界 안녕하세요
x1 3.14159 2,024 007 ½ ٣٤ Ⅷ ² 1e-9 0xFF snake_case camelCase PascalCase
http://a.b/c?d=e&f#g user@example.com <div> </div> <|im_start|> <|im_end|>
<|endoftext|> ... -- => != && || :: #include /* */ // \\ `code` $x @y %z ^ ~
😀 👩‍👩‍👧‍👦 🇫🇷 👍🏽 ❤️ ☃ ✓ → ∑ ≠ é ñ ﷽ Ǆ ſ İ ß ﬁ""".split()

CODE = [
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n",
    "def f(x):\n    return x ** 2  # squared\n\n\n",
    "if __name__ == '__main__':\n    main()\n",
    "SELECT * FROM t WHERE id=42;\r\n",
    "template <typename T>\nT max(T a, T b) { return a > b ? a : b; }",
    '{"key": [1, 2.5, null, true], "s": "\\u00e9\\n"}',
    "\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n",
]

SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0",
          "\u2003", "\u3000", "\u0085", "\u2028", "\u200b", "\u180e", ""]


def random_character(rng):
    while True:
        code_point = rng.choice([
            rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000),
            rng.randrange(0x4E00, 0xA000), rng.randrange(0x1F300, 0x1FB00),
            rng.randrange(0x110000)])
        character = chr(code_point)
        # Python and PCRE2 know Unicode 14; what was assigned later is a letter
        # to one of the tokenizers and nothing to the other. A zero ends a line
        # in the protocol of encode_lines.
        if code_point and unicodedata.category(character) not in ("Cs", "Cn"):
            return character


def random_line(rng):
    parts = []
    for _ in range(rng.randrange(1, 25)):
        kind = rng.random()
        if kind < 0.55:
            parts.append(rng.choice(WORDS))
        elif kind < 0.62:
            parts.append(rng.choice(CODE))
        elif kind < 0.72:
            parts.append("".join(random_character(rng)
                                 for _ in range(rng.randrange(1, 6))))
        elif kind < 0.78:
            parts.append(str(rng.randrange(10 ** rng.randrange(1, 12))))
        else:
            parts.append(rng.choice(SPACES) * rng.randrange(1, 12))
        if rng.random() < 0.7:
            parts.append(rng.choice(SPACES[:2]))
    return "".join(parts)


def main():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("encode_lines")
    parser.add_argument("model", nargs="?",
                        default=os.path.join(cache, "pagedkv", MODEL))
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not os.path.exists(arguments.model):
        skip(f"{arguments.model} is not there; `make model` fetches it")
    reference = reference_tokenizer(read_metadata(arguments.model))

    rng = random.Random(arguments.seed)
    lines = [random_line(rng) for _ in range(arguments.lines)]
    output = subprocess.run(
        [arguments.encode_lines, arguments.model], check=True,
        input=b"".join(line.encode("utf-8") + b"\0" for line in lines),
        stdout=subprocess.PIPE).stdout.decode("ascii").splitlines()
    assert len(output) == len(lines), (len(output), len(lines))
    different = 0
    tokens = 0
    for line, ids in zip(lines, output):
        expected = reference.encode(line).ids
        tokens += len(expected)
        if [int(i) for i in ids.split()] != expected:
            different += 1
            if different <= 5:
                print(f"{line!r}\n  expected {expected}\n  got      {ids}")
    print(f"{len(lines)} lines, {tokens} tokens, seed {arguments.seed}: "
          f"{different} lines differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
