import { constants } from 'node:os'
import { execa } from 'execa'
import { exitStatus, noWrapper, type Wrapper, wrapCommand } from '../../sandbox/wrapper.ts'
import type { TrialRun } from './backend.ts'

export interface TrialOptions {
  /** Program and arguments that try the backend, print a line of JSON and end. */
  argv: readonly string[]
  env: Record<string, string>
  deadlineMs: number
  /** Ends the trial, and the test process that llama.cpp starts, together with this process. */
  wrapper?: Wrapper
}

/** Runs a trial in a process that may crash or hang, and ends that process. Never throws. */
export async function runTrial({ argv, env, deadlineMs, wrapper = noWrapper }: TrialOptions): Promise<TrialRun> {
  const { file, args } = wrapCommand(wrapper, argv)
  const started = performance.now()
  const child = execa(file, args, {
    env,
    extendEnv: false,
    stdin: 'ignore',
    reject: false,
    detached: true,
    cleanup: false,
    maxBuffer: 32 << 20,
  })
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    if (child.pid !== undefined) killGroup(child.pid)
  }, deadlineMs)
  const { exitCode, signal, stdout, stderr, code } = await child
  clearTimeout(timer)
  // Its child processes have closed the pipes but may still be running.
  if (child.pid !== undefined) killGroup(child.pid)
  return {
    status:
      exitCode === undefined && !signal
        ? String(code)
        : exitStatus(wrapper, exitCode ?? null, signal ?? null, constants.signals),
    timedOut,
    stdout,
    stderr,
    ms: performance.now() - started,
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The whole group has already exited.
  }
}
