import { Command } from '@commander-js/extra-typings'
import { expect, test } from 'vitest'
import { chooseOrganization } from '../../../cli/accounts/account-client.ts'
import { entries } from '../../../cli/commands/program.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'
import type { Organization } from '../../../core/store/store.ts'
import { runInProcess } from '../_in-process.ts'
import { temporaryFolder } from '../_infer.ts'

const named = (id: string, name: string) => ({ id, name, plan: 'free', status: 'active' }) as Organization
const acme = named('org_1', 'acme')
const first = named('org_2', 'default')
const tricky = named('org_3', 'org_1')

test('the usage of every organization is refused where there is none', async () => {
  const { exitCode, failure } = await runInProcess(['usage', '--by', 'org', '--data-dir', temporaryFolder()], {})
  expect([exitCode, failure?.message]).toEqual([1, expect.stringMatching(/^There is no organization yet/)])
})

test.each([
  ['by its id', [acme, first], 'org_1', acme],
  ['by its name', [acme, first], 'acme', acme],
  ["by its id rather than by another's name", [tricky, acme], 'org_1', acme],
  ['without a name if it is the only one', [acme], undefined, acme],
] as const)('an organization is found %s', (_, all, idOrName, found) => {
  expect(chooseOrganization(all, idOrName)).toBe(found)
})

test('with several organizations one must be named, also if one of them is that of the first start', () => {
  expect(() => chooseOrganization([acme, first], undefined)).toThrow(
    'There are 2 organizations. Choose one with --org: acme, default.',
  )
})

/** Every command with --org, with the words that it needs. */
const commands: readonly string[][] = [
  ['audit'],
  ['token', 'create'],
  ['token', 'list'],
  ['token', 'revoke', 'tok_1'],
  ['token', 'rotate', 'tok_1'],
  ['token', 'show', 'tok_1'],
  ['token', 'update', 'tok_1', '--name', 'x'],
  ['usage'],
  ['user', 'add', 'ada@example.com'],
  ['user', 'list'],
  ['user', 'remove', 'ada@example.com', '--yes'],
  ['user', 'update', 'ada@example.com', '--name', 'x'],
  ['webhook', 'create', 'https://example.com'],
  ['webhook', 'delete', 'whe_1'],
  ['webhook', 'deliveries'],
  ['webhook', 'list'],
  ['webhook', 'redeliver', 'msg_1'],
  ['webhook', 'rotate'],
  ['webhook', 'secret'],
  ['webhook', 'test', 'whe_1'],
  ['webhook', 'update', 'whe_1', '--disable'],
]

test('every command with --org needs it where there are several organizations', async () => {
  const env = { INFER_DATA_DIR: temporaryFolder() }
  for (const name of ['default', 'acme'])
    expect(await runInProcess(['org', 'create', name], env)).toMatchObject({ exitCode: 0 })
  const terminal = openTerminal({ ...process, env: {} })
  const found = await Promise.all(
    entries.map(async ({ name, load }) => {
      const command = new Command(name)
      ;(await load()).define(command, terminal)
      return [command, ...command.commands]
        .filter(({ options }) => options.some(({ long }) => long === '--org'))
        .map(one => (one === command ? name : `${name} ${one.name()}`))
    }),
  )
  const isTopLevel = ([name]: readonly string[]) => name === 'audit' || name === 'usage'
  const names = commands.map(words => words.slice(0, isTopLevel(words) ? 1 : 2).join(' '))
  // Without it `job list` asks the server, whose token has one.
  expect(found.flat().toSorted()).toEqual([...names, 'job list'].toSorted())
  for (const words of commands) {
    const { exitCode, stderr, failure } = await runInProcess(words, env)
    const searchesAll = words[2] === 'tok_1'
    expect([words.join(' '), exitCode, stderr, failure?.message]).toEqual([
      words.join(' '),
      searchesAll ? 1 : 64,
      expect.stringMatching(/^Error: .*\n$/),
      searchesAll
        ? "There is no token 'tok_1' here. See: infer token list"
        : 'There are 2 organizations. Choose one with --org: default, acme.',
    ])
  }
})

test('an unknown organization is refused with the existing ones', () => {
  expect(() => chooseOrganization([acme, first], 'acne')).toThrow(
    "There is no organization 'acne'. Available: acme, default.",
  )
})

test('a long list is shortened', () => {
  const many = Array.from({ length: 30 }, (_, at) => named(`org_${at}`, `n${at}`))
  expect(() => chooseOrganization(many, 'x')).toThrow(/n9 and 20 more\.$/)
})

test('without any organization the message says how to create one', () => {
  expect(() => chooseOrganization([], undefined)).toThrow('infer serve')
})
