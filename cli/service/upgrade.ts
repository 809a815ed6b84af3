import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, linkSync, renameSync, rmSync } from 'node:fs'
import { refused } from '../terminal/exit-codes.ts'
import { packagedProgram } from './unit.ts'

/** What the unit in force says about its server. */
export interface UnitServer {
  /** The executable and the arguments before `serve`. */
  program: string[]
  dataDir: string
  /** Whether the executable is a file of the Debian package, which only the package manager may replace. */
  isPackaged: boolean
}

/**
 * Reads what `systemctl cat` prints: the unit and then the files that change it, whose settings have precedence. Throws
 * Failure `conflict` if it runs something else than `infer serve`.
 */
export function readUnit(unit: string): UnitServer {
  const wordsOfAll = (key: string) =>
    [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, line]) => wordsOf(line!))
  const words = wordsOfAll('ExecStart').at(-1) ?? []
  const at = words.indexOf('serve')
  const variable = 'INFER_DATA_DIR='
  const dataDir = wordsOfAll('Environment')
    .flat()
    .findLast(word => word.startsWith(variable))
  const path = /^# (\/\S+\/infer\.service)$/m.exec(unit)?.[1] ?? 'infer.service'
  if (at < 1 || dataDir === undefined)
    throw refused('conflict', `${path} does not run infer serve as infer service install writes it. Install it again.`)
  const program = words.slice(0, at)
  return {
    program,
    dataDir: dataDir.slice(variable.length),
    isPackaged: /^(\/usr)?\/lib\//.test(path) && program[0] === packagedProgram,
  }
}

/** The words of a line of a unit, as `unitOf` quotes them. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) =>
    (quoted?.replaceAll(/\\(.)/g, '$1') ?? plain!).replaceAll('%%', '%').replaceAll('$$', () => '$'),
  )

/**
 * Puts an executable in the place of another one, in one step, and keeps the old one beside it as `.previous`. Returns
 * its path and what puts it back. Throws Failure `conflict` if the new one does not run, and `insufficient_scope` if the
 * caller may not write there.
 */
export function replaceExecutable(from: string, target: string): { previous: string; undo: () => void } {
  let printed: string
  try {
    printed = execFileSync(from, ['--version'], {
      encoding: 'utf8',
      timeout: 60_000,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (cause) {
    throw refused('conflict', `${from} does not run: ${(cause as Error).message.split('\n')[0]}`, { cause })
  }
  if (!/^\d+\.\d+\.\d+/.test(printed.trim().replace(/^infer /, '')))
    throw refused('conflict', `${from} is not infer: its --version printed '${printed.trim().slice(0, 60)}'.`)
  const previous = `${target}.previous`
  try {
    copyFileSync(from, `${target}.new`)
    chmodSync(`${target}.new`, 0o755)
    rmSync(previous, { force: true })
    linkSync(target, previous)
    renameSync(`${target}.new`, target)
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') throw cause
    throw refused('insufficient_scope', `${target} cannot be replaced (${message}). Run this with sudo.`, { cause })
  }
  return { previous, undo: () => renameSync(previous, target) }
}
