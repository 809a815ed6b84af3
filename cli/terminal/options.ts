import {
  type Command,
  type CommandUnknownOpts,
  InvalidArgumentError,
  type OptionValues,
} from '@commander-js/extra-typings'
import { listenAddress } from '../../core/listen-address.ts'
import { Duration, durationAdvice } from '../../core/quantities.ts'
import { latestTime } from '../../core/schemas/fields.ts'
import { type Scope, scopes } from '../../core/store/store.ts'

/** The options of a new command. */
// oxlint-disable-next-line no-generated-empty-object-type -- the type that commander gives such a command
export type NoOptions = Record<never, never>
/** The values of the options of the command that a function returns, such as `withCommon`. */
export type OptionsOf<With extends (...given: never[]) => CommandUnknownOpts> = ReturnType<ReturnType<With>['opts']>

/** Options that several commands share, and their parsers. Parsers throw what commander reports as wrong usage. */
export const withDataDir = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command.option('--data-dir <path>', 'data directory; default: INFER_DATA_DIR, else ~/.local/share/infer')

export const withJson = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command.option('--json', 'print one JSON document')

/** The options of most commands. */
export interface CommonOptions {
  json?: boolean
  dataDir?: string
}
export const withCommon = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  withDataDir(withJson(command))

/** The options of most commands about something that belongs to an organization. */
export const withOrganization = <Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) => withCommon(command).option('--org <organization>', 'id or name; needed when there are several')

/** Returns a command as the user types it, such as `infer model list`. */
export const commandName = (command: CommandUnknownOpts): string =>
  command.parent ? `${commandName(command.parent)} ${command.name()}` : command.name()

/**
 * Adds examples to the end of a command's help. The meaning stands beside the example, or below it on a narrow
 * terminal.
 */
export function withExamples(
  command: CommandUnknownOpts,
  examples: readonly (readonly [line: string, does: string])[],
): void {
  const longest = Math.max(...examples.map(([line]) => line.length))
  const beside = examples.map(([line, does]) => `  ${line.padEnd(longest)}  ${does}`)
  const below = examples.map(([line, does]) => `  ${line}\n      ${does}`)
  command.addHelpText('after', () => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? 80
    return `\nExamples:\n${(beside.every(line => line.length <= width) ? beside : below).join('\n')}`
  })
}

/** Reads `250ms`, `30s`, `5m`, `2h` or `90d` as milliseconds. */
export function readDuration(text: string): number {
  const read = Duration.safeParse(text)
  if (!read.success) throw new InvalidArgumentError(`${durationAdvice(text)} The longest is 36500d.`)
  return read.data
}

/** Reads a duration from now (`sign` 1) or before now (-1), or a date, as epoch milliseconds. */
function timeOf(text: string, now: number, sign: 1 | -1, examples: string): number {
  const length = Duration.safeParse(text)
  const at = length.success ? now + sign * length.data : /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw new InvalidArgumentError(`Write it as ${examples}.`)
  return at
}

/** Reads when a token expires, as epoch milliseconds: a duration from now, a date, or `never`. */
export function readExpiry(text: string, now = Date.now()): number | 'never' {
  // Not null, which commander treats as a missing value.
  if (text === 'never') return text
  const at = timeOf(text, now, 1, '90d, 12h, 2027-01-31 or never')
  if (at <= now) throw new InvalidArgumentError('That time is in the past. Give a later one.')
  if (at > latestTime * 1000) throw new InvalidArgumentError('That time is after the year 2286. Write never instead.')
  return at
}

/** Reads a time in the past, as epoch milliseconds: a duration before now, or a date. */
export function readPast(text: string, now = Date.now()): number {
  const at = timeOf(text, now, -1, '30d, 12h or 2026-01-31')
  if (at < 0 || at > now) throw new InvalidArgumentError('That time is not in the past. Give an earlier one.')
  return at
}

/** Reads a time in the past, as Unix seconds. */
export const readSince = (text: string): number => Math.floor(readPast(text) / 1000)

/** Reads `user:read,user:write` as scopes. */
export function readScopes(text: string): Scope[] {
  const names = readList(text)
  const unknown = names.find(scope => !(scopes as readonly string[]).includes(scope))
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no scope '${unknown}'. The scopes are ${scopes.join(', ')}.`)
  return names as Scope[]
}

/** Checks `host:port`, with brackets around an IPv6 host; the host is optional. */
export function readListen(text: string): string {
  if (!listenAddress(text)) throw new InvalidArgumentError('Write it as host:port, for example 127.0.0.1:8787.')
  return text
}

/** Reads words separated by commas, without duplicates. */
export function readList(text: string): string[] {
  const words = text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
  if (words.length === 0) throw new InvalidArgumentError('Name at least one, with commas between them.')
  return [...new Set(words)]
}

/** What stands for null on the command line: commander treats null as a missing value. */
export const nothing = 'none'
export type Given<T> = T | typeof nothing
/** Converts an option's value; undefined for an absent one. */
export const orNull = <T>(given: Given<T> | undefined): T | null | undefined => (given === nothing ? null : given)

/** Collects the values of a repeatable option, in order. */
export const collect = (text: string, before: string[] = []): string[] => [...before, text]

/** Reads a whole number in a range. */
export const readCount =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`Write a whole number from ${min} to ${max}.`)
    return value
  }

/** Reads a number in a range. */
export const readNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text)
    if (text.trim() === '' || !Number.isFinite(value) || value < min || value > max)
      throw new InvalidArgumentError(`Write a number from ${min} to ${max}.`)
    return value
  }

/** Reads a number in a range, or `none`. */
export const readOrNone =
  (min: number, max: number, whole = true) =>
  (text: string): Given<number> => {
    if (text === nothing) return nothing
    const value = Number(text)
    if (text.trim() === '' || !(value >= min && value <= max) || (whole && !Number.isInteger(value)))
      throw new InvalidArgumentError(`Write ${whole ? 'a whole number' : 'a number'} from ${min} to ${max}, or none.`)
    return value
  }
