import type { Command } from '@commander-js/extra-typings'
import { type EnvironmentVariable, engineVariables, environmentVariables } from '../../core/environment-variables.ts'
import {
  type ConfigKey,
  configKeys,
  defaultText,
  findConfigKeys,
  nearestConfigKeys,
  sections,
} from '../../core/models/config-keys.ts'
import { nearest } from '../../core/nearest.ts'
import { drawRows } from '../help/manual.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withExamples, withJson } from '../terminal/options.ts'
import { printable, wrapText } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

const variables: Readonly<Record<string, EnvironmentVariable>> = { ...environmentVariables, ...engineVariables }

/** `infer config explain [key]`: what the keys of infer.yaml mean. */
export function define(explain: Command, terminal: Terminal): void {
  withJson(explain)
    .summary('explain the keys of infer.yaml')
    .description(
      'Lists all keys of infer.yaml with defaults and meanings, or explains one key: type, default, when a change takes effect, and an example. Also explains environment variables. Needs no server. The same text is at /docs/configuration.',
    )
    .argument('[key]', 'such as limits.upload_size, memory, models, or INFER_DATA_DIR')
    .action((name, { json }) => {
      const keys = configKeys()
      if (name === undefined) return json ? terminal.json(keys) : list(keys, terminal)
      const variable = variables[name.toUpperCase()]
      if (variable) {
        if (json) return terminal.json({ variable: name.toUpperCase(), ...variable })
        return terminal.print(variableText(name.toUpperCase(), variable, terminal))
      }
      const found = findConfigKeys(name, keys)
      if (found.length === 0) throw unknownKey(name, keys)
      if (json) return terminal.json(found.length === 1 ? found[0] : found)
      terminal.print(found.map(key => keyText(key, terminal)).join('\n\n'))
      const [only] = found
      const inside = keys.filter(
        ({ key }) => found.length === 1 && (key.startsWith(`${only!.key}.`) || key.startsWith(`${only!.key}[].`)),
      )
      if (inside.length === 0) return
      terminal.print('')
      list(inside, terminal)
    })
  withExamples(explain, [
    ['infer config explain', 'all keys'],
    ['infer config explain memory', 'one key; limits.upload_size works as well'],
    ['infer config explain limits', 'all keys of a part'],
    ['infer config explain INFER_DATA_DIR', 'an environment variable'],
  ])
}

/** Maximum length of a default in a table. */
const maxDefaultLength = 15

/**
 * Prints tables of keys. On a terminal, one table per section: its header has the common prefix of the keys, and keys
 * inside a key of a model are left out. Elsewhere prints every key on one line.
 */
function list(keys: readonly ConfigKey[], terminal: Terminal): void {
  const shortened = (text: string) =>
    text.length <= maxDefaultLength ? text : `${text.slice(0, maxDefaultLength - 1)}…`
  const rowOf = (about: ConfigKey, key: string): string[] => [
    key,
    shortened(defaultText(about)),
    about.meaning.replaceAll('`', ''),
  ]
  if (!terminal.isTerminal)
    return terminal.table(
      ['KEY', 'DEFAULT', 'MEANING'],
      keys.map(about => rowOf(about, about.key)),
    )
  const isAll = keys.some(({ key }) => key === 'models')
  const groups = new Map<string, string[][]>()
  for (const about of keys) {
    const [, prefix = '', key = ''] = /^((?:models\[\]|plans\.<name>|limits|media)\.)?(.+)$/.exec(about.key) ?? []
    const group = `${sections[about.section].title}\n${prefix}`
    // A key with its own table needs no row, and the keys inside a key of a model are shown with that key.
    if (
      about.key in { models: 0, plans: 0, media: 0, limits: 0 } ||
      (isAll && prefix === 'models[].' && key.includes('.'))
    )
      continue
    groups.set(group, [...(groups.get(group) ?? []), rowOf(about, key)])
  }
  for (const [at, [group, rows]] of [...groups].entries()) {
    const [title = '', prefix = ''] = group.split('\n')
    if (at > 0) terminal.print('')
    terminal.print(terminal.paint.strong(title))
    terminal.table([prefix === '' ? 'KEY' : `${prefix}…`, 'DEFAULT', 'MEANING'], rows)
  }
  if (isAll) terminal.remark('\nMore about one of them: infer config explain <key>')
}

const widthOf = (terminal: Terminal): number =>
  terminal.isTerminal ? terminal.stdout.columns || 80 : Number.MAX_SAFE_INTEGER

function keyText(about: ConfigKey, terminal: Terminal): string {
  const { key, meaning, type, unit, applies, example } = about
  return [
    terminal.paint.strong(key),
    ...wrapText(meaning, widthOf(terminal)),
    '',
    ...drawRows(
      [
        ['Type', typeText(type, unit)],
        ['Default', defaultText(about)],
        ['Changes', `take effect ${applies}`],
      ],
      widthOf(terminal),
    ),
    '',
    'Example:',
    ...example.split('\n').map(line => `  ${line}`),
  ].join('\n')
}

/** Describes how to write a value. */
function typeText(type: string, unit: string | null): string {
  if (type === 'duration') return 'duration: a number with ms, s, m, h or d, or milliseconds'
  if (type === 'size') return 'size: a number with KiB, MiB, GiB, KB, MB or GB, or bytes'
  return unit === null ? type : `${type} (${unit})`
}

function variableText(name: string, { meaning, default: value, example }: EnvironmentVariable, terminal: Terminal) {
  const { paint } = terminal
  const sentence = `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`
  return [
    `${paint.strong(name)}  environment variable`,
    ...wrapText(sentence, widthOf(terminal)),
    '',
    ...drawRows([['Default', value]], widthOf(terminal)),
    '',
    'Example:',
    `  export ${name}=${example}`,
  ].join('\n')
}

function unknownKey(name: string, keys: readonly ConfigKey[]) {
  const near = nearestConfigKeys(name, keys)
  const variable = near.length > 0 ? undefined : nearest(name.toUpperCase(), Object.keys(variables))
  const suggestions = [...near, ...(variable === undefined ? [] : [variable])].map(one => `'${one}'`)
  const question = suggestions.length === 0 ? '' : ` Did you mean ${suggestions.join(' or ')}?`
  return usageFailure(
    `There is no key '${printable(name.slice(0, 80))}' in infer.yaml.${question} See: infer config explain`,
  )
}
