#!/usr/bin/env python3
# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what a Vitis build is made from, as far as that goes without Vitis.

Sources, kernel.xml, connectivity and Makefile have to name the same kernels,
ports, arguments and registers, and package_kernel.tcl has to run to its end with
commands of Vivado that only say their names (left out where there is no tclsh).

  check_packaging.py SOURCE_FOLDER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
KERNELS = ROOT / "fpga_dma/kernels"
BENCHES = ROOT / "tests/fpga_dma/kernels/rtl"
BOARDS = {"u250": "DDR", "u280": "HBM", "u55c": "HBM"}
HLS = ["paged_decode", "kv_append", "kv_copy", "kv_scatter"]
STREAM = ["kv_store"]
RTL = ["kv_gather", "kv_mover"]
ADDRESS, SCALAR, STREAM_ARGUMENT = "1", "0", "4"


def read(path):
    return (KERNELS / path).read_text()


def register_map(kernel):
    """[(offset, argument)] of the comment at the head of the RTL."""
    head = read(f"rtl/{kernel}.sv").split("`default_nettype none")[0]
    arguments = head[head.index("Arguments"):]
    found = re.findall(r"0x([0-9A-F]{2}) +([a-z_]+)", arguments)
    return [(int(offset, 16), name) for offset, name in found
            if int(offset, 16) < 0x80]


def rtl_ports(kernel):
    """Widths of the bits of the module's ports, by name."""
    text = read(f"rtl/{kernel}.sv")
    header = text[text.index(f"module {kernel} "):text.index(");")]
    ports = re.findall(r"(?:in|out)put wire (?:\[(\d+):0\] )?(\w+)", header)
    return {name: int(high or 0) + 1 for high, name in ports}


def xml_kernel(kernel):
    return xml.etree.ElementTree.parse(
        KERNELS / f"rtl/{kernel}.xml").getroot().find("kernel")


def hls_arguments(source):
    """(addresses, streams) of a kernel in HLS C++."""
    text = read(source)
    signature = re.search(r'extern "C" void \w+\((.*?)\) \{', text, re.S)[1]
    return (re.findall(r"\*\s*(\w+)", signature),
            re.findall(r"hls::stream<[^>]*>&\s*(\w+)", signature))


def connectivity(board, design="_rtl"):
    """(counts, instances, banks by port, regions, streams) of a file."""
    text = read(f"cfg/{board}{design}.cfg")
    lines = [line for line in text.splitlines()
             if line and not line.startswith(("#", "["))]
    counts, instances, banks, regions, streams = {}, {}, {}, {}, []
    for line in lines:
        key, value = line.split("=", 1)
        if key == "nk":
            kernel, count, names = value.split(":")
            counts[kernel] = int(count)
            instances.update((name, kernel) for name in names.split("."))
        elif key == "sp":
            port, bank = value.split(":")
            assert port not in banks, f"{port} twice"
            banks[port] = bank
        elif key == "slr":
            unit, region = value.split(":")
            assert unit not in regions, f"{unit} twice"
            regions[unit] = region
        elif key == "stream_connect":
            streams.append(tuple(value.split(":")))
        else:
            raise AssertionError(f"{board}: {line}")
    return counts, instances, banks, regions, streams


