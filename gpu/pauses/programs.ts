import { readdir, readFile } from 'node:fs/promises'
import type { DeviceProcess } from '../../core/models/fleet.ts'
import { parentOf } from '../launcher/processes.ts'

/** The kernel cuts the name of a process to this length. */
const kernelLength = 15

/** The last part of a path of Linux or, under Wine, of Windows. */
const baseName = (path: string): string => path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)

/**
 * Pure: whether a process with these names is called by `name`: the kernel's name of it, its program, or the script that
 * the program runs. Capital letters do not matter.
 */
export function isCalled(name: string, { kernel, args }: { kernel: string; args: readonly string[] }): boolean {
  const wanted = name.toLowerCase()
  if (kernel !== '' && kernel.toLowerCase() === wanted.slice(0, kernelLength)) return true
  return args.slice(0, 2).some(arg => baseName(arg).toLowerCase() === wanted)
}

/** The names of the processes on the cards that are not of infer. */
export const namesOfOthers = (onCards: ReadonlyMap<string, readonly DeviceProcess[]>): string[] =>
  [...onCards.values()].flat().flatMap(({ name, engineId }) => (engineId === null && name !== null ? [name] : []))

/** Processes that are read at a time: each read occupies a thread of the pool that all file access uses. */
const atOnce = 16

/**
 * Returns which of these names belong to a process of this machine that infer has not started. `onCards`: names of the
 * processes that the driver lists on the cards, which may be outside the container. Never rejects.
 */
export async function runningPrograms(
  names: readonly string[],
  onCards: readonly string[],
  own = process.pid,
): Promise<Set<string>> {
  const found = new Set(names.filter(name => onCards.some(path => isCalled(name, { kernel: '', args: [path] }))))
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name)).map(Number)
  for (let from = 0; from < pids.length && found.size < names.length; from += atOnce)
    await Promise.all(
      pids.slice(from, from + atOnce).map(async pid => {
        const [kernel, line] = await Promise.all([textOf(pid, 'comm'), textOf(pid, 'cmdline')])
        const called = names.filter(name => isCalled(name, { kernel: kernel.trimEnd(), args: line.split('\0') }))
        if (called.length > 0 && !(await isBelow(pid, own))) for (const name of called) found.add(name)
      }),
    )
  return found
}

const textOf = (pid: number, file: string): Promise<string> => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')

/** Whether a process is this one or was started by it. */
async function isBelow(pid: number, ancestor: number): Promise<boolean> {
  for (let at: number | undefined = pid; at !== undefined && at > 0; at = await parentOf(at))
    if (at === ancestor) return true
  return false
}
