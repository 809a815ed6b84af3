import { execa } from 'execa'
import { findProgram } from './program.ts'
import { candidates, plain, type Wrapper, wrapped } from './wrapper.ts'

export interface Probe {
  wrapper: Wrapper
  /** What was tried, in order, for `infer doctor`: why it does not work, or null where it does. */
  tried: { command: string; why: string | null }[]
}

/**
 * Finds out which wrapper works here by starting a shell through each: it must run as one of the first processes of
 * a namespace and hand its exit status through. Stops at the first that does. Takes some 20 ms a try.
 */
export async function probeWrapper(environment: { PATH?: string | undefined }): Promise<Probe> {
  const tried: Probe['tried'] = []
  const path = environment.PATH ?? '/usr/local/bin:/usr/bin:/bin'
  for (const candidate of candidates) {
    const wrapper = found(candidate, path)
    const why = typeof wrapper === 'string' ? wrapper : await tryShell(wrapper, 'test $$ -le 9 && exit 42', path)
    tried.push({ command: candidate.prefix.slice(0, candidate.prefix.lastIndexOf('--')).join(' '), why })
    if (why === null && typeof wrapper !== 'string') return { wrapper, tried }
  }
  return { wrapper: plain, tried }
}

/** The wrapper with the places of its programs, for a model may be given a PATH of its own; or what is missing. */
function found(wrapper: Wrapper, path: string): Wrapper | string {
  const places = wrapper.programs.map(name => [name, findProgram(name, path)] as const)
  const missing = places.find(([, place]) => place === undefined)
  if (missing) return `${missing[0]} is not installed`
  const placeOf = new Map(places)
  return { ...wrapper, prefix: wrapper.prefix.map(part => placeOf.get(part) ?? part) }
}

/** Why a shell that is started through the wrapper does not end with 42; null where it does. Waits 5 s at most. */
export async function tryShell(wrapper: Wrapper, script: string, path: string): Promise<string | null> {
  const { file, args } = wrapped(wrapper, ['/bin/sh', '-c', script])
  try {
    const done = await execa(file, args, {
      env: { PATH: path, LC_ALL: 'C' },
      extendEnv: false,
      stdin: 'ignore',
      timeout: 5_000,
      killSignal: 'SIGKILL',
      reject: false,
      maxBuffer: 1 << 16,
    })
    if (done.exitCode === 42) return null
    if (done.timedOut) return 'it does not answer'
    if (done.exitCode === undefined) return String(done.code ?? done.signal)
    return done.stderr.trim().split('\n').at(-1) || `it ended with ${done.exitCode}`
  } catch (cause) {
    return String(cause)
  }
}
