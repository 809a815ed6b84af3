import { readdir, readFile } from 'node:fs/promises'

/** A process for as long as it lives: numbers are used again, number and start time together are not. */
export interface ProcessIdentity {
  pid: number
  /** Clock ticks since the machine started. */
  startTime: string
}

const text = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined)

/** Who a number means right now; undefined when nobody, or when only a zombie is left that holds nothing any more. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await statOf(pid)
  const startTime = stat?.[19]
  return startTime === undefined || stat?.[0] === 'Z' || stat?.[0] === 'X' ? undefined : { pid, startTime }
}

/** The fields of a process's `stat` from its state on; undefined when there is no such process. */
async function statOf(pid: number): Promise<string[] | undefined> {
  const stat = await text(`/proc/${pid}/stat`)
  // The name stands in brackets and may itself hold spaces and brackets, so count from the last one.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** The parent of a process; undefined when the process is gone, 0 when its parent is in another PID namespace. */
export async function parentOf(pid: number): Promise<number | undefined> {
  const parent = Number((await statOf(pid))?.[1] ?? Number.NaN)
  return Number.isInteger(parent) ? parent : undefined
}

/** The children of a process, oldest first; empty where the kernel does not tell. */
export async function childrenOf(pid: number): Promise<number[]> {
  const listing = await text(`/proc/${pid}/task/${pid}/children`)
  return listing ? listing.trim().split(' ').filter(Boolean).map(Number) : []
}

/** Everything below a process, parents before children. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const found: number[] = []
  for (let level = await childrenOf(pid); level.length > 0; ) {
    found.push(...level)
    level = (await Promise.all(level.map(childrenOf))).flat()
  }
  return found
}

/** Every process whose environment has all these variables with one of these values. Unreadable ones are not found. */
export async function processesWith(wanted: Record<string, ReadonlySet<string>>): Promise<ProcessIdentity[]> {
  const numbers = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name)).map(Number)
  const found: ProcessIdentity[] = []
  // A few at a time: a busy host has thousands, and each reading holds a thread of the pool that files share.
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

/** Sends the signal if the number still means the same process. */
export async function signal(process_: ProcessIdentity, name: NodeJS.Signals): Promise<void> {
  const now = await identityOf(process_.pid)
  if (now?.startTime === process_.startTime) send(process_.pid, name)
}

/** Sends a signal to a process, or to a group by its negative number; that there is none is no error. */
export function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // Gone already, which is what a signal to end it was to bring about.
  }
}
