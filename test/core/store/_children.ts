import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const fixtures = join(import.meta.dirname, '..', '..', 'fixtures')
export const storeProcess = join(fixtures, 'store-process.ts')
export const weakenDurability = join(fixtures, 'weaken-durability.ts')

/** The fixture in a mode, with an IPC channel. Kill it by this handle. */
export const startChild = (...args: string[]): ChildProcess =>
  fork(storeProcess, args, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'], serialization: 'advanced' })

/** The first message of the child that has this member; rejects when it ends before. */
export async function heard<Member extends string>(
  child: ChildProcess,
  member: Member,
): Promise<Record<Member, unknown>> {
  const end = new AbortController()
  const exited = once(child, 'exit', { signal: end.signal }).then(([code, signal]) => {
    throw new Error(`The child ended (${String(code ?? signal)}) before it said '${member}'`)
  })
  exited.catch(() => {})
  try {
    for (;;) {
      const [message] = (await Promise.race([once(child, 'message', { signal: end.signal }), exited])) as [object]
      if (member in message) return message as Record<Member, unknown>
    }
  } finally {
    end.abort()
  }
}

export const hasStrace = spawnSync('strace', ['-qq', '-e', 'trace=none', 'true']).status === 0

/** Runs the fixture under strace to its end. Returns its output and the lines of the trace. */
export function traced(spawnOptions: { strace: string[]; node?: string[]; args: string[]; trace: string }) {
  const child = spawnSync(
    'strace',
    [
      '-f',
      '-qq',
      '-y',
      ...spawnOptions.strace,
      '-o',
      spawnOptions.trace,
      process.execPath,
      ...(spawnOptions.node ?? []),
      storeProcess,
      ...spawnOptions.args,
    ],
    { encoding: 'utf8', timeout: 50_000 },
  )
  return { said: child.stdout.trimEnd().split('\n'), status: child.status, errors: child.stderr }
}
