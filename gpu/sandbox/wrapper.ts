/**
 * The command that an engine is started through, so that no process of it outlives the server. A plain child survives
 * when its parent is killed; with PR_SET_PDEATHSIG a grandchild in another session still survives. With a PID
 * namespace the kernel ends all its processes when the first one ends. Measured with kill -9 and a setsid grandchild
 * that ignores SIGTERM: plain 2 survivors, pdeathsig alone 1, namespace alone 3, both together 0.
 */
export interface Wrapper {
  name: 'unshare' | 'bubblewrap' | 'plain'
  programs: readonly string[]
  /** Put before the engine's own program and arguments. */
  prefix: readonly string[]
  /**
   * Which processes get SIGTERM. `group`: the process group; the wrapper ignores it. `inside`: every process below the
   * wrapper but not the wrapper, whose exit would kill the engine without a grace period.
   */
  signals: 'group' | 'inside'
  /** Number of levels from the wrapper's process down to the engine's process. */
  depth: number
  /** When engines end, as a sentence for the log and `infer doctor`. */
  promise: string
}

/**
 * The first process of the namespace. It is not the engine, because process 1 ignores signals without a handler and
 * must reap orphans. A shell with this script does both, and the namespace ends when it exits.
 */
export const first = ['/bin/sh', '-c', 'ulimit -c 0; "$@"; exit $?', 'infer-engine']

/** For a wrapper that has its own first process: disables core files (up to 100 GB), then replaces itself. */
export const replaced = ['/bin/sh', '-c', 'ulimit -c 0; exec "$@"', 'infer-engine']

/** A wrapper with a PID namespace, which one of these tools creates. */
export const namespaceWrapper = (
  name: 'unshare' | 'bubblewrap',
  programs: readonly string[],
  prefix: readonly (readonly string[])[],
): Wrapper => ({
  name,
  programs,
  prefix: prefix.flat(),
  signals: name === 'unshare' ? 'group' : 'inside',
  depth: 2,
  promise: `Engines and their child processes end with the process that starts them, even if it is killed (${name === 'unshare' ? 'PID namespace' : name}).`,
})

const unshare = (...flags: string[]): Wrapper =>
  namespaceWrapper(
    'unshare',
    ['setpriv', 'unshare'],
    [
      ['setpriv', '--pdeathsig', 'KILL', '--no-new-privs', '--'],
      ['unshare', ...flags, '--pid', '--fork', '--kill-child=SIGKILL', '--'],
      first,
    ],
  )

const bubblewrapNamespace = namespaceWrapper(
  'bubblewrap',
  ['bwrap'],
  [['bwrap', '--die-with-parent', '--unshare-pid', '--dev-bind', '/', '/', '--proc', '/proc', '--'], replaced],
)

/** The fallback, which always works. */
export const noWrapper: Wrapper = {
  name: 'plain',
  programs: [],
  prefix: [],
  signals: 'group',
  depth: 0,
  promise:
    'Engines end when infer stops them. If the process that starts them is killed, they run until the next start of infer ends them.',
}

/**
 * Candidates in order of preference. A separate /proc is preferred because some engines look up their own process id
 * there. A user namespace is needed where this process may not create a PID namespace directly.
 */
export const candidates: readonly Wrapper[] = [
  unshare('--mount-proc'),
  unshare('--user', '--map-current-user', '--mount-proc'),
  bubblewrapNamespace,
  unshare(),
  unshare('--user', '--map-current-user'),
]

/** Returns the program and arguments that start `argv` through the wrapper. */
export function wrapCommand(wrapper: Wrapper, argv: readonly string[]): { file: string; args: string[] } {
  const [file, ...args] = [...wrapper.prefix, ...argv]
  return { file: file!, args }
}

/** Returns the engine's exit code or signal: a shell wrapper reports 128 + n for signal n. */
export function exitStatus(
  wrapper: Pick<Wrapper, 'name'>,
  code: number | null,
  signal: string | null,
  names: Record<string, number>,
) {
  if (signal !== null) return signal
  if (wrapper.name === 'plain' || code === null || code <= 128) return String(code ?? 'unknown')
  return Object.entries(names).find(([, number]) => number === code - 128)?.[0] ?? String(code)
}
