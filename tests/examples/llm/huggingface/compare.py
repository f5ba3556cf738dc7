#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the example engine with Hugging Face Transformers.

 - SmolLM2: greedy tokens of 20 prompts by `pagedkv generate`, each of which has
   to be the most likely one for Transformers too, given those before it (either
   token where the two best logits lie within 1e-3); and all logits.
 - A tiny Qwen2 with random weights: all logits.
 - The tokenizer, on generated lines (compare_tokenizers.py).

Transformers reads the same files, by its own reader and dequantisation, and
computes in f32, as the engine does here. Makes a virtual environment with the
packages that it needs (about 3 GB from PyPI) the first time.

  tests/examples/llm/huggingface/compare.py --build=build/release
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ["torch==2.5.1", "transformers==4.46.3", "tokenizers==0.20.3",
            "gguf==0.19.0", "accelerate==1.1.1", "numpy"]
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
HERE = pathlib.Path(__file__).resolve().parent
TIE = 1e-3  # logits this near are a tie

PROMPTS = """The capital of France is
Once upon a time there was a little girl who
def fibonacci(n):
The three laws of motion say that
In 1969, two astronauts
Water boils at
My favourite recipe for bread needs
To be, or not to be,
The largest planet of the solar system is
import numpy as np
Dear Sir or Madam,
1, 2, 4, 8, 16,
Photosynthesis is the process by which
The quick brown fox
A list of European countries: Germany, France,
When the storm was over, the sailors
SELECT name FROM users WHERE
The difference between a virus and a bacterium is
Der Himmel ist
Question: What is the square root of 81? Answer:""".splitlines()


def cache_folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                        os.path.expanduser("~/.cache")) / "pagedkv"


def enter_environment(folder):
    """Runs this script again with the environment's Python."""
    python = folder / "bin" / "python"
    if pathlib.Path(sys.prefix) == folder:
        return
    stamp = folder / "packages.txt"
    if not stamp.exists() or stamp.read_text().split() != PACKAGES:
        print(f"making {folder} with {', '.join(PACKAGES)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet",
                        *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    os.execv(python, [str(python), *sys.argv])


def our_logits(programs, model, sequences):
    """The engine's logits, [tokens, vocab] of each sequence."""
    import numpy
    lines = "".join(" ".join(map(str, s)) + "\n" for s in sequences)
    output = subprocess.run([programs / "llm_print_logits", model], check=True,
                            input=lines.encode(), stdout=subprocess.PIPE).stdout
    values = numpy.frombuffer(output, dtype="<f4")
    values = values.reshape(sum(map(len, sequences)), -1)
    ends = numpy.cumsum([len(s) for s in sequences])
    return numpy.split(values, ends[:-1])


def reference_logits(model, sequences):
    import torch
    with torch.no_grad():
        return [model(torch.tensor([s])).logits[0].numpy() for s in sequences]


def largest_difference(ours, reference):
    return max(float(abs(a - b).max()) for a, b in zip(ours, reference))


def compare_smollm2(programs, tool, path, tokens):
    from transformers import AutoModelForCausalLM, logging
    logging.set_verbosity_error()
    model = AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name).eval()
    # The file has no output layer: it is the embedding, which Transformers does
    # not take from a GGUF file.
    model.lm_head.weight = model.get_input_embeddings().weight
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(PROMPTS) + "\n")
        file.flush()
        generated = json.loads(subprocess.run(
            [tool, "generate", f"--model={path}", f"--prompts_file={file.name}",
             f"--max_tokens={tokens}", "--weights=f32", "--kv_dtype=f32",
             "--ignore_end", "--json"],
            check=True, stdout=subprocess.PIPE).stdout)["prompts"]
    encoded = subprocess.run(
        [programs / "llm_encode_lines", path], check=True,
        input="".join(p + "\0" for p in PROMPTS).encode(),
        stdout=subprocess.PIPE).stdout.decode().splitlines()
    prompts = [[int(i) for i in line.split()] for line in encoded]
    outputs = [p["samples"][0]["tokens"] for p in generated]
    assert [len(p) for p in prompts] == [p["prompt_tokens"] for p in generated]
    assert len(prompts) == 20 and all(len(o) == tokens for o in outputs)

    sequences = [p + o for p, o in zip(prompts, outputs)]
    reference = reference_logits(model, sequences)
    wrong = ties = 0
    for prompt, output, logits in zip(prompts, outputs, reference):
        for i, token in enumerate(output):
            row = logits[len(prompt) + i - 1]
            if token == row.argmax():
                continue
            if row.max() - row[token] <= TIE:
                ties += 1
                continue
            wrong += 1
            print(f"token {i} is {token}, not {row.argmax()}, whose logit is "
                  f"{row.max() - row[token]:.6f} larger")
    difference = largest_difference(our_logits(programs, path, sequences),
                                    reference)
    print(f"SmolLM2: {len(prompts)} prompts, {len(prompts) * tokens} greedy "
          f"tokens, {wrong} wrong, {ties} ties that fell the other way; largest "
          f"difference of {sum(map(len, sequences)) * reference[0].shape[1]:,} "
          f"logits {difference:.2e}")
    return wrong == 0 and difference < TIE


