// The binary files of CIFAR-10 and CIFAR-100.
//
//   CIFAR-10  record := label(u8) red(1024) green(1024) blue(1024)
//   CIFAR-100 record := coarse label(u8) fine label(u8) red(1024) green(1024) blue(1024)
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

bool is_cifar10(const FileTree& tree);   // has data_batch_1.bin
bool is_cifar100(const FileTree& tree);  // has train.bin and test.bin

// data_batch_1.bin … data_batch_5.bin (those that are there), test_batch.bin, batches.meta.txt. A file that is not a
// whole number of records, or a label out of range, is a UserError.
Dataset read_cifar10(const FileTree& tree, const std::string& name);

// train.bin, test.bin, fine_label_names.txt. Labels are the 100 fine ones.
Dataset read_cifar100(const FileTree& tree, const std::string& name);

}  // namespace sotto::data
