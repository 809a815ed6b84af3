import { Command } from '@commander-js/extra-typings'
import { stripAnsi } from 'consola/utils'
import { expect, test } from 'vitest'
import { define } from '../../../cli/config/explain.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'
import { configKeys } from '../../../core/models/config-keys.ts'
import { infer, json } from '../_infer.ts'

test('without a key all keys are listed, each on one line', async () => {
  const { exitCode, stdout } = await infer(['config', 'explain'])
  const [head, ...rows] = stdout.trimEnd().split('\n')
  expect([exitCode, head]).toEqual([0, expect.stringMatching(/^KEY +DEFAULT +MEANING$/)])
  expect(rows.map(row => row.split(' ')[0])).toEqual(configKeys().map(({ key }) => key))
  expect(json(await infer(['config', 'explain', '--json']))).toEqual(configKeys())
})

test('a key is explained, whether it is given in full or in part', async () => {
  const { stdout } = await infer(['config', 'explain', 'models.memory'])
  expect(stdout).toMatch(/^models\[\]\.memory\nDevice memory .*\n/)
  expect(stdout).toMatch(/\n {2}Type +size: .*\n {2}Default +estimated .*\n {2}Changes +take effect .*new engine\n/)
  expect(stdout).toContain('\nExample:\n  models:\n    - id: qwen3-8b\n')
  expect((await infer(['config', 'explain', 'models[0].memory'])).stdout).toBe(stdout)
  expect(json(await infer(['config', 'explain', 'models.memory', '--json']))).toMatchObject({ key: 'models[].memory' })
})

test('a section is explained with its keys', async () => {
  const { stdout } = await infer(['config', 'explain', 'cors'])
  expect(stdout).toMatch(/^cors\n/)
  expect(stdout).toMatch(/\nKEY .*\ncors\.origins +\[\] +Origins /)
})

/** The text in a terminal of 80 columns. */
async function shown(...args: string[]): Promise<string> {
  let text = ''
  const stdout = { isTTY: true, columns: 80, write: (piece: string) => void (text += piece) }
  const terminal = openTerminal({
    stdin: process.stdin,
    stdout: stdout as unknown as NodeJS.WriteStream,
    stderr: process.stderr,
    env: {},
  })
  const command = new Command('explain')
  define(command, terminal)
  await command.parseAsync(args, { from: 'user' })
  return stripAnsi(text)
}

test.each([[[]], [['limits']], [['models']], [['sandbox']], [['allowed_hosts']], [['INFER_MASTER_KEY']]])(
  'the explanation of %j fits 80 columns',
  async args => {
    const lines = (await shown(...args)).split('\n')
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.filter(line => line.length > 80)).toEqual([])
  },
)

test('an environment variable is explained', async () => {
  const { stdout } = await infer(['config', 'explain', 'infer_data_dir'])
  expect(stdout).toMatch(/^INFER_DATA_DIR {2}environment variable\n/)
  expect(stdout).toContain('export INFER_DATA_DIR=')
})

test.each([
  ['memroy', /no key 'memroy'.*Did you mean 'models\[\]\.memory'/],
  ['limits.jsonbody', /Did you mean 'limits\.json_body'/],
  ['INFER_DATADIR', /Did you mean 'INFER_DATA_DIR'/],
  ['xyzzy-plugh', /no key 'xyzzy-plugh' in infer\.yaml\. See: infer config explain/],
])('a mistyped %s gets the nearest names', async (name, says) => {
  const { exitCode, stderr } = await infer(['config', 'explain', name])
  expect([exitCode, stderr]).toEqual([64, expect.stringMatching(says) as string])
})
