import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { execa } from 'execa'
import type { Output } from './output.ts'

export interface SpawnedChild {
  pid: number
  /** On the monotonic clock: the last line that was not the one before again, or the start. */
  lastOutputAt: () => number
  /** Resolves when the process is gone and what it printed has been read. */
  ended: Promise<{ code: number | null; signal: string | null }>
}

/** A stray grandchild can hold the pipes open for ever; what is not read by then is not waited for. */
const lastReadMs = 250

/**
 * Spawns a process in a group of its own: asking it to end reaches its workers, and a Ctrl-C at our terminal does not.
 * Resolves with why, as a sentence, when it cannot be spawned.
 */
export async function spawnChild(options: {
  file: string
  args: readonly string[]
  env: Record<string, string>
  cwd: string
  /** Takes what it prints. */
  output: Output
}): Promise<SpawnedChild | string> {
  // A child told to die with its parent dies with the thread that made it, so it must be one that stays.
  if (!isMainThread) throw new Error('Engines are started from the main thread only.')
  const { file, args, env, cwd, output } = options
  const child = execa(file, args, {
    env,
    cwd,
    extendEnv: false,
    detached: true,
    cleanup: false,
    reject: false,
    buffer: false,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { pid } = child
  if (pid === undefined) return `It cannot be started: ${(await child).shortMessage ?? file}.`
  // execa's own promise is not used: it waits for the pipes too.
  child.catch(() => {})
  preferVictim(pid)
  let lastOutputAt = performance.now()
  const read = (chunk: Buffer) => {
    const before = output.news
    output.push(chunk)
    if (output.news !== before) lastOutputAt = performance.now()
  }
  const streams = [child.stdout, child.stderr].map(stream => {
    stream.on('data', read)
    return new Promise(done => stream.once('close', done))
  })
  const exited = new Promise<{ code: number | null; signal: string | null }>(settle => {
    child.nodeChildProcess.once('exit', (code, signal) => settle({ code, signal }))
  })
  const ended = exited.then(async end => {
    await Promise.race([Promise.all(streams), pause(lastReadMs)])
    output.end()
    return end
  })
  return { pid, lastOutputAt: () => lastOutputAt, ended }
}

/** When memory runs out the kernel shall take an engine, which can be started again, and not the server. */
function preferVictim(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500')
  } catch {
    // Not every container allows it, and it only decides who goes first.
  }
}
