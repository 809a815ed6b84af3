import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { digest } from '../../bin/stamp.ts'

const changes: Record<string, (folder: string) => void> = {
  'a file is longer': folder => rewrite(folder, 'core/store/a.ts', 'aa'),
  'a file is newer': folder => utimesSync(join(folder, 'core/store/a.ts'), 2_000, 2_000),
  'a file is older': folder => utimesSync(join(folder, 'core/store/a.ts'), 500, 500),
  'a file is added': folder => rewrite(folder, 'core/b.ts', ''),
  'a file is removed': folder => rmSync(join(folder, 'core/store/a.ts')),
  'a folder is removed': folder => rmSync(join(folder, 'core'), { recursive: true }),
  'a single file is newer': folder => utimesSync(join(folder, 'package.json'), 2_000, 2_000),
}
const same: Record<string, (folder: string) => void> = {
  nothing: () => {},
  'a generated file is added': folder => rewrite(folder, 'core/types.generated.ts', 'x'),
  'a file is added elsewhere': folder => rewrite(folder, 'test/a.ts', 'x'),
}

test.each(Object.keys(changes))('a step runs again when %s', change => {
  const folder = tree()
  const before = digest(['package.json', 'core'], folder)
  changes[change]!(folder)
  expect(digest(['package.json', 'core'], folder)).not.toBe(before)
})

test.each(Object.keys(same))('a step does not run again for this change: %s', change => {
  const folder = tree()
  const before = digest(['package.json', 'core'], folder)
  same[change]!(folder)
  expect(digest(['package.json', 'core'], folder)).toBe(before)
})

function tree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'infer-stamp-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  rewrite(folder, 'package.json', '{}')
  rewrite(folder, 'core/store/a.ts', 'a')
  return folder
}

function rewrite(folder: string, path: string, text: string): void {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), text)
  utimesSync(join(folder, path), 1_000, 1_000)
}
