import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { execa } from 'execa'
import type { Output } from './outputs.ts'

/** Limits the wait for remaining output: a surviving grandchild can hold the pipes open for ever. */
const lastReadMs = 250

/**
 * Spawns a process in a new process group: signals to the group reach its workers, and Ctrl-C in the server's terminal
 * does not. If spawning fails, resolves with the reason as a sentence.
 */
export async function spawnChild(options: {
  file: string
  args: readonly string[]
  env: Record<string, string>
  cwd: string
  output: Output
}) {
  // PR_SET_PDEATHSIG fires when the spawning thread ends, so the thread must live as long as the server.
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
  // execa's promise is unused because it also waits for the pipes.
  child.catch(() => {})
  preferVictim(pid)
  let lastOutputAt = performance.now()
  const read = (chunk: Buffer) => {
    const before = output.changes
    output.push(chunk)
    if (output.changes !== before) lastOutputAt = performance.now()
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
  return {
    pid,
    /** Milliseconds on the monotonic clock: the last line that differed from the line before, or the start. */
    lastOutputAt: () => lastOutputAt,
    /** Resolves when the process has exited and its output has been read. */
    ended,
  }
}

/** Makes the kernel's OOM killer prefer the engine, which can be restarted, over the server. */
function preferVictim(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500')
  } catch {
    // Some containers forbid it; it only affects the order of OOM kills.
  }
}
