import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { addonRefusal, loadAddon } from '../../core/assets.ts'

test.each([
  ["/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /c/addon.node)", /glibc 2\.34/],
  [
    "/usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /c/addon.node)",
    /too old for infer.*GCC 12/,
  ],
  ['/c/addon.node: failed to map segment from shared object', /noexec.*INFER_CACHE_DIR/],
  ['/c/addon.node: file too short', /^Native code could not be loaded: \/c\/addon\.node: file too short\.$/],
])('when the loader reports %s, the message says what to do', (said, expected) => {
  expect(addonRefusal('/c/addon.node', said)).toMatch(expected)
})

test('a file that is not native code is refused with a sentence', () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-addon-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'addon.node'), 'not native code, but long enough for a header '.repeat(10))
  expect(() => loadAddon(join(folder, 'addon.node'))).toThrow(/^Native code could not be loaded: .*addon\.node/)
})
