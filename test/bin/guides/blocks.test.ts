import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { topicGroups } from '../../../bin/guides/topics.ts'
import { readWorkflowFile } from '../../../cli/workflows/document.ts'
import { parseConfig } from '../../../core/models/config.ts'
import { defaultModels } from '../../../core/models/defaults.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { diagnose } from '../../../core/workflows/diagnose.ts'
import { blockingOf } from '../../../core/workflows/diagnostics.ts'
import { offerOf } from '../../../core/workflows/offer.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'
import { type Block, blocksOf, shells, writtenPages } from '../../_blocks.ts'
import { faultOf } from './_command-line.ts'
import { shellCommands } from './_shell-commands.ts'

const topics = topicGroups.flatMap(group => group.topics.map(({ topic }) => topic))
const blocks = writtenPages().flatMap(page => page.blocks)
const named = (those: (block: Block) => boolean) => blocks.filter(those).map(block => ({ at: block.at, block }))

const folder = mkdtempSync(join(tmpdir(), 'infer-blocks-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a block is found with its language, its marks and its line', () => {
  const markdown = '# A\n\n```sh test\nls\n```\n\n- in a list\n\n  ```yaml workflow file=a.yaml\n  a: 1\n  ```\n'
  expect(blocksOf('a.md', markdown)).toEqual([
    { at: 'a.md:3', language: 'sh', marks: ['test'], text: 'ls' },
    { at: 'a.md:9', language: 'yaml', marks: ['workflow', 'file=a.yaml'], text: 'a: 1' },
  ])
})

describe('shell blocks', () => {
  const all = named(({ language }) => shells.has(language))

  test('there are some', () => expect(all.length).toBeGreaterThan(5))

  test.each(all)('$at is marked as run or with the reason why not', ({ block }) => {
    expect(block.language).toBe('sh')
    expect(['test', 'gpu', 'network', 'root']).toContain(block.marks[0])
  })

  test.each(all)('$at is valid shell', ({ block }) => {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: block.text, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })

  test.each(all)('$at calls commands of infer that exist, with options that exist', async ({ block }) => {
    const faults = []
    for (const [name, ...args] of shellCommands(block.text))
      if (name === 'infer') faults.push((await faultOf(args, topics)) ?? [])
    expect(faults.flat()).toEqual([])
  })
})

describe('YAML blocks', () => {
  const all = named(({ language }) => language === 'yaml')

  test.each(all)('$at is marked and is valid YAML', ({ block }) => {
    expect(block.marks.length).toBeGreaterThan(0)
    expect(() => parse(block.text) as unknown).not.toThrow()
  })

  test.each(all.filter(({ block }) => block.marks[0] === 'config'))('$at is an infer.yaml', ({ block }) => {
    parseConfig(block.text, block.at, traitsOf)
  })

  test.each(all.filter(({ block }) => block.marks[0] === 'workflow'))(
    '$at is a workflow that runs with the toy models',
    ({ block }) => {
      const path = join(folder, 'workflow.yaml')
      writeFileSync(path, block.text)
      const { dag, parameters = null } = readWorkflowFile(path).document
      const offer = offerOf(openRegistry({ models: [], defaults: defaultModels, traits: traitsOf }), () => true)
      expect(blockingOf(diagnose(dag, parameters ?? undefined, offer))).toEqual([])
    },
  )
})

describe('program blocks', () => {
  test.each(named(({ language }) => language === 'json'))('$at is JSON', ({ block }) => {
    expect(() => JSON.parse(block.text) as unknown).not.toThrow()
  })

  test.each(named(({ language }) => language === 'ts'))('$at is TypeScript', ({ block }) => {
    expect(() => stripTypeScriptTypes(block.text)).not.toThrow()
    // Code without its types must still be valid JavaScript.
    execFileSync(process.execPath, ['--check', '--input-type=module', '-'], {
      input: stripTypeScriptTypes(block.text),
    })
  })

  const hasPython = spawnSync('python3', ['--version']).status === 0
  test.skipIf(!hasPython).each(named(({ language }) => language === 'python'))('$at is Python', ({ block }) => {
    const { status, stderr } = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
      input: block.text,
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
  })
})