def make(*arguments):
    done = subprocess.run(["make", "-n", "-B", *arguments], cwd=KERNELS,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\\\n", " ")


class KernelXmlTest(unittest.TestCase):

    def test_arguments_are_the_registers_of_the_rtl(self):
        for kernel in RTL:
            arguments = [a.attrib for a in xml_kernel(kernel).iter("arg")]
            self.assertEqual([int(a["id"]) for a in arguments],
                             list(range(len(arguments))))
            registers = [a for a in arguments
                         if a["addressQualifier"] != STREAM_ARGUMENT]
            self.assertEqual(
                [(int(a["offset"], 16), a["name"]) for a in registers],
                register_map(kernel))
            # Without gaps, and as many words as the control block has.
            place = 0x10
            for argument in registers:
                self.assertEqual(int(argument["offset"], 16), place)
                self.assertEqual(argument["hostSize"], argument["size"])
                wide = argument["addressQualifier"] == ADDRESS
                self.assertEqual(int(argument["size"], 16), 8 if wide else 4)
                place += int(argument["size"], 16)
            words = re.search(r"\.ARGUMENTS\((\d+)\)",
                              read(f"rtl/{kernel}.sv"))[1]
            self.assertEqual((place - 0x10) // 4, int(words))
            self.assertLessEqual(place, 0x80, "the status begins there")

    def test_arguments_are_those_of_the_bench(self):
        # The benches write these, so that their tests prove the offsets.
        for kernel, name in zip(RTL, ["Gather", "Mover"]):
            text = (BENCHES / f"{name.lower()}_bench.h").read_text()
            fields = re.search(rf"struct {name}Arguments {{(.*?)}};", text,
                               re.S)[1]
            self.assertEqual(
                re.findall(r"uint(\d+)_t (\w+)", fields),
                [("64" if a.attrib["addressQualifier"] == ADDRESS else "32",
                  a.attrib["name"]) for a in xml_kernel(kernel).iter("arg")
                 if a.attrib["addressQualifier"] != STREAM_ARGUMENT])

    def test_ports_are_those_of_the_module(self):
        for kernel in RTL:
            module = rtl_ports(kernel)
            ports = {p.attrib["name"]: p.attrib
                     for p in xml_kernel(kernel).iter("port")}
            prefixes = {re.match(r"([sm]_axis?_[a-z]+)_", name)[1]
                        for name in module if "axi" in name}
            self.assertEqual(set(ports), prefixes)
            for name, port in ports.items():
                width = next(module[name + data] for data in
                             ["_rdata", "_wdata", "_tdata"]
                             if name + data in module)
                self.assertEqual(int(port["dataWidth"]), width)
            for name in ["ap_clk", "ap_rst_n", "interrupt"]:
                self.assertIn(name, module)
            used = {a.attrib["port"] for a in xml_kernel(kernel).iter("arg")}
            self.assertEqual(used, set(ports))
            for argument in xml_kernel(kernel).iter("arg"):
                kind = {ADDRESS: "m_axi_", SCALAR: "s_axi_",
                        STREAM_ARGUMENT: "m_axis_"}
                self.assertTrue(argument.attrib["port"].startswith(
                    kind[argument.attrib["addressQualifier"]]))

    def test_control(self):
        for kernel in RTL:
            top = xml_kernel(kernel).attrib
            self.assertEqual(top["name"], kernel)
            self.assertEqual(top["hwControlProtocol"], "ap_ctrl_chain")
            self.assertEqual(top["interrupt"], "true")
            self.assertIn("ap_ctrl_chain", read("rtl/control_registers.sv"))


class ConnectivityTest(unittest.TestCase):

    def addresses(self, kernel):
        if kernel in STREAM:
            return hls_arguments(f"stream/{kernel}.cpp")[0]
        return [a.attrib["name"] for a in xml_kernel(kernel).iter("arg")
                if a.attrib["addressQualifier"] == ADDRESS]

    def test_every_port_of_every_unit_has_a_memory(self):
        for board in BOARDS:
            counts, instances, banks, regions, _ = connectivity(board)
            self.assertEqual(set(counts), set(RTL + STREAM))
            expected = set()
            for kernel, count in counts.items():
                units = [f"{kernel}_{i}" for i in range(1, count + 1)]
                self.assertEqual(
                    [u for u, k in instances.items() if k == kernel], units)
                expected |= {f"{unit}.{argument}" for unit in units
                             for argument in self.addresses(kernel)}
            self.assertEqual(set(banks), expected)
            self.assertEqual(set(regions), set(instances))

    def test_units_work_on_the_stripe_of_the_decoder_beside_them(self):
        for board, memory in BOARDS.items():
            _, instances, banks, regions, _ = connectivity(board)
            _, _, hls_banks, hls_regions, _ = connectivity(board, "")
            for unit, kernel in instances.items():
                decoder = unit.replace(kernel, "paged_decode")
                stripe = hls_banks[f"{decoder}.kv"]
                self.assertTrue(stripe.startswith(memory))
                pages = {"kv_gather": ["pool"], "kv_store": ["slab"],
                         "kv_mover": ["source", "target"]}[kernel]
                for argument in self.addresses(kernel):
                    self.assertEqual(
                        banks[f"{unit}.{argument}"],
                        stripe if argument in pages
                        else hls_banks[f"{decoder}.work"])
                self.assertEqual(regions[unit], hls_regions[decoder])

    def test_every_stream_has_two_ends(self):
        sender = [a.attrib["name"] for a in xml_kernel("kv_gather").iter("arg")
                  if a.attrib["addressQualifier"] == STREAM_ARGUMENT]
        _, receiver = hls_arguments("stream/kv_store.cpp")
        self.assertEqual((len(sender), len(receiver)), (1, 1))
        for board in BOARDS:
            counts, _, _, _, streams = connectivity(board)
            self.assertEqual(counts["kv_gather"], counts["kv_store"])
            self.assertEqual(
                streams,
                [(f"kv_gather_{i}.{sender[0]}", f"kv_store_{i}.{receiver[0]}")
                 for i in range(1, counts["kv_gather"] + 1)])


class MakefileTest(unittest.TestCase):

    def expect_files(self, text):
        """Every source, script and configuration of a command exists."""
        words = re.findall(r'[\w./]+\.(?:cpp|tcl|cfg|sv|xml)\b', text)
        self.assertTrue(words)
        for word in words:
            self.assertTrue((KERNELS / word).exists(), word)

    def compiled(self, text):
        return re.findall(r"^v\+\+ -c .* -k (\w+) ", text, re.M)

    def packaged(self, text):
        return re.findall(r"^vivado .* -tclargs \S+ (\w+) ", text, re.M)

    def test_xclbin(self):
        for board in BOARDS:
            for design in ["hls", "rtl"]:
                text = make("xclbin", f"BOARD={board}", f"DESIGN={design}")
                self.expect_files(text)
                rtl = design == "rtl"
                kernels = HLS + (STREAM if rtl else [])
                self.assertEqual(self.compiled(text), kernels)
                self.assertEqual(self.packaged(text), RTL if rtl else [])
                link = re.findall(r"^v\+\+ -l .*$", text, re.M)
                self.assertEqual(len(link), 1)
                self.assertEqual(
                    re.findall(r"--config (\S+)", link[0]),
                    [f"cfg/{board}.cfg"] + [f"cfg/{board}_rtl.cfg"] * rtl)
                linked = re.findall(r"(\w+)\.xo", link[0])
                self.assertEqual(linked, kernels + (RTL if rtl else []))
                # What is linked is what the files place.
                placed = set(connectivity(board, "")[0])
                if rtl:
                    placed |= set(connectivity(board)[0])
                self.assertEqual(set(linked), placed)
                self.assertIn(f"xilinx_{board}_", link[0])

    def test_other_targets(self):
        for board in BOARDS:
            self.assertEqual(self.packaged(make("rtl", f"BOARD={board}")), RTL)
            text = make("hls", f"BOARD={board}")
            self.expect_files(text)
            self.assertEqual(re.findall(r"-tclargs\s+(\w+) ", text),
                             HLS + STREAM)
            self.assertIn(f"xc{board}-", text)
            text = make("hw_emu", f"BOARD={board}", "DESIGN=rtl")
            self.assertEqual(len(re.findall(r"^v\+\+ -l -t hw_emu ", text,
                                            re.M)), 1)
            self.assertIn("emconfigutil --platform xilinx_" + board, text)
            text = make("xo", f"BOARD={board}", "DESIGN=rtl")
            self.assertEqual(self.compiled(text), HLS + STREAM)
            self.assertEqual(self.packaged(text), RTL)

    def test_what_is_not_known_is_refused(self):
        for word in ["BOARD=u200", "DESIGN=both"]:
            done = subprocess.run(["make", "-n", "xclbin", word], cwd=KERNELS,
                                  capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(word.split("=")[1], done.stderr)


# Commands of Vivado print their words; [ipx::current_core] is "core".
STUB = """
proc unknown args {
  puts [join $args " "]
  if {[lindex $args 0] eq "ipx::current_core"} { return core }
  return ""
}
"""


@unittest.skipUnless(shutil.which("tclsh"), "tclsh is not installed")
class PackageTclTest(unittest.TestCase):

    def package(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "run.tcl"
            source = KERNELS / "rtl/package_kernel.tcl"
            script.write_text(
                STUB + f"set argv [list {' '.join(arguments)}]\n"
                f"set argc {len(arguments)}\nsource {source}\n")
            return subprocess.run(["tclsh", script], capture_output=True,
                                  text=True, cwd=folder)

    def test_packages_every_source_and_port(self):
        for kernel in RTL:
            done = self.package("out/k.xo", kernel, "xcu250", "work")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            added = next(line for line in lines if line.startswith("add_files"))
            for path in (KERNELS / "rtl").glob("*.sv"):
                self.assertIn(str(path), added)
            for port in xml_kernel(kernel).iter("port"):
                self.assertIn("ipx::associate_bus_interfaces -busif "
                              f"{port.attrib['name']} -clock ap_clk core", lines)
            self.assertIn(f"set_property top {kernel} ", lines)
            self.assertEqual(
                lines[-1], "package_xo -xo_path out/k.xo -kernel_name "
                f"{kernel} -ip_directory work/ip -kernel_xml "
                f"{KERNELS}/rtl/{kernel}.xml")

    def test_wants_all_arguments(self):
        self.assertEqual(self.package("out/k.xo").returncode, 2)


if __name__ == "__main__":
    unittest.main()
