import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { editConfigFile } from '../../../core/models/config-file.ts'
import {
  addModel,
  changeModel,
  type ModelChange,
  offerToys,
  removeModel,
  schemaHint,
} from '../../../core/models/edit.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'
import { temporaryFolder } from '../../cli/_infer.ts'

const commented = `# Kept by ada.
listen: 127.0.0.1:9000   # behind nginx

models:
  # --- chat ---
  - id: small            # the fast one
    source: /m/small.gguf
    args: [--flash, 'on']
    # measured on Tuesday
    concurrency: 4
  # --- the rest ---
  # - id: commented-out
  - id: large
    source: "/m/large.gguf"

limits:
  depth: 32  # enough
`
const mine = { id: 'mine', source: '/m/mine.gguf', tasks: ['std/embeddings' as const], context_length: 512 }
const mineText = `- id: mine
    source: /m/mine.gguf
    tasks: [std/embeddings]
    context_length: 512
`

/** Replaces one part of a text: everything else must stay the same, byte for byte. */
const swap = (text: string, from: string, to: string) => {
  expect(text.split(from)).toHaveLength(2)
  return text.replace(from, () => to)
}

test.each<[rule: string, before: string, after: string]>([
  ['the last of the list', commented, swap(commented, '/m/large.gguf"\n', `/m/large.gguf"\n  ${mineText}`)],
  ['a file that is empty gets the hint for editors', '', `${schemaHint}models:\n  ${mineText}`],
  ['a file of comments keeps them', '# none yet\n', `# none yet\nmodels:\n  ${mineText}`],
  ['a list is made where there is none', 'listen: :1', `listen: :1\nmodels:\n  ${mineText}`],
  ['an empty list is filled', 'models: []\n', `models:\n  ${mineText}`],
  ['a list that is only a name', 'models: # mine\nlisten: :1\n', `models: # mine\n  ${mineText}listen: :1\n`],
  [
    'a list that is not indented stays so',
    'models:\n- id: a\n  source: /a # last line',
    'models:\n- id: a\n  source: /a # last line\n- id: mine\n  source: /m/mine.gguf\n  tasks: [std/embeddings]\n  context_length: 512\n',
  ],
  [
    'empty lines between models go on',
    'models:\n  - id: a\n\n  - id: b\n',
    `models:\n  - id: a\n\n  - id: b\n\n  ${mineText}`,
  ],
  [
    'after a block of text',
    'models:\n  - id: a\n    description: |\n      one\n      two\nlisten: :1\n',
    `models:\n  - id: a\n    description: |\n      one\n      two\n  ${mineText}listen: :1\n`,
  ],
])('add: %s', (_, before, after) => {
  expect(addModel(before, mine)).toBe(after)
})

test('add: in any form of the list the model is added and the others are kept', () => {
  for (const text of [
    'models: [{id: a, source: /a}]  # flow\n',
    '{models: [{id: a}]}\n',
    'models:\n  -\n    id: a\n    source: /a\n',
    'x: &x\nmodels:\n  - &a\n    id: a\n'.replace('x: &x\n', ''),
    '---\nmodels:\n  - id: a\n...\n',
    'models:\r\n  - id: a # here\r\n    source: /a\r\n',
  ]) {
    const after = addModel(text, mine)
    expect(parseConfig(after, 'x').models.map(({ id }) => id)).toEqual(['a', 'mine'])
    expect(/[^\r]\n/.test(after)).toBe(!text.includes('\r'))
    if (text.includes('#')) expect(after).toContain('#')
  }
})

test.each<[rule: string, id: string, before: string, after: string]>([
  [
    'with the comments inside it, not those around it',
    'small',
    commented,
    commented.slice(0, commented.indexOf('  - id: small')) + commented.slice(commented.indexOf('  # --- the rest')),
  ],
  ['the last', 'large', commented, swap(commented, '  - id: large\n    source: "/m/large.gguf"\n', '')],
  ['the only one', 'a', '# mine\nmodels:\n  - id: a\nlisten: :1 # one\n', '# mine\nmodels: []\nlisten: :1 # one\n'],
  ['without a line break at the end', 'b', 'models:\n  - id: a\n  - id: b', 'models:\n  - id: a\n'],
  [
    'what follows it further in is about it',
    'a',
    'models:\n  - id: a\n    # about a\n  # about b\n  - id: b\n',
    'models:\n  # about b\n  - id: b\n',
  ],
  ['of a list on one line', 'a', 'models: [{id: a}, {id: b}] # two\n', 'models: [{id: b}] # two\n'],
])('remove: %s', (_, id, before, after) => {
  expect(removeModel(before, id)).toBe(after)
})

test.each<[rule: string, id: string, change: ModelChange, before: string, after: string]>([
  [
    'a value, and what stands beside it stays',
    'small',
    { id: 'tiny' },
    commented,
    swap(commented, 'id: small ', 'id: tiny '),
  ],
  ['a quoted value', 'large', { source: '/b' }, commented, swap(commented, '"/m/large.gguf"', '/b')],
  ['a list', 'small', { args: ['-x'] }, commented, swap(commented, "[--flash, 'on']", '[-x]')],
  [
    'new fields, at the end',
    'small',
    { enabled: false, max_queue: 3 },
    commented,
    swap(commented, 'concurrency: 4\n', 'concurrency: 4\n    enabled: false\n    max_queue: 3\n'),
  ],
  ['null takes it out', 'small', { concurrency: null }, commented, swap(commented, '    concurrency: 4\n', '')],
  ['null for what is not there', 'small', { memory: null }, commented, commented],
  ['undefined is no change', 'small', { memory: undefined }, commented, commented],
  [
    'a mapping',
    'a',
    { env: { A: '1', B: 'x y' } },
    'models:\n  - id: a\n    env:\n      C: d\n    source: /a\n',
    'models:\n  - id: a\n    env:\n      A: "1"\n      B: x y\n    source: /a\n',
  ],
])('change: %s', (_, id, change, before, after) => {
  expect(changeModel(before, id, change)).toBe(after)
})

