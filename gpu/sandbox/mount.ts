import { readFileSync } from 'node:fs'

export interface ResolvedPath {
  path: string
  /** The path with every symbolic link resolved. */
  real: string
  /** True for anything but a folder. */
  file: boolean
}

/** One mount of the file system that an engine sees. Later mounts cover earlier ones. */
export type Mount =
  | { kind: 'bind'; mode: 'read' | 'write' | 'device'; from: string; to: string; file: boolean }
  /** An empty folder in memory. `sealed`: read-only, except for what is bound inside. */
  | { kind: 'empty'; to: string; sealed: boolean }
  | { kind: 'proc'; own: boolean; to: '/proc' }
  /** The devices that every program expects, with a separate /dev/shm. */
  | { kind: 'dev'; to: '/dev' }

export const isInFolder = (path: string, folder: string): boolean =>
  folder === '/' || path === folder || path.startsWith(`${folder}/`)

/** The mount that determines the content of this path: the last one at the path or at a parent. */
export const coverOf = (path: string, mounts: readonly Mount[]): Mount | undefined =>
  mounts.findLast(({ to }) => isInFolder(path, to))

export interface MountEntry {
  path: string
  type: string
  /** Options per mount, not per file system: `ro`, `nosuid`, `relatime` and so on. */
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

/** The mount that contains a path. Of several mounts at the same path, the last one is visible. */
export const mountAt = (path: string, table: readonly MountEntry[]): MountEntry | undefined =>
  table
    .filter(entry => isInFolder(path, entry.path))
    .toSorted((a, b) => a.path.length - b.path.length)
    .at(-1)

/** The options that a read-only remount must keep: in a user namespace the kernel refuses to remove them. */
export function mountOptions(entry: MountEntry | undefined): string[] {
  if (!entry) return []
  const has = entry.options.filter(option => /^(noexec|relatime|noatime|nodiratime)$/.test(option))
  return has.some(option => option === 'relatime' || option === 'noatime') ? has : [...has, 'strictatime']
}

const unescaped = (field: string): string =>
  field.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
