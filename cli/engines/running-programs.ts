import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { optionalNames } from '../../core/optional-file.ts'

const processIds = (): string[] => optionalNames('/proc').filter(name => /^\d+$/.test(name))

/** Device and inode of a file; undefined if it is not there. */
export function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path)
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}

/** The programs of all processes that this user may look at, by device and inode: a sandbox changes their paths. */
export const runningFiles = (): string[] => processIds().flatMap(pid => identityOf(`/proc/${pid}/exe`) ?? [])

/**
 * The processes that were started from the environment at this path, which must have no links: its Python is that of the
 * system, so their command line tells it, and the first folder of their PATH that exists. Further environments on the PATH
 * are those of other engines.
 */
export function processesBelow(path: string): number[] {
  const programs = join(path, 'bin')
  return processIds()
    .filter(pid => {
      const command = read(`/proc/${pid}/cmdline`).split('\0')
      if (command.some(word => word.startsWith(`${programs}/`) || word.startsWith(`${join(path, 'libexec')}/`)))
        return true
      const variables = read(`/proc/${pid}/environ`).split('\0')
      const folders = variables.find(one => one.startsWith('PATH='))?.slice('PATH='.length)
      return folders?.split(':').find(folder => existsSync(folder)) === programs
    })
    .map(Number)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It has ended, or belongs to another user.
    return ''
  }
}
