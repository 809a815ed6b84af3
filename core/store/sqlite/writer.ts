import { rmSync } from 'node:fs'
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { StoreRefusal } from '../refusal.ts'
import type { SentCommand } from './batch.ts'
import { bootDatabase } from './boot.ts'
import { openCommands } from './commands.ts'
import { copyDatabase } from './copy.ts'
import { refusalFor } from './damage.ts'
import { type Connection, meaningOf, pragmas, sqliteCode } from './database.ts'
import { pathsIn } from './directory.ts'
import { openGroup } from './group.ts'
import type { FromCopy, FromWriter, ThreadStart, ToWriter } from './protocol.ts'
import { releaseOwn } from './recovery.ts'
import { memoryOf, openWriteContext } from './write-context.ts'

/**
 * The writer thread: the one connection that writes. Whatever is queued when the commit before has ended becomes the
 * next transaction, so the duration of the fsync is the window in which a group forms, and an answer follows it.
 */
const maxInGroup = 512
const idleMs = 1000

parentPort?.once('message', (options: ThreadStart) => start(parentPort!, options))

function start(port: MessagePort, options: ThreadStart): void {
  if (options.role === 'copy') {
    const tell = (message: FromCopy) => port.postMessage(message)
    copyDatabase(options.from, options.to, (done, total) => tell({ kind: 'progress', done, total })).then(
      ({ bytes }) => tell({ kind: 'copied', bytes }),
      (thrown: unknown) => tell({ kind: 'refused', ...refused(thrown) }),
    )
    return
  }
  const tell = (message: FromWriter) => port.postMessage(message)
  try {
    const { connection, recovery } = bootDatabase({
      ...options,
      say: (level, message, fields) => tell({ kind: 'log', level, message, fields }),
    })
    serve(port, connection, options)
    tell({ kind: 'ready', recovery })
  } catch (thrown) {
    // A bit that flipped in the schema itself may show only in a statement that does not fit it.
    tell({
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
  connection: Connection,
  { role, dataDir, boot }: { role: 'server' | 'admin'; dataDir: string; boot: string },
): void {
  const tell = (message: FromWriter) => port.postMessage(message)
  const context = openWriteContext(connection, boot)
  const { effects } = context
  const group = openGroup(connection, openCommands(connection, context), memoryOf(context), () =>
    rmSync(pathsIn(dataDir).ballast, { force: true }),
  )
  const queue: SentCommand[] = []
  let scheduled = false
  let closing = false
  let ended = false
  let dirty = true
  const idle = setTimeout(checkpoint, idleMs)

  port.on('message', (message: ToWriter) => {
    take(message)
    // At once: what else has come meanwhile is taken along, and the rest while this one is written.
    if (!scheduled) run()
  })

  function take(message: ToWriter): void {
    if (message.kind === 'close') closing = true
    else for (const asked of message.asked) queue.push(asked)
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(run)
  }

  function run(): void {
    scheduled = false
    if (ended) return
    for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port)) take(more.message as ToWriter)
    if (queue.length > 0) {
      const asked = queue.slice(0, maxInGroup)
      try {
        const outcome = group(asked)
        queue.splice(0, asked.length)
        tell({ kind: 'answers', ...outcome, effects: effects.take() })
        dirty = true
        idle.refresh()
      } catch (thrown) {
        // Another process has held the lock for all of busy_timeout: the callers wait, they never see it.
        if (meaningOf(thrown) !== 'busy') return die(thrown)
        tell({ kind: 'log', level: 'warn', message: 'Another process keeps the database locked', fields: {} })
      }
    }
    if (queue.length > 0) schedule()
    else if (closing) close()
  }

  /** Runs what nobody waits for; no room and a locked database are no harm here, the next time will do. */
  function quietly(work: () => void): void {
    try {
      work()
    } catch (thrown) {
      const meaning = meaningOf(thrown)
      if (meaning === 'fatal' || meaning === 'command') die(thrown)
    }
  }

  /** Empties the WAL while nothing happens, so that it does not stay at the size of the last rush. */
  function checkpoint(): void {
    if (!dirty) return
    dirty = false
    quietly(() => {
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
   * Fail-stop: after such an error SQLite would take the next write, and nobody could say what is on the disk.
   * The connection is left as it is: closing it would write once more.
   */
  function die(thrown: unknown): void {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    tell({ kind: 'fatal', code: sqliteCode(thrown) ?? 'internal', message })
    stop()
  }

  function close(): void {
    try {
      if (role === 'server') quietly(() => releaseOwn(connection, { ...context, at: Date.now() }))
      dirty = true
      checkpoint()
      connection.close()
      tell({ kind: 'closed' })
      stop()
    } catch (thrown) {
      die(thrown)
    }
  }
}
