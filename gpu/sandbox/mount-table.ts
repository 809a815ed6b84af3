import { readFileSync } from 'node:fs'
import { isWithin } from './mount.ts'

/** One mounted file system, as /proc/self/mountinfo tells it. */
export interface MountEntry {
  path: string
  type: string
  /** Of the mount, not of the file system: `ro`, `nosuid`, `relatime` and so on. */
  options: readonly string[]
}

export const readMountTable = (): MountEntry[] => mountTable(readFileSync('/proc/self/mountinfo', 'utf8'))

/** Parses /proc/self/mountinfo, proc(5). Pure. */
export function mountTable(text: string): MountEntry[] {
  return text.split('\n').flatMap(line => {
    const fields = line.split(' ')
    const type = fields[fields.indexOf('-') + 1]
    if (fields.length < 8 || type === undefined) return []
    return [{ path: unescaped(fields[4]!), type, options: fields[5]!.split(',') }]
  })
}

/** The mount on which a path lies: of several at the same place the last one is in front. */
export const mountAt = (path: string, table: readonly MountEntry[]): MountEntry | undefined =>
  table
    .filter(entry => isWithin(path, entry.path))
    .reduce<MountEntry | undefined>(
      (best, entry) => (best && best.path.length > entry.path.length ? best : entry),
      undefined,
    )

/** The options that a mount must keep when it is made read-only: in a user namespace the kernel refuses less. */
export function optionsOf(entry: MountEntry | undefined): string[] {
  if (!entry) return []
  const has = entry.options.filter(option => /^(noexec|relatime|noatime|nodiratime)$/.test(option))
  return has.some(option => option === 'relatime' || option === 'noatime') ? has : [...has, 'strictatime']
}

const unescaped = (field: string): string =>
  field.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
