/**
 * What an engine is started through, so that nothing of it outlives us. A child that is merely spawned stays when its
 * parent is killed, and a grandchild in a session of its own stays even when the child is told to die with us. A
 * process namespace does not: when its first process ends, the kernel ends them all. Measured with kill -9 and a
 * setsid grandchild that ignores SIGTERM: plain 2 survivors, pdeathsig alone 1, namespace alone 3, both together 0.
 */
export interface Wrapper {
  name: 'unshare' | 'bubblewrap' | 'plain'
  /** The programs it needs. */
  programs: readonly string[]
  /** Put before the engine's own program and arguments. */
  prefix: readonly string[]
  /**
   * Who is asked to end. `group`: the process group, which the wrapper itself shrugs off. `inside`: every process
   * below the wrapper but not the wrapper, which would die of it and take the engine along without its grace.
   */
  signals: 'group' | 'inside'
  /** How many processes stand between the wrapper's own process and the engine's. */
  depth: number
  /** What it promises, as a sentence. */
  promise: string
}

/**
 * The first process of the namespace. It is not the engine because process 1 ignores signals that it does not handle
 * and must collect orphans; a shell with this fixed text does both right, and its end is the end of the namespace.
 */
export const first = ['/bin/sh', '-c', 'ulimit -c 0; "$@"; exit $?', 'infer-engine']

/** Where the wrapper brings a first process of its own: no core file of 100 GB, and out of the way. */
const replaced = ['/bin/sh', '-c', 'ulimit -c 0; exec "$@"', 'infer-engine']

const unshare = (...flags: string[]): Wrapper => ({
  name: 'unshare',
  programs: ['setpriv', 'unshare'],
  prefix: [
    ['setpriv', '--pdeathsig', 'KILL', '--no-new-privs', '--'],
    ['unshare', ...flags, '--pid', '--fork', '--kill-child=SIGKILL', '--'],
    first,
  ].flat(),
  signals: 'group',
  depth: 2,
  promise: 'Engines and everything they start end with this process, however it ends (own process namespace).',
})

const bubblewrap: Wrapper = {
  name: 'bubblewrap',
  programs: ['bwrap'],
  prefix: ['bwrap', '--die-with-parent', '--unshare-pid', '--dev-bind', '/', '/', '--proc', '/proc', '--', ...replaced],
  signals: 'inside',
  depth: 2,
  promise: 'Engines and everything they start end with this process, however it ends (bubblewrap).',
}

/** The last resort, which always works. */
export const plain: Wrapper = {
  name: 'plain',
  programs: [],
  prefix: [],
  signals: 'group',
  depth: 0,
  promise:
    'Engines end when this process stops them. If it is killed they stay until its next start, which ends them first.',
}

/**
 * What to try, best first. With its own /proc where that may be mounted, because some engines look themselves up
 * there by their number; in a user namespace where this process may not make a process namespace directly.
 */
export const candidates: readonly Wrapper[] = [
  unshare('--mount-proc'),
  unshare('--user', '--map-current-user', '--mount-proc'),
  bubblewrap,
  unshare(),
  unshare('--user', '--map-current-user'),
]

/** Program and arguments that start `argv` through the wrapper. */
export function wrapped(wrapper: Wrapper, argv: readonly string[]): { file: string; args: string[] } {
  const [file, ...args] = [...wrapper.prefix, ...argv]
  return { file: file!, args }
}

/** The end of a wrapped process in the words of the engine: a shell says 128 + n where a signal ended its child. */
export function statusOf(wrapper: Wrapper, code: number | null, signal: string | null, names: Record<string, number>) {
  if (signal !== null) return signal
  if (wrapper.name === 'plain' || code === null || code <= 128) return String(code ?? 'unknown')
  return Object.entries(names).find(([, number]) => number === code - 128)?.[0] ?? String(code)
}
