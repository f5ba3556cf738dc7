// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/tool/plot.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/benchmarks/test_files.h"

namespace paged_kv::tool {
namespace {

bool HaveGnuplot() { return std::system("gnuplot --version >/dev/null") == 0; }

Plot Line(const std::string& title) {
  Plot plot;
  plot.data = {{"line", {{"", {0, 1}}, {"", {1, 4}}, {"", {2, 9}}}}};
  plot.script = "set title " + PlotQuote(title) +
                " noenhanced\nplot $line using 1:2 with lines";
  return plot;
}

// Temporarily another PATH.
class ScopedPath {
 public:
  explicit ScopedPath(const std::string& path) : old_(std::getenv("PATH")) {
    setenv("PATH", path.c_str(), 1);
  }
  ~ScopedPath() { setenv("PATH", old_.c_str(), 1); }

 private:
  const std::string old_;
};

TEST(PlotTest, WritesSvgAndPng) {
  if (!HaveGnuplot()) GTEST_SKIP() << "no gnuplot";
  const std::string svg = TestFile("line.svg");
  ASSERT_TRUE(WritePlot(Line("it's a <line>"), svg).ok());
  const std::string text = ReadAll(svg);
  EXPECT_TRUE(absl::StrContains(text, "<svg"));
  EXPECT_TRUE(absl::StrContains(text, "s a &lt;line"));
  const std::string png = TestFile("line.png");
  ASSERT_TRUE(WritePlot(Line("x"), png).ok());
  EXPECT_EQ(ReadAll(png).substr(0, 8), "\x89PNG\r\n\x1a\n");
}

TEST(PlotTest, LabelsMayHoldQuotesAndSpaces) {
  if (!HaveGnuplot()) GTEST_SKIP() << "no gnuplot";
  Plot plot;
  plot.data = {{"bars", {{"a \"b\" c", {1}}, {"d", {2}}}}};
  plot.script = "set style data histogram\nplot $bars using 2:xtic(1) notitle";
  const std::string svg = TestFile("bars.svg");
  ASSERT_TRUE(WritePlot(plot, svg).ok());
  EXPECT_TRUE(absl::StrContains(ReadAll(svg), "a 'b' c"));
}

TEST(PlotTest, PathsWithQuotesAreFiles) {
  if (!HaveGnuplot()) GTEST_SKIP() << "no gnuplot";
  const std::string svg = TestFile("it's; system('false').svg");
  ASSERT_TRUE(WritePlot(Line("x"), svg).ok());
  EXPECT_GT(std::filesystem::file_size(svg), 1000u);
}

TEST(PlotTest, SuffixMustBeKnown) {
  if (HaveGnuplot()) {
    EXPECT_TRUE(CheckCanPlot("a.svg").ok());
    EXPECT_TRUE(CheckCanPlot("a.png").ok());
  }
  for (const char* path : {"a.pdf", "svg", ""}) {
    const absl::Status status = WritePlot(Line("x"), path);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
  }
}

TEST(PlotTest, FolderMustExist) {
  if (!HaveGnuplot()) GTEST_SKIP() << "no gnuplot";
  const absl::Status status = WritePlot(Line("x"), "no/such/folder/a.svg");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "no/such/folder/a.svg"));
}

TEST(PlotTest, AMissingFolderIsKnownBeforeAnythingIsMeasured) {
  const absl::Status status = CheckCanPlot("no/such/folder/a.svg");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "'no/such/folder'"));
}

TEST(PlotTest, MissingGnuplotSaysWhatToInstall) {
  const std::string path = TestFile("a.svg");
  const ScopedPath none("/nonexistent");
  const absl::Status status = WritePlot(Line("x"), path);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "gnuplot-nox")) << status;
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PlotTest, FailureCarriesGnuplotsWords) {
  if (!HaveGnuplot()) GTEST_SKIP() << "no gnuplot";
  Plot plot;
  plot.script = "plot nonsense(";
  const std::string path = TestFile("a.svg");
  const absl::Status status = WritePlot(plot, path);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_TRUE(absl::StrContains(status.message(), "gnuplot failed"));
  EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace paged_kv::tool
