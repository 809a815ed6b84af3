import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../../core/log.ts'
import { abortable } from '../abortable.ts'
import { type AgentClient, AgentMissing, openAgentClient } from './agent-client.ts'
import { type Connection, openConnection, type SshProgram } from './connection.ts'
import { agentScript, programThere } from './program-there.ts'
import type { SshAddress } from './ssh-command.ts'

export interface LinkOptions {
  pool: string
  address: SshAddress
  orphanGraceMs: number
  /** Folder of the sockets by which ssh runs further commands on its connection. */
  folder: string
  serverId: string
  ssh: SshProgram
  log: Log
}

/** A connection on which an agent answers. */
export interface Linked {
  connection: Connection
  agent: AgentClient
  /** The words that start infer there. */
  program: readonly string[]
}

/** After how many agents in a row that did not answer a new connection is opened. */
const mostFailures = 3

/** Milliseconds before the next attempt, by how many have failed in a row. */
export const retryMs = (failures: number): number => Math.min(30_000, 250 * 2 ** Math.min(failures, 10))

/**
 * Keeps a connection to a machine, and an agent on it. Both are opened again when they end: the engines there run on, and a
 * new agent takes them over. `changed` is called when it is linked, is not any more, or the launches may have changed.
 */
export function openLink(options: LinkOptions, changed: () => void) {
  const { pool, address, orphanGraceMs, folder, serverId, ssh, log } = options
  /** Nothing more is opened; `closing`: the connection ends too. */
  const leaving = new AbortController()
  const left = new Promise<never>((_, reject) =>
    leaving.signal.addEventListener('abort', () => reject(new Error('The server has let go of this machine.'))),
  )
  left.catch(() => {})
  const closing = new AbortController()
  const closed = new Promise<void>(resolve => closing.signal.addEventListener('abort', () => resolve()))
  let linked: Linked | undefined
  /** Why it is not linked, as a sentence. */
  let reason = `The connection to '${address.host}' is not open yet.`
  let waiting = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()

  function lost(why: string): void {
    linked = undefined
    if (leaving.signal.aborted) return
    if (why !== reason) log.warn(`The machine of the pool '${pool}' cannot be used now`, { pool, reason: why })
    reason = why
    first.resolve()
    changed()
  }

  function found(now: Linked): void {
    linked = now
    reason = ''
    log.info(`Connected to the machine of the pool '${pool}'`, { pool, host: address.host })
    first.resolve()
    waiting.resolve()
    waiting = Promise.withResolvers<void>()
    changed()
  }

  /** Runs agents on a connection, one after the other, until it ends. Resolves with the reason. */
  async function runAgents(connection: Connection, program: readonly string[]): Promise<string> {
    const complained = (line: string) => log.debug('The machine of a pool reports', { pool, line })
    for (let failures = 0; ; failures++) {
      // Requests of this server still run over its forwards.
      if (leaving.signal.aborted) return await Promise.race([connection.ended, closed.then(() => '')])
      try {
        const child = connection.start(agentScript(connection, program, { id: `${serverId}/${pool}`, orphanGraceMs }))
        const agent = await openAgentClient(child, { changed, complained, signal: leaving.signal })
        failures = -1
        found({ connection, agent, program })
        await Promise.race([agent.ended, closed])
        lost(`The part of infer on '${address.host}' has ended; it is started again.`)
      } catch (thrown) {
        const { message } = thrown as Error
        lost(
          thrown instanceof AgentMissing && [126, 127].includes(thrown.exitCode ?? 0)
            ? `infer cannot run on '${address.host}': ${message}.`
            : `infer does not answer on '${address.host}': ${message}.`,
        )
      }
      const over = await Promise.race([
        connection.ended,
        closed.then(() => ''),
        pause(failures < 0 ? 0 : retryMs(failures), undefined, { ref: false }),
      ])
      if (over !== undefined) return over
      if (failures === mostFailures) return reason
    }
  }

  async function keep(): Promise<void> {
    for (let failures = 0; !leaving.signal.aborted; failures++) {
      let connection: Connection | undefined
      try {
        // An ssh of an earlier connection removes its socket when it ends, so each has a name of its own.
        const control = join(folder, `ssh-${randomBytes(4).toString('hex')}`)
        connection = await openConnection(address, control, ssh, leaving.signal)
        const program = await Promise.race([programThere(connection, address.host), left])
        const since = performance.now()
        const why = await runAgents(connection, program)
        if (performance.now() - since > 10_000) failures = 0
        lost(why)
      } catch (thrown) {
        lost((thrown as Error).message)
      }
      await connection?.close()
      if (!leaving.signal.aborted)
        await pause(retryMs(failures), undefined, { ref: false, signal: leaving.signal }).catch(() => {})
    }
  }

  const keeping = keep()
  return {
    /** Resolves after the first attempt. */
    first: first.promise,
    /** The open connection; throws the reason where there is none. */
    now(): Linked {
      if (!linked) throw new Error(reason)
      return linked
    },
    /** The agent, if one answers now. */
    agent: (): AgentClient | undefined => linked?.agent,
    /** The open connection, perhaps later; rejects when the signal says so. */
    async next(signal: AbortSignal): Promise<Linked> {
      for (;;) {
        signal.throwIfAborted()
        const now = linked
        if (now) return now
        await abortable(waiting.promise, signal)
      }
    },
    /** Opens neither a connection nor an agent any more; those that are open stay. */
    leave: (): void => leaving.abort(),
    /** Ends the connection and opens none any more. */
    async close(): Promise<void> {
      leaving.abort()
      closing.abort()
      linked?.agent.end()
      await keeping
    },
  }
}

export type Link = ReturnType<typeof openLink>
