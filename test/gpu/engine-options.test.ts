import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EngineOptions } from '../../gpu/engine.ts'
import { startHash } from '../../gpu/engine-options.ts'
import { fake } from './_fleet.ts'
import { temporary } from './launcher/_launch.ts'

test('a replaced file of the folder of a model, behind a link too, or of its command makes another start', async () => {
  const folder = temporary()
  const source = join(folder, 'model')
  mkdirSync(source)
  const [weights, linked, template] = [join(source, 'a'), join(folder, 'blob'), join(folder, 'template')] as const
  for (const file of [weights, linked, template]) writeFileSync(file, '1')
  symlinkSync(linked, join(source, 'b'))
  symlinkSync('/nowhere', join(source, 'c'))
  const options = { argv: ['true', '--template', template, '/nowhere'], env: {} } as unknown as EngineOptions
  const hash = () => startHash({ ...fake('a'), source }, options, { dataDir: folder, environment: process.env })
  let before = await hash()
  expect(await hash()).toBe(before)
  for (const file of [weights, linked, template]) {
    appendFileSync(file, '2')
    expect(await hash()).not.toBe(before)
    before = await hash()
  }
})
