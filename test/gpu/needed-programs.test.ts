import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Model } from '../../core/models/model.ts'
import { openNeededPrograms } from '../../gpu/needed-programs.ts'

/** An ffmpeg that fails until `repair`, and writes a line for each of its runs. */
function failingFfmpeg() {
  const folder = mkdtempSync(join(tmpdir(), 'infer-needed-programs-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'ffmpeg')
  writeFileSync(
    file,
    `#!/bin/sh\n[ -e ${folder}/repaired ] || exit 1\necho 'ffmpeg version 7.1 Copyright (c) the FFmpeg developers'\n`,
    { mode: 0o755 },
  )
  return { file, repair: () => writeFileSync(join(folder, 'repaired'), '') }
}

test('a program whose test failed is tested again after a minute, and counts as unusable until then', async () => {
  const { file, repair } = failingFfmpeg()
  const model = Model.parse({ id: 'film', engine: 'demo', tasks: ['slug/text-to-video'], args: ['--ffmpeg', file] })
  let now = 1_000
  const programs = await openNeededPrograms(
    [model],
    () => '',
    () => now,
  )
  const reason = `which cannot be run: it failed with the option -version`
  expect(programs.missingForAll(model)).toContain(reason)
  repair()
  now += 59_999
  expect(programs.missingForAll(model)).toContain(reason)
  await programs.tested()
  expect(programs.missingForAll(model)).toContain(reason)
  now += 1
  expect(programs.missingForAll(model)).toContain(reason)
  await programs.tested()
  expect(programs.missingForAll(model)).toBeNull()
})
