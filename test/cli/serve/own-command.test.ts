import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { ownCommand } from '../../../cli/serve/try-next.ts'

const packed = { packaged: true, argv0: 'infer', script: 'program.cjs', dataDir: undefined }

test.each([
  ['found on the PATH', packed, 'infer chat', undefined],
  ['typed with a path', { ...packed, argv0: './build/infer' }, `${resolve('build/infer')} chat`, undefined],
  ['another data directory', { ...packed, dataDir: '/my data' }, "infer chat --data-dir '/my data'", undefined],
  ['built', { ...packed, packaged: false, script: '/src/infer/dist/main.cjs' }, 'npm run infer -- chat', '/src/infer'],
  [
    'from source',
    { ...packed, packaged: false, script: '/src/infer/cli/main.ts' },
    'npm run infer -- chat',
    '/src/infer',
  ],
])('%s', (_, how, line, folder) => {
  const own = ownCommand(how)
  expect([own.line('chat'), own.folder]).toEqual([line, folder])
})

test('no text sends a reader to the npm package of this name', () => {
  const texts = globSync(['*.md', '{bin,cli,core,gpu,server}/**/*.{md,ts,js,json}'])
  expect(texts.length).toBeGreaterThan(300)
  const offending = texts.filter(path =>
    /npx infer|npm (i|install|exec) (-g )?infer\b/.test(readFileSync(path, 'utf8')),
  )
  expect(offending.filter(path => path !== 'cli/serve/own-command.ts')).toEqual([])
})