# Of Transformers' names, GGUF's.
QWEN2_NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "model.embed_tokens": "token_embd",
    "model.norm": "output_norm", "lm_head": "output", "model.layers": "blk"}


def write_qwen2(model, path, tied):
    import gguf
    config = model.config
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    for name, tensor in model.state_dict().items():
        if tied and name == "lm_head.weight":
            continue
        for theirs, ours in QWEN2_NAMES.items():
            name = name.replace(theirs, ours)
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compare_qwen2(programs, tied, seed):
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=353, hidden_size=112, intermediate_size=200,
        num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1,
        max_position_embeddings=256, rope_theta=1e6, rms_norm_eps=1e-6,
        initializer_range=0.15, tie_word_embeddings=tied)).eval()
    with torch.no_grad():  # they start as zeros and ones
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    sequences = [torch.randint(353, (n,)).tolist() for n in (2, 17, 100, 256)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "qwen2.gguf"
        write_qwen2(model, path, tied)
        ours = our_logits(programs, path, sequences)
    reference = reference_logits(model, sequences)
    size = max(float(abs(r).max()) for r in reference)
    difference = largest_difference(ours, reference)
    print(f"tiny Qwen2, {'tied' if tied else 'own'} output, seed {seed}: "
          f"largest difference of "
          f"{sum(map(len, sequences)) * 353:,} logits {difference:.2e}, of up to "
          f"{size:.1f}")
    return difference < 1e-4


def compare_tokenizers(programs, path, lines, seed):
    script = HERE.parent / "tokenizer" / "compare_tokenizers.py"
    return subprocess.run(
        [sys.executable, str(script), programs / "llm_encode_lines", str(path),
         f"--lines={lines}", f"--seed={seed}"]).returncode == 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build/release",
                        help="where the project was built")
    parser.add_argument("--model", default=str(cache_folder() / MODEL))
    parser.add_argument("--venv", default=str(cache_folder() / "huggingface"),
                        help="the virtual environment, made if need be")
    parser.add_argument("--tokens", type=int, default=48,
                        help="to generate for each prompt")
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    enter_environment(pathlib.Path(options.venv).resolve())

    tool = pathlib.Path(options.build).resolve() / "bin" / "pagedkv"
    programs = tool.parent / "tests"
    path = pathlib.Path(options.model)
    right = [compare_qwen2(programs, tied, options.seed)
             for tied in (False, True)]
    if path.exists():
        right.append(compare_smollm2(programs, tool, path, options.tokens))
        right.append(compare_tokenizers(programs, path, options.lines,
                                        options.seed))
    else:
        print(f"{path} is not there: `make model` fetches it")
        right.append(False)
    print("all equal" if all(right) else "there are differences")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
