import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { Failure } from '../../failure.ts'
import type { Log, LogFields } from '../../log.ts'
import { StoreRefusal } from '../refusal.ts'
import type { Store } from '../store.ts'
import type { CommitEffects } from '../workflows.ts'
import { type CommandName, type Commands, growingCommands, weights } from './commands.ts'
import { givenUp } from './give-up.ts'
import type { Answers, SentCommand } from './group.ts'
import { received, shuttingDown } from './sent-failure.ts'
import type { ThreadStart } from './thread.ts'
import { addUp, type UsageByModel } from './usage-totals.ts'

export type ToWriter = { kind: 'commands'; commands: SentCommand[] } | { kind: 'close'; leaves: boolean }

export type FromWriter =
  | { kind: 'prepared' }
  | { kind: 'ready'; recovery: Store['recovery']; commands: CommandName[] }
  | { kind: 'refused'; exitCode: 64 | 65 | 74; message: string }
  | { kind: 'log'; level: 'info' | 'warn' | 'error'; message: string; fields: LogFields }
  /** The answers to the oldest unanswered commands, in order. `full`: the disk had no space for all of them. */
  | {
      kind: 'answers'
      answers: Answers
      full: boolean
      effects: CommitEffects | undefined
      used: UsageByModel | undefined
    }
  | { kind: 'fatal'; code: string; message: string }
  | { kind: 'closed' }

/** How many commands of new work may wait. Work in progress may use as many again, so that new work cannot block it. */
const maxQueued = 10_000
/** How many characters their texts may hold together. */
const maxQueuedText = 256 << 20
/** How many answers are delivered in one event loop turn: their callers' work takes about half a millisecond. */
const answersPerTurn = 32

interface Waiting {
  name: string
  weight: number
  resolve: (value: never) => void
  reject: (failure: Error) => void
}

interface WriterOptions {
  /** A running thread, see startThread. */
  thread: Worker
  start: Extract<ThreadStart, { role: 'server' | 'admin' }>
  log: Log
  /** The database must not be written any more; 74 for the disk, 70 if the thread itself failed. */
  onFatal: (failure: Error, exitCode: 70 | 74) => void
  /** The disk had no space for a group of commands. */
  onFull: () => void
}

/**
 * Starts the writer thread and resolves when it has checked, migrated and repaired the database. Rejects with
 * StoreRefusal. The commands of one event loop turn travel in one message, and so do their answers.
 */
