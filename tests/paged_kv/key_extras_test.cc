// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include "paged_kv/key_extras.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/paged_kv/test_seed.h"
#include "tests/support/random_options.h"

namespace paged_kv {
namespace {

using Extras = std::vector<KeyExtra>;
// What must be equal for two lists to mean the same: the set of their parts.
using Meaning = std::vector<std::tuple<uint32_t, int, std::string>>;

Meaning MeaningOf(const Extras& extras) {
  Meaning parts;
  for (const KeyExtra& extra : extras) {
    parts.emplace_back(extra.position.value(), static_cast<int>(extra.kind),
                       std::string(extra.value));
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

std::string Serialize(const Extras& extras) {
  std::string frames = "what was there before";
  internal::SerializeExtras(extras, &frames);
  EXPECT_EQ(frames.size(), internal::SerializedExtrasBytes(extras));
  return frames;
}

TEST(KeyExtrasTest, FactoriesSetKindAndPosition) {
  EXPECT_EQ(Salt("x").kind, KeyExtra::Kind::kSalt);
  EXPECT_EQ(Adapter("x").kind, KeyExtra::Kind::kAdapter);
  const KeyExtra content = Content(TokenPos(7), "h");
  EXPECT_EQ(content.kind, KeyExtra::Kind::kContent);
  EXPECT_EQ(content.position, TokenPos(7));
  EXPECT_EQ(content.value, "h");
  EXPECT_EQ(Salt("x").position, TokenPos(0));
}

TEST(KeyExtrasTest, NoneIsEmpty) { EXPECT_EQ(Serialize({}), ""); }

TEST(KeyExtrasTest, EachPartIsFramedByNineBytes) {
  const std::string frames = Serialize({Content(TokenPos(0x01020304), "abc")});
  EXPECT_EQ(frames, std::string("\x03\x04\x03\x02\x01\x03\x00\x00\x00"
                                "abc",
                                12));
}

TEST(KeyExtrasTest, ListsThatDifferInAnythingSerializeDifferently) {
  const std::string zero("\0", 1);
  const std::string frame_like = "x\x02" + std::string(8, '\0');
  const std::vector<Extras> lists = {
      {},
      {Salt("")},
      {Salt("x")},
      {Salt("y")},
      {Salt("xy")},
      {Salt("x"), Salt("y")},
      {Salt("x"), Salt("x")},
      {Salt(zero)},
      {Adapter("x")},
      {Adapter("")},
      {Salt("x"), Adapter("")},
      {Content(TokenPos(0), "x")},
      {Content(TokenPos(1), "x")},
      {Content(TokenPos(256), "x")},
      {Content(TokenPos(1), "x"), Content(TokenPos(2), "y")},
      {Content(TokenPos(1), "y"), Content(TokenPos(2), "x")},
      {Content(TokenPos(1), "xy")},
      // A value that looks like the frame of another part.
      {Salt(frame_like)},
  };
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < lists.size(); ++i) {
    const auto [it, added] = seen.emplace(Serialize(lists[i]), i);
    EXPECT_TRUE(added) << i << " serializes like " << it->second;
  }
}

TEST(KeyExtrasTest, RandomListsAreEqualExactlyIfTheyMeanTheSame) {
  testing::RandomBits random(TestSeed(5));
  const std::string values[] = {"",
                                "a",
                                "b",
                                "aa",
                                std::string("\0\1", 2),
                                std::string("\x01\0\0\0\0\0\0\0\0", 9)};
  std::map<std::string, Meaning> meaning_of;
  std::map<Meaning, std::string> frames_of;
  for (int i = 0; i < 20000; ++i) {
    Extras extras(random.Below(4));
    for (KeyExtra& extra : extras) {
      extra.kind = static_cast<KeyExtra::Kind>(random.Between(1, 4));
      extra.position = TokenPos(random.Below(3) * 255);
      extra.value = values[random.Below(6)];
    }
    const Meaning meaning = MeaningOf(extras);
    const std::string frames = Serialize(extras);
    EXPECT_EQ(meaning_of.emplace(frames, meaning).first->second, meaning);
    EXPECT_EQ(frames_of.emplace(meaning, frames).first->second, frames);
  }
}

TEST(KeyExtrasTest, CutsByPositionFromTheFront) {
  const Extras extras = {Content(TokenPos(40), "d"), Salt("a"),
                         Content(TokenPos(15), "b"),
                         Content(TokenPos(16), "c")};
  const std::string all = Serialize(extras);
  const auto expect_cut = [&](absl::string_view* rest, uint32_t end,
                              const Extras& expected) {
    EXPECT_EQ(internal::CutExtrasBefore(end, rest), Serialize(expected));
  };
  absl::string_view rest = all;
  expect_cut(&rest, 0, {});
  expect_cut(&rest, 16, {Salt("a"), Content(TokenPos(15), "b")});
  expect_cut(&rest, 16, {});
  expect_cut(&rest, 32, {Content(TokenPos(16), "c")});
  expect_cut(&rest, 40, {});
  expect_cut(&rest, 41, {Content(TokenPos(40), "d")});
  EXPECT_TRUE(rest.empty());
  expect_cut(&rest, 1000, {});
}

}  // namespace
}  // namespace paged_kv
