import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { infer } from '../_infer.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

const built = existsSync(join(import.meta.dirname, '../../../dist/assets/docs/guides.json'))

describe.skipIf(!built)('infer help', () => {
  test('lists the guides', async () => {
    const { exitCode, stdout, stderr } = await infer(['help'])
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^ {2}workflows +several tasks as one/m)
    expect(stdout).toContain('infer help <topic>')
    expect(stdout.split('\n').filter(line => line.length > 80)).toEqual([])
  })

  test('prints a guide, without colours in a pipe', async () => {
    const { exitCode, stdout } = await infer(['help', 'workflows'])
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^Workflows\n=========\n\n/)
    expect(stdout).toContain('\n    infer workflow check answer.yaml\n')
    expect(stdout).not.toContain('\u001b')
  })

  test.skipIf(!hasTerminal)('prints a guide with colours on a terminal, unless NO_COLOR is set', async () => {
    const coloured = inTerminal(['help', 'jobs', '--no-pager'])
    expect(await coloured.ends()).toBe(0)
    expect(coloured.everything()).toContain('\u001b[1mJobs\u001b[22m')
    const plain = inTerminal(['help', 'jobs', '--no-pager'], { NO_COLOR: '1' })
    expect(await plain.ends()).toBe(0)
    expect(plain.everything()).not.toContain('\u001b[1m')
  })

  test.skipIf(!hasTerminal)('is shown by a pager on a terminal, where it is longer than the screen', async () => {
    const paged = async (pager: Record<string, string>, ...args: string[]) => {
      const terminal = inTerminal(['help', ...args], pager)
      expect(await terminal.ends()).toBe(0)
      return terminal.everything().replaceAll('\r', '')
    }
    const [guide, command, off, none, missing] = await Promise.all([
      paged({ INFER_PAGER: 'head -2', PAGER: 'false' }, 'jobs'),
      paged({ PAGER: 'head -2' }, 'model', 'add'),
      paged({ PAGER: 'head -2' }, 'model', 'add', '--no-pager'),
      paged({ PAGER: 'head -2', INFER_PAGER: '' }, 'jobs'),
      paged({ PAGER: 'no-such-pager' }, 'jobs'),
    ])
    expect(guide.split('\n')).toHaveLength(3)
    expect(command).toMatch(/^Usage: infer model add .*\n\n$/)
    for (const whole of [off, none, missing]) expect(whole.split('\n').length).toBeGreaterThan(40)
  })

  test('explains commands as --help does', async () => {
    const [help, flag] = [await infer(['help', 'model', 'add']), await infer(['model', 'add', '--help'])]
    expect(help.stdout).toBe(flag.stdout)
    expect(help.stdout).toContain('Usage: infer model add')
  })

  test.each([
    [['help', 'worklfows'], "There is no guide and no command 'worklfows'. Did you mean 'workflows'? See: infer help"],
    [['help', 'xyzzy-xyzzy'], "There is no guide and no command 'xyzzy-xyzzy'. See: infer help"],
    [['help', 'model', 'ad'], "There is no command 'model ad'. See: infer model --help"],
  ])('%j: an unknown name is refused with the nearest one', async (args, message) => {
    const { exitCode, stdout, stderr } = await infer(args)
    expect([exitCode, stdout]).toEqual([64, ''])
    expect(stderr).toContain(message)
  })
})
