import { execa } from 'execa'
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
  for (const wrapper of candidates) {
    const why = await attempt(wrapper, environment.PATH ?? '/usr/local/bin:/usr/bin:/bin')
    tried.push({ command: wrapper.prefix.slice(0, wrapper.prefix.lastIndexOf('--')).join(' '), why })
    if (why === null) return { wrapper, tried }
  }
  return { wrapper: plain, tried }
}

async function attempt(wrapper: Wrapper, path: string): Promise<string | null> {
  const { file, args } = wrapped(wrapper, ['/bin/sh', '-c', 'test $$ -le 9 && exit 42'])
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
    if (done.exitCode === undefined) return done.code === 'ENOENT' ? `${file} is not installed` : `${done.code}`
    return done.stderr.trim().split('\n').at(-1) || `it ended with ${done.exitCode}`
  } catch (cause) {
    return String(cause)
  }
}
