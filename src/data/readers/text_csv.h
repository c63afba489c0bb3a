// Labelled texts in CSV files.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"
#include "io/csv.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::data {

// True if the header names a text column (text, content, sentence, review, title, description), or if without a header
// a column holds running text.
bool is_text_table(const std::vector<io::CsvRow>& rows);

// FILE.csv, or a folder with train.csv and perhaps test.csv. With a header, the label is the column called label,
// class, target or category (else the first), `domain` is the domain, and the others joined by a space are the text;
// without one, the first column is the label. Text that is not UTF-8, an empty text or label, and labels of the test
// file that never occur in training are UserErrors.
Dataset read_text_csv(const std::filesystem::path& path, const std::string& name);

// AG News: train.csv (class, title, description), or dev.csv (label, content) where that is missing; test.csv;
// classes.txt. Titles are used only if both files have them. Test descriptions that also occur in training are left
// out.
Dataset read_ag_news(const FileTree& tree, const std::string& name);

}  // namespace sotto::data
