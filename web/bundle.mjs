// node bundle.mjs BUILD: makes of src/ one HTML file without any reference to another, and of that a C++ source file.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = join(dirname(fileURLToPath(import.meta.url)), 'src');
const target = resolve(process.argv[2]);
const { buildSync } = createRequire(join(target, 'package.json'))('esbuild');

function bundled(entry) {
  const result = buildSync({
    entryPoints: [join(source, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['es2020'],
    charset: 'utf8',
    legalComments: 'none',
    nodePaths: [join(target, 'node_modules')],
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return result.outputFiles[0].text.trim();
}

// The shell's marks are replaced by functions, so that a dollar sign in the text stays one.
const html = readFileSync(join(source, 'page.html'), 'utf8')
  .replace('__SOTTO_STYLE__', () => bundled('style.css').replaceAll('</', '<\\/'))
  .replace('__SOTTO_SCRIPT__', () => bundled('main.ts').replaceAll('</script', '<\\/script'));
if (html.split('__SOTTO_DATA__').length !== 2) throw new Error('the page must say __SOTTO_DATA__ exactly once');
writeFileSync(join(target, 'page.html'), html);

// Octal escapes: at most three digits, so that what follows cannot become part of them.
const bytes = Buffer.from(html, 'utf8');
let literal = '';
let line = '  "';
for (const byte of bytes) {
  const plain = byte >= 32 && byte < 127 && byte !== 34 && byte !== 92 && byte !== 63;
  line += plain ? String.fromCharCode(byte) : '\\' + byte.toString(8).padStart(3, '0');
  if (line.length > 2000) {
    literal += line + '"\n';
    line = '  "';
  }
}
literal += line + '"';
writeFileSync(
  join(target, 'page_shell.cc'),
  `#include "report/page_shell.h"

namespace sotto::report {
namespace {

constexpr char kShell[] =
${literal};

}  // namespace

std::string_view page_shell() {
  return {kShell, sizeof kShell - 1};
}

}  // namespace sotto::report
`,
);
