import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { first, type Wrapper } from '../sandbox/wrapper.ts'

/** Identifies a process: process ids are reused, but not together with the same start time. */
export interface ProcessIdentity {
  pid: number
  /** Clock ticks since the machine started. */
  startTime: string
}

const text = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined)

/** Identifies the process with this id; undefined if there is none or it is a zombie, which holds no resources. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await statOf(pid)
  const startTime = stat?.[19]
  return startTime === undefined || stat?.[0] === 'Z' || stat?.[0] === 'X' ? undefined : { pid, startTime }
}

/** The fields of `/proc/<pid>/stat`, starting with the state; undefined if there is no such process. */
async function statOf(pid: number): Promise<string[] | undefined> {
  const stat = await text(`/proc/${pid}/stat`)
  // The name is in brackets and may contain spaces and brackets, so fields start after the last bracket.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** The parent of a process; undefined if the process does not exist, 0 if its parent is in another PID namespace. */
export async function parentOf(pid: number): Promise<number | undefined> {
  const parent = Number((await statOf(pid))?.[1] ?? Number.NaN)
  return Number.isInteger(parent) ? parent : undefined
}

/** The children of a process, oldest first; empty if the kernel does not list them. */
async function childrenOf(pid: number): Promise<number[]> {
  const listing = await text(`/proc/${pid}/task/${pid}/children`)
  return listing ? listing.trim().split(' ').filter(Boolean).map(Number) : []
}

/** All descendants of a process, parents before children. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const found: number[] = []
  for (let level = await childrenOf(pid); level.length > 0; ) {
    found.push(...level)
    level = (await Promise.all(level.map(childrenOf))).flat()
  }
  return found
}

/** Finds processes whose environment has each variable with one of its values. Skips unreadable processes. */
export async function processesWith(wanted: Record<string, ReadonlySet<string>>): Promise<ProcessIdentity[]> {
  const numbers = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name)).map(Number)
  const found: ProcessIdentity[] = []
  // 32 at a time: a busy host has thousands, and each read occupies a thread of the pool used for all file access.
  for (let from = 0; from < numbers.length; from += 32)
    await Promise.all(
      numbers.slice(from, from + 32).map(async pid => {
        const environment = await text(`/proc/${pid}/environ`)
        if (!environment) return
        const has = environment.split('\0')
        const matches = Object.entries(wanted).every(([name, values]) =>
          has.some(entry => entry.startsWith(`${name}=`) && values.has(entry.slice(name.length + 1))),
        )
        const identity = matches ? await identityOf(pid) : undefined
        if (identity) found.push(identity)
      }),
    )
  return found
}

/** Sends the signal if the id still belongs to the same process: to it, or to its process group. */
export async function signal(process_: ProcessIdentity, name: NodeJS.Signals, to?: 'group'): Promise<void> {
  const now = await identityOf(process_.pid)
  if (now?.startTime === process_.startTime) sendSignal(to === 'group' ? -process_.pid : process_.pid, name)
}

/** Sends a signal to a process, or to a process group by its negative id. A missing process is not an error. */
export function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has already exited.
  }
}

/** Start of the command line of a namespace's first process, once it runs the shell that starts the engine. */
const firstCommand = first.slice(0, 3).join('\0')

/**
 * Finds the engine's process below the wrapper, for display. It appears some milliseconds after the wrapper; until
 * then the children are tools that build the sandbox.
 */
export async function locateProgram(
  pid: number,
  { name, depth }: Pick<Wrapper, 'name' | 'depth'>,
  found: (pid: number) => void,
): Promise<void> {
  if (depth === 0) return
  for (let attempt = 0; attempt < 100; attempt++) {
    let above: number | undefined = pid
    for (let level = 1; level < depth && above !== undefined; level++) above = (await childrenOf(above))[0]
    // Check the parent first: until it runs the shell, its child is a tool.
    const [child] =
      above !== undefined && (name !== 'unshare' || (await startsEngine(above))) ? await childrenOf(above) : []
    if (child !== undefined) return found(child)
    await pause(20)
  }
}

const startsEngine = async (pid: number): Promise<boolean> =>
  (await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')).startsWith(firstCommand)