test.each<[rule: string, edit: () => string, says: RegExp]>([
  [
    'an id that is taken',
    () => addModel(commented, { id: 'small' }, '/x.yaml'),
    /^\/x.yaml already has a model 'small'/,
  ],
  ['a model that is not there', () => removeModel(commented, 'none', '/x.yaml'), /no model 'none'.*infer model list/],
  ['the same for a change', () => changeModel('', 'none', { enabled: true }), /no model 'none'/],
  ['a wrong id', () => addModel('', { id: 'a b' }), /^infer\.yaml:3:5: 'models\[0\]\.id'/],
  ['a wrong value', () => changeModel(commented, 'small', { concurrency: 0 }), /:10:5: .*concurrency.* at least 1/],
  ['an id changed to one that is taken', () => changeModel(commented, 'small', { id: 'large' }), /used twice/],
  ['a file that is broken already', () => addModel('models: [\n', mine), /^infer\.yaml:\d:\d: /],
  ['a file that is wrong already', () => removeModel('modles: []\n', 'a'), /Did you mean 'models'/],
])('refused: %s', (_, edit, says) => {
  expect(edit).toThrow(says)
})

test.each([
  ['', `${schemaHint}toys: true\n`],
  ['listen: 127.0.0.1:9000 # mine', 'listen: 127.0.0.1:9000 # mine\ntoys: true\n'],
  ['toys: false\n', 'toys: false\n'],
  ['{listen: 127.0.0.1:9000}\n', '{listen: 127.0.0.1:9000, toys: true}\n'],
])('the toys are available in %j', (before, after) => {
  expect(offerToys(before)).toBe(after)
  expect(parseConfig(addModel(after, mine), 'infer.yaml').models).toHaveLength(1)
})

test('the file is replaced as a whole, with its mode, and through a link', () => {
  const folder = temporaryFolder()
  const real = join(folder, 'real.yaml')
  const link = join(folder, 'infer.yaml')
  writeFileSync(real, commented, { mode: 0o640 })
  symlinkSync(real, link)
  const before = statSync(real).ino
  editConfigFile(link, text => addModel(text, mine))
  expect(readFileSync(real, 'utf8')).toContain('- id: mine')
  expect([statSync(real).mode & 0o777, statSync(real).ino === before]).toEqual([0o640, false])
  expect(readdirSync(folder).toSorted((a, b) => a.localeCompare(b))).toEqual(['infer.yaml', 'real.yaml'])
})

test('an invalid file is not written, and no temporary file is left', () => {
  const folder = temporaryFolder()
  const path = join(folder, 'infer.yaml')
  writeFileSync(path, commented)
  expect(() => editConfigFile(path, text => changeModel(text, 'small', { concurrency: 0 }))).toThrow('at least 1')
  // Values that the schema allows can still exceed every engine.
  const unknown = (text: string) => changeModel(text, 'small', { engine: 'vlm' })
  expect(() => editConfigFile(path, unknown, traitsOf)).toThrow(/:11:5: .*no engine 'vlm'/)
  expect(readFileSync(path, 'utf8')).toBe(commented)
  expect(readdirSync(folder)).toEqual(['infer.yaml'])
})

test('a new file is readable by its owner only and names its schema', () => {
  const folder = join(temporaryFolder(), 'new')
  const path = join(folder, 'infer.yaml')
  editConfigFile(path, text => addModel(text, mine))
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const [hint] = readFileSync(path, 'utf8').split('\n')
  const [, schema] = /\$schema=(\S+)/.exec(hint!)!
  expect(JSON.parse(readFileSync(join(folder, schema!), 'utf8'))).toHaveProperty('$schema')

  // A schema file that cannot be written does not lose the edit.
  rmSync(join(folder, schema!))
  mkdirSync(join(folder, schema!))
  editConfigFile(path, text => removeModel(text, 'mine'))
  expect(readFileSync(path, 'utf8')).toBe(`${schemaHint}models: []\n`)
})

test('a concurrent edit between reading and writing is not lost', () => {
  const path = join(temporaryFolder(), 'infer.yaml')
  writeFileSync(path, commented)
  let others = 0
  editConfigFile(path, text => {
    if (others++ === 0) writeFileSync(path, changeModel(text, 'large', { concurrency: 2 }))
    return addModel(text, mine)
  })
  const { models } = parseConfig(readFileSync(path, 'utf8'), path)
  expect(models.map(({ id, concurrency }) => [id, concurrency])).toEqual([
    ['small', 4],
    ['large', 2],
    ['mine', undefined],
  ])
})

test('an unwritable folder is reported, and the file is unchanged', () => {
  const folder = temporaryFolder()
  const path = join(folder, 'infer.yaml')
  mkdirSync(`${path}.${process.pid}.new`)
  writeFileSync(path, commented)
  expect(() => editConfigFile(path, text => addModel(text, mine))).toThrow('EISDIR')
  expect(readFileSync(path, 'utf8')).toBe(commented)
})
