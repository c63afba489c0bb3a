// Event files read by hand: frames, checksums and wire format from their descriptions, sharing no code with the writer.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

struct ReadHistogram {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits;
  std::vector<double> counts;
};

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
  std::map<std::string, ReadHistogram> histograms;
};

// One bit at a time.
inline uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    throw std::runtime_error("a varint without end");
  }

  template <typename T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view delimited() { return take(varint()); }

  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw std::runtime_error("cut off");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view rest_;
};

inline std::vector<double> packed_doubles(std::string_view bytes) {
  std::vector<double> values;
  for (WireReader reader(bytes); !reader.at_end();) values.push_back(reader.fixed<double>());
  return values;
}

inline ReadHistogram read_histogram(std::string_view bytes) {
  ReadHistogram histogram;
  for (WireReader reader(bytes); !reader.at_end();) {
    switch (reader.varint()) {
      case 1 << 3 | 1:
        histogram.min = reader.fixed<double>();
        break;
      case 2 << 3 | 1:
        histogram.max = reader.fixed<double>();
        break;
      case 3 << 3 | 1:
        histogram.num = reader.fixed<double>();
        break;
      case 4 << 3 | 1:
        histogram.sum = reader.fixed<double>();
        break;
      case 5 << 3 | 1:
        histogram.sum_squares = reader.fixed<double>();
        break;
      case 6 << 3 | 2:
        histogram.limits = packed_doubles(reader.delimited());
        break;
      case 7 << 3 | 2:
        histogram.counts = packed_doubles(reader.delimited());
        break;
      default:
        throw std::runtime_error("a histogram has no such field");
    }
  }
  return histogram;
}

inline void read_value(std::string_view bytes, ReadEvent& event) {
  std::string tag;
  for (WireReader reader(bytes); !reader.at_end();) {
    switch (reader.varint()) {
      case 1 << 3 | 2:
        tag = reader.delimited();
        break;
      case 2 << 3 | 5:
        event.scalars[tag] = reader.fixed<float>();
        break;
      case 5 << 3 | 2:
        event.histograms[tag] = read_histogram(reader.delimited());
        break;
      default:
        throw std::runtime_error("a value has no such field");
    }
  }
}

inline ReadEvent read_event(std::string_view bytes) {
  ReadEvent event;
  for (WireReader reader(bytes); !reader.at_end();) {
    switch (reader.varint()) {
      case 1 << 3 | 1:
        event.wall_time = reader.fixed<double>();
        break;
      case 2 << 3 | 0:
        event.step = static_cast<int64_t>(reader.varint());
        break;
      case 3 << 3 | 2:
        event.file_version = reader.delimited();
        break;
      case 5 << 3 | 2: {
        for (WireReader summary(reader.delimited()); !summary.at_end();) {
          if (summary.varint() != (1 << 3 | 2)) throw std::runtime_error("a summary has no such field");
          read_value(summary.delimited(), event);
        }
        break;
      }
      default:
        throw std::runtime_error("an event has no such field");
    }
  }
  return event;
}

// Throws where a checksum or a length is wrong, or where the file ends within a record.
inline std::vector<ReadEvent> read_events(std::string_view file) {
  const auto checked = [](WireReader& reader, uint64_t size) {
    const std::string_view bytes = reader.take(size);
    const uint32_t crc = slow_crc32c(bytes);
    if (reader.fixed<uint32_t>() != ((crc >> 15 | crc << 17) + 0xA282EAD8U)) throw std::runtime_error("checksum");
    return bytes;
  };
  std::vector<ReadEvent> events;
  for (WireReader reader(file); !reader.at_end();) {
    uint64_t length = 0;
    std::memcpy(&length, checked(reader, sizeof(length)).data(), sizeof(length));
    events.push_back(read_event(checked(reader, length)));
  }
  return events;
}

}  // namespace sotto
