import { rmSync } from 'node:fs'
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { collectGarbage } from '../../collect-garbage.ts'
import { StoreRefusal } from '../refusal.ts'
import { bootDatabase, openAhead } from './boot.ts'
import { type CommandName, openCommands } from './commands.ts'
import { copyDatabase, type FromCopy } from './copy.ts'
import { refusalFor } from './damage.ts'
import { type Connection, meaningOf, pragmas, sqliteCode } from './database.ts'
import { pathsIn } from './directory.ts'
import { openGroup, type SentCommand } from './group.ts'
import { releaseOwn } from './recovery.ts'
import type { ThreadStart } from './thread.ts'
import { serveReads } from './usage-thread.ts'
import { memoryOf, openWriteContext } from './write-context.ts'
import type { FromWriter, ToWriter } from './writer-thread.ts'

/**
 * The writer thread owns the only writing connection. Commands that arrive during a commit become the next transaction,
 * so the duration of the fsync is the window in which a group forms. Answers are sent after the commit.
 */
const maxInGroup = 512
const idleMs = 1000

parentPort?.once('message', (options: ThreadStart) => start(parentPort!, options, undefined))

/** A writing connection with the statements of all commands. */
type Opened = ReturnType<typeof openStatements>

function openStatements(connection: Connection, boot: string) {
  const context = openWriteContext(connection, boot)
  return { connection, context, commands: openCommands(connection, context) }
}

/** Half of the time of a start is that of preparing the statements. Where this fails, the start says why. */
function prepare({ dataDir, boot }: Extract<ThreadStart, { role: 'prepare' }>): Opened | undefined {
  try {
    const connection = openAhead(dataDir)
    return connection && openStatements(connection, boot)
  } catch {
    return undefined
  }
}

function start(port: MessagePort, options: ThreadStart, ahead: Opened | undefined): void {
  if (options.role === 'prepare') {
    const prepared = prepare(options)
    port.once('message', (next: ThreadStart) => start(port, next, prepared))
    return port.postMessage({ kind: 'prepared' } satisfies FromWriter)
  }
  if (options.role === 'reads') return serveReads(port, options.dataDir)
  if (options.role === 'copy') {
    const post = (message: FromCopy) => port.postMessage(message)
    copyDatabase(options.from, options.to, (done, total) => post({ kind: 'progress', done, total })).then(
      ({ bytes }) => post({ kind: 'copied', bytes }),
      (thrown: unknown) => post({ kind: 'refused', ...refused(thrown) }),
    )
    return
  }
  const post = (message: FromWriter) => port.postMessage(message)
  try {
    const { connection, recovery } = bootDatabase({
      ...options,
      ahead: ahead?.connection,
      say: (level, message, fields) => post({ kind: 'log', level, message, fields }),
    })
    const commands = serve(port, ahead ?? openStatements(connection, options.boot), options)
    post({ kind: 'ready', recovery, commands })
  } catch (thrown) {
    // A flipped bit in the schema itself may only show in a statement that no longer matches it.
    post({
      kind: 'refused',
      ...refused(sqliteCode(thrown) === undefined ? thrown : refusalFor(thrown, options.dataDir)),
    })
    port.close()
  }
}

function refused(thrown: unknown): { exitCode: 64 | 65 | 74; message: string } {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { exitCode: thrown instanceof StoreRefusal ? thrown.exitCode : 74, message }
}

function serve(
  port: MessagePort,
  { connection, context, commands }: Opened,
  { role, dataDir }: { role: 'server' | 'admin'; dataDir: string },
): CommandName[] {
  const post = (message: FromWriter) => port.postMessage(message)
  const { effects, totals } = context
  const group = openGroup(connection, commands, memoryOf(context), () =>
    rmSync(pathsIn(dataDir).ballast, { force: true }),
  )
  const queue: SentCommand[] = []
  let scheduled = false
  let closing: 'closes' | 'leaves' | undefined
  let ended = false
  let dirty = true
  const idle = setTimeout(checkpoint, idleMs)
  // The garbage of the start; as in cli/commands/serve.ts, V8 has a heap of its own for this thread.
  if (role === 'server') setTimeout(collectGarbage, 2_000).unref()

  port.on('message', (message: ToWriter) => {
    receive(message)
    // At once: other messages that have arrived join this group; later ones arrive while it is being written.
    if (!scheduled) run()
  })
  return Object.keys(commands) as CommandName[]

  function receive(message: ToWriter): void {
    if (message.kind === 'close') closing = message.leaves ? 'leaves' : 'closes'
    else for (const commands of message.commands) queue.push(commands)
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(run)
  }

  function run(): void {
    scheduled = false
    if (ended) return
    for (let received = receiveMessageOnPort(port); received; received = receiveMessageOnPort(port))
      receive(received.message as ToWriter)
    if (queue.length > 0) {
      const commands = queue.slice(0, maxInGroup)
      try {
        const outcome = group(commands)
        queue.splice(0, commands.length)
        post({ kind: 'answers', ...outcome, effects: effects.take(), used: totals.take() })
        dirty = true
        idle.refresh()
      } catch (thrown) {
        // Another process has held the lock for the whole busy_timeout: the callers wait and do not see this.
        if (meaningOf(thrown) !== 'busy') return fail(thrown)
        post({ kind: 'log', level: 'warn', message: 'Another process keeps the database locked', fields: {} })
      }
    }
    if (queue.length > 0) schedule()
    else if (closing) close()
  }

  /** Runs optional work: a full disk or a locked database is harmless here, the next run will do it. */
  function runOptional(work: () => void): void {
    try {
      work()
    } catch (thrown) {
      const meaning = meaningOf(thrown)
      if (meaning === 'fatal' || meaning === 'command') fail(thrown)
    }
  }

  /** Empties the WAL when idle, so that it does not keep the size of the last peak. */
  function checkpoint(): void {
    if (!dirty) return
    dirty = false
    runOptional(() => {
      // A reader in another process (a backup) may hold the WAL: not worth five seconds of waiting.
      connection.pragma('busy_timeout = 0')
      connection.pragma('wal_checkpoint(TRUNCATE)')
    })
    connection.pragma(`busy_timeout = ${pragmas.busy_timeout}`)
  }

  function stop(): void {
    ended = true
    clearTimeout(idle)
    port.close()
  }

  /**
   * Stops for good: after such an error SQLite would accept the next write, and the state on disk would be unknown. The
   * connection is not closed, because closing would write once more.
   */
  function fail(thrown: unknown): void {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    post({ kind: 'fatal', code: sqliteCode(thrown) ?? 'internal', message })
    stop()
  }

  function close(): void {
    try {
      if (role === 'server') runOptional(() => releaseOwn(connection, { ...context, at: Date.now() }))
      dirty = closing === 'closes'
      checkpoint()
      connection.close()
      post({ kind: 'closed' })
      stop()
    } catch (thrown) {
      fail(thrown)
    }
  }
}
