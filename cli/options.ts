import { type Command, InvalidArgumentError } from 'commander'
import { Duration } from '../core/quantities.ts'
import { type Scope, scopes } from '../core/store/store.ts'

/** Options that several commands share, and how their values are read. Each throws what commander shows as usage. */
export const withDataDir = (command: Command): Command =>
  command.option('--data-dir <path>', 'where the server keeps everything (INFER_DATA_DIR, else ~/.local/share/infer)')

export const withJson = (command: Command): Command => command.option('--json', 'print one JSON document')

/** A command as it is typed, such as `infer model list`. */
export const nameOf = (command: Command): string =>
  command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()

/**
 * Examples at the end of a command's help: what to type, and what it does beside it, or below it where a terminal has no
 * room for both.
 */
export function withExamples(command: Command, examples: readonly (readonly [line: string, does: string])[]): Command {
  const longest = Math.max(...examples.map(([line]) => line.length))
  const beside = examples.map(([line, does]) => `  ${line.padEnd(longest)}  ${does}`)
  const below = examples.map(([line, does]) => `  ${line}\n      ${does}`)
  return command.addHelpText('after', () => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? 80
    return `\nExamples:\n${(beside.every(line => line.length <= width) ? beside : below).join('\n')}`
  })
}

/** `250ms`, `30s`, `5m`, `2h`, `90d` as milliseconds. */
export function readDuration(text: string): number {
  const read = Duration.safeParse(text)
  if (!read.success) throw new InvalidArgumentError('Write a length of time as 250ms, 30s, 5m, 2h or 90d.')
  return read.data
}

/** When a token ends, epoch milliseconds: a length of time from now, a date, or `never`. */
export function readExpiry(text: string, now = Date.now()): number | 'never' {
  // Not null: commander takes that for a missing value.
  if (text === 'never') return text
  const length = Duration.safeParse(text)
  const at = length.success ? now + length.data : /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw new InvalidArgumentError('Write it as 90d, 12h, 2027-01-31 or never.')
  if (at <= now) throw new InvalidArgumentError('That time has passed; a token made so could never be used.')
  return at
}

/** `user:read,user:write` as scopes. */
export function readScopes(text: string): Scope[] {
  const asked = readList(text)
  const unknown = asked.find(scope => !(scopes as readonly string[]).includes(scope))
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no scope '${unknown}'. The scopes are ${scopes.join(', ')}.`)
  return asked as Scope[]
}

/** `host:port`, with brackets around an IPv6 host; the host may be left out. */
export function readListen(text: string): string {
  const match = /^(?:\[[^\]]+\]|[^:]*):(\d{1,5})$/.exec(text)
  if (!match || Number(match[1]) > 65_535)
    throw new InvalidArgumentError('Write it as host:port, for example 127.0.0.1:8787.')
  return text
}

/** Words between commas, each once. */
export function readList(text: string): string[] {
  const words = text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
  if (words.length === 0) throw new InvalidArgumentError('Name at least one, with commas between them.')
  return [...new Set(words)]
}

/** Values of an option that may be given more than once, in their order. */
export const collect = (text: string, before: string[] = []): string[] => [...before, text]

/** A whole number in a range. */
export const readCount =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`)
    return value
  }

/** A number in a range. */
export const readNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text)
    if (text.trim() === '' || !Number.isFinite(value) || value < least || value > most)
      throw new InvalidArgumentError(`Write a number from ${least} to ${most}.`)
    return value
  }
