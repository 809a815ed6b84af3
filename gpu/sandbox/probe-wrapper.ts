import { findPrograms, runProgram } from './program.ts'
import { candidates, noWrapper, type Wrapper, wrapCommand } from './wrapper.ts'

/**
 * Finds the first wrapper that works on this machine by starting a shell through each: the shell must be one of the
 * first processes of its namespace, and its exit status must be passed on. Takes about 20 ms per attempt.
 */
export async function probeWrapper(environment: { PATH?: string }) {
  /** The attempts in order, for `infer doctor`; `why` is null for the wrapper that works. */
  const tried: { command: string; why: string | null }[] = []
  const path = environment.PATH ?? '/usr/local/bin:/usr/bin:/bin'
  for (const candidate of candidates) {
    const wrapper = resolvedWrapper(candidate, path)
    const why = typeof wrapper === 'string' ? wrapper : await tryShell(wrapper, 'test $$ -le 9 && exit 42', path)
    tried.push({ command: candidate.prefix.slice(0, candidate.prefix.lastIndexOf('--')).join(' '), why })
    if (why === null && typeof wrapper !== 'string') return { wrapper, tried }
  }
  return { wrapper: noWrapper, tried }
}

/** The wrapper with absolute program paths, because a model may set its own PATH; or which program is missing. */
function resolvedWrapper(wrapper: Wrapper, path: string): Wrapper | string {
  const paths = findPrograms(wrapper.programs, path)
  return typeof paths === 'string' ? paths : { ...wrapper, prefix: wrapper.prefix.map(part => paths.get(part) ?? part) }
}

/** Runs a shell through the wrapper. Returns null if it exits with 42, else the reason. Waits at most 5 s. */
export async function tryShell(wrapper: Wrapper, script: string, path: string): Promise<string | null> {
  const { file, args } = wrapCommand(wrapper, ['/bin/sh', '-c', script])
  const run = await runProgram(file, args, { PATH: path, LC_ALL: 'C' }, 5_000)
  if (run.exitCode === 42) return null
  if (run.timedOut) return 'it did not end within 5 s'
  if (run.exitCode === undefined) return String(run.errorCode ?? run.signal)
  return run.stderr.trim().split('\n').at(-1) || `it ended with ${run.exitCode}`
}