export async function openWriterThread({ thread, start, log, onFatal, onFull }: WriterOptions) {
  thread.ref()
  thread.postMessage(start, [])
  const { recovery, commands: names } = await started(thread, log)
  const post = (message: ToWriter) => thread.postMessage(message, [])

  const waiting: Waiting[] = []
  const outgoing: SentCommand[] = []
  const deliveries: (() => void)[] = []
  let queued = 0
  let queuedText = 0
  /** What finished since the start has used, by model. */
  const used = new Map<string, readonly number[]>()
  let commits = 0
  let commands = 0
  let flushing = false
  let delivering = false
  let ended: Failure | undefined
  let closed: (() => void) | undefined

  thread.on('message', (message: FromWriter) => {
    if (message.kind === 'answers') onAnswers(message)
    else if (message.kind === 'log') log[message.level](message.message, message.fields)
    else if (message.kind === 'fatal')
      failStore(
        new Error(`The database failed: ${message.message} (${message.code}).`),
        message.code === 'internal' ? 70 : 74,
      )
    else if (message.kind === 'closed') closed?.()
  })
  thread.on('error', thrown => failStore(thrown as Error, 70))
  thread.on('exit', () => {
    if (!closed) failStore(new Error('The store thread ended unexpectedly.'), 70)
    closed?.()
  })

  const listeners: ((effects: CommitEffects) => void)[] = []

  function failStore(failure: Error, exitCode: 70 | 74): void {
    if (ended) return
    ended = new Failure('shutting_down', 'The database of this server failed and it is stopping. Retry later.', {
      cause: failure,
      retryAfterMs: 5000,
    })
    for (const { reject } of waiting.splice(0)) reject(ended)
    outgoing.length = 0
    onFatal(failure, exitCode)
  }

  function onAnswers({ answers, full, effects, used: more }: Extract<FromWriter, { kind: 'answers' }>): void {
    commits += 1
    commands += answers.values.length
    if (full) onFull()
    for (const [model, sums] of more ?? []) used.set(model, addUp(sums, used.get(model)))
    const failures = new Map(answers.failures)
    for (const [at, { resolve, reject, name, weight }] of waiting.splice(0, answers.values.length).entries()) {
      queued -= 1
      queuedText -= weight
      const sent = failures.get(at)
      if (!sent) deliveries.push(() => resolve(answers.values[at] as never))
      else {
        const failure = received(sent)
        if (failure.code === 'internal_error') log.error('A store command failed', { command: name }, failure.cause)
        deliveries.push(() => reject(failure))
      }
    }
    if (!delivering) deliver()
    for (const { id, cause } of effects?.givenUp ?? []) log.error(givenUp, { id }, cause)
    if (effects) for (const listener of listeners) listener(effects)
  }

  function deliver(): void {
    for (const deliverOne of deliveries.splice(0, answersPerTurn)) deliverOne()
    delivering = deliveries.length > 0
    if (delivering) setImmediate(deliver)
  }

  function flush(): void {
    flushing = false
    if (outgoing.length > 0) post({ kind: 'commands', commands: outgoing.splice(0) })
  }

  return {
    recovery,
    /** The names of its commands. */
    names,
    onCommitted(listener: (effects: CommitEffects) => void): void {
      listeners.push(listener)
    },
    /**
     * Resolves after the commit. Rejects with the command's own Failure, with `no_capacity` if too many commands wait,
     * and with `shutting_down` once the store is closed or broken.
     */
    send<Name extends CommandName>(
      name: Name,
      given: Parameters<Commands[Name]>,
    ): Promise<Exclude<ReturnType<Commands[Name]>, Failure>> {
      if (ended) return Promise.reject(ended)
      const weight = weights[name]?.(...given) ?? 0
      if (queued >= (growingCommands.has(name) ? maxQueued : 2 * maxQueued) || queuedText + weight > maxQueuedText)
        return Promise.reject(
          new Failure('no_capacity', 'This server has more to write than its disk can take. Retry in a second.', {
            retryAfterMs: 1000,
          }),
        )
      queued += 1
      queuedText += weight
      outgoing.push([name, given])
      if (!flushing) {
        flushing = true
        setImmediate(flush)
      }
      return new Promise((resolve, reject) => waiting.push({ name, weight, resolve, reject }))
    },
    stats: () => ({ queuedCommands: queued, commits, commands }),
    /** What has finished since the start, by model, in the order of `sumColumns`. */
    used: (): UsageByModel => used,
    /** For other parts that find the database broken: rejects all commands from now on. */
    fail: failStore,
    /**
     * Answers the commands sent before, then ends the thread. `leaves`: another server waits for the database, which
     * empties the WAL.
     */
    async close(leaves = false): Promise<void> {
      if (!ended) {
        ended = shuttingDown()
        const done = new Promise<void>(resolve => (closed = resolve))
        flush()
        post({ kind: 'close', leaves })
        await done
        while (deliveries.length > 0) await new Promise(resolve => setImmediate(resolve))
      }
      closed ??= () => {}
      const terminated = thread.terminate()
      if (!leaves) await terminated
    },
  }
}
export type WriterThread = Awaited<ReturnType<typeof openWriterThread>>

/** Lets a thread prepare what `openWriterThread` needs with this `boot`, while another server still writes the database. */
export async function prepareWriterThread(thread: Worker, dataDir: string, boot: string): Promise<void> {
  thread.postMessage({ role: 'prepare', dataDir, boot } satisfies ThreadStart, [])
  // What goes wrong is found again by `openWriterThread`.
  await Promise.race(['message', 'error', 'exit'].map(event => once(thread, event))).catch(() => {})
}

/** Resolves at the thread's first message that is not a log line. */
function started(thread: Worker, log: Log): Promise<Extract<FromWriter, { kind: 'ready' }>> {
  return new Promise((resolve, reject) => {
    const hear = (message: FromWriter) => {
      if (message.kind === 'log') return log[message.level](message.message, message.fields)
      settle()
      if (message.kind === 'ready') resolve(message)
      else if (message.kind === 'refused') reject(new StoreRefusal(message.exitCode, message.message))
    }
    const fail = (thrown: unknown) => {
      settle()
      reject(new StoreRefusal(74, `The store thread did not start: ${String(thrown)}.`, thrown))
    }
    const settle = () => thread.off('message', hear).off('error', fail).off('exit', fail)
    thread.on('message', hear).on('error', fail).on('exit', fail)
  })
}
