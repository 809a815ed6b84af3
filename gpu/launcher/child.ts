import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

/** Limits the wait for remaining output: a surviving grandchild can hold the pipes open for ever. */
const lastReadMs = 250

/** How a process has ended. */
export interface ProcessEnd {
  code: number | null
  signal: string | null
}

export interface ChildOptions {
  file: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
}

/**
 * Spawns a process in a new process group: signals to the group reach its workers, and Ctrl-C in the server's terminal
 * does not. If spawning fails, resolves with the reason as a sentence.
 */
export async function spawnChild({ file, args, env, cwd }: ChildOptions) {
  // PR_SET_PDEATHSIG fires when the spawning thread ends, so the thread must live as long as the process.
  if (!isMainThread) throw new Error('Engines are started from the main thread only.')
  let child: ReturnType<typeof begin>
  try {
    child = begin({ file, args, env, cwd })
    if (child.pid === undefined) await once(child, 'spawn')
  } catch (thrown) {
    return `It cannot be started: ${file}: ${(thrown as Error).message}.`
  }
  const pid = child.pid!
  child.on('error', () => {})
  preferVictim(pid)
  const streams = [child.stdout, child.stderr]
  const closed = streams.map(stream => new Promise(done => stream.once('close', done)))
  const exited = new Promise<ProcessEnd>(settle => child.once('exit', (code, signal) => settle({ code, signal })))
  return {
    pid,
    /** Resolves when the process has exited and its output has been read. */
    ended: exited.then(async end => {
      await Promise.race([Promise.all(closed), pause(lastReadMs)])
      return end
    }),
    /** Calls the reader with what it prints. */
    read: (reader: (chunk: Buffer) => void): void => {
      for (const stream of streams) stream.on('data', reader)
    },
    /** Stops reading what it prints, or goes on: a process whose output nobody reads waits once the pipe is full. */
    flow: (flows: boolean): void => {
      for (const stream of streams)
        if (flows) stream.resume()
        else stream.pause()
    },
  }
}

const begin = ({ file, args, env, cwd }: ChildOptions) =>
  spawn(file, args, { env: { ...env }, cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })

/** Makes the kernel's OOM killer prefer the engine, which can be restarted, over the server. */
function preferVictim(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500')
  } catch {
    // Some containers forbid it; it only affects the order of OOM kills.
  }
}
