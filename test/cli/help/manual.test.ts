import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { expect, test } from 'vitest'
import { entries, helpLast, openProgram } from '../../../cli/commands/program.ts'
import { drawRows } from '../../../cli/help/manual.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'

const terminal = openTerminal({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} })
const shown = entries.filter(({ group }) => group !== 'hidden')

/** The help of a command as printed, including the text that is added after commander's own. */
function helpOf(command: CommandUnknownOpts): string {
  let text = ''
  command.configureOutput({ writeOut: piece => void (text += piece), getOutHelpWidth: () => 80 })
  command.outputHelp()
  return text
}

const all: { name: string; command: CommandUnknownOpts }[] = []
for (const { name } of shown) {
  const program = await openProgram([name], terminal)
  const walk = (command: CommandUnknownOpts, path: string) => {
    all.push({ name: path, command })
    for (const below of command.createHelp().visibleCommands(command))
      if (below.name() !== 'help') walk(below, `${path} ${below.name()}`)
  }
  walk(program.commands.find(command => command.name() === name)!, name)
}

/** Set for engines by the server, or left by the login of the hub's own tools. */
const internal = new Set([
  'INFER_BOOT_ID',
  'INFER_LAUNCH_ID',
  'HF_MODULES_CACHE',
  'HF_TOKEN_PATH',
  'HF_HUB_DISABLE_IMPLICIT_TOKEN',
  'HF_HUB_DISABLE_TELEMETRY',
])

test('every environment variable that the program reads is in the help of some command', () => {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const sources = globSync('{cli,core,gpu,server}/**/*.ts', { cwd: root }).map(file =>
    readFileSync(join(root, file), 'utf8'),
  )
  const named = new Set(sources.flatMap(text => text.match(/\b(?:INFER|HF)_[A-Z_]*[A-Z]\b|\bHTTPS_PROXY\b/g) ?? []))
  const told = all.map(({ command }) => helpOf(command)).join('\n')
  expect([...named].filter(name => !internal.has(name) && !told.includes(`\n  ${name} `))).toEqual([])
})

test('there are many commands', () => expect(all.length).toBeGreaterThan(25))

test.each(all)('$name: summary, description, examples, environment, exit codes', ({ name, command }) => {
  const help = helpOf(command)
  expect(command.summary()).toMatch(/^[a-z].*[^.]$/)
  expect(command.description()).toMatch(/^[A-Z].*\.$/s)
  expect(help).toContain(`Usage: infer ${name}`)
  expect(help).toMatch(/\nExamples:\n {2}\S/)
  expect(help).toMatch(/\nEnvironment:\n {2}[A-Z_]+ /)
  expect(help).toMatch(/\nExit codes:\n {2}0 +\S/)
  expect(help).toMatch(/\n {2}64 +the command line is wrong\n/)
})

test.each(all)(
  '$name: every option and argument is described, and examples are of this command',
  ({ name, command }) => {
    for (const option of command.options) expect(option.description, option.flags).toMatch(/\S/)
    for (const argument of command.registeredArguments) expect(argument.description, argument.name()).toMatch(/\S/)
    const examples = /\nExamples:\n((?: {2}.*\n)+)/.exec(helpOf(command))![1]!
    // The description of an example is below it where it does not fit beside it.
    for (const line of examples
      .trimEnd()
      .split('\n')
      .filter(one => !one.startsWith('    ')))
      expect(line).toContain(`infer ${name.split(' ')[0]}`)
  },
)

test.each(all)('$name: its help fits 80 columns', ({ command }) => {
  expect(
    helpOf(command)
      .split('\n')
      .filter(line => line.length > 80),
  ).toEqual([])
})

test.each([
  [
    ['help', 'model', 'list'],
    ['model', 'list', '--help'],
  ],
  [['help'], ['help']],
  [
    ['run', 'help'],
    ['run', 'help'],
  ],
])('%j is %j', (args, expected) => expect(helpLast(args)).toEqual(expected))

test('text that is too long for its column continues in the next line of the column', () => {
  expect(
    drawRows(
      [
        ['A', 'one two three four five six seven'],
        ['LONGER', 'x'],
      ],
      40,
    ),
  ).toEqual(['  A       one two three four five six', '          seven', '  LONGER  x'])
})
