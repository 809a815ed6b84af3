import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { messageFrame, openFrameReader } from '../keeper-frames.ts'
import type { LogPiece } from '../launcher.ts'
import {
  agentProtocol,
  type CallName,
  greetingIn,
  receivedFailure,
  type SentFailure,
  signOfLife,
} from './agent-frames.ts'

/** Milliseconds until an agent has started: it waits for the one before it, which may be silent for as long as it may. */
const startMs = 40_000
/** Bytes that may come before the greeting, and of error output that are kept. */
const kept = 64 << 10

interface Call {
  resolve: (value: unknown) => void
  reject: (error: Error) => void
  /** Called with each piece of an output. */
  piece?: (piece: LogPiece) => void
  /** Where the next piece begins. */
  at: number
}

/** The agent ended before it was ready. */
export class AgentMissing extends Error {
  /** Exit code of the command; 127 and 126 are a shell's for a program that it cannot start. */
  readonly exitCode: number | null
  constructor(message: string, exitCode: number | null) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Talks to an agent over the streams of a process. Rejects with a sentence if none that this version understands answers. */
export async function openAgentClient(
  child: ChildProcess,
  {
    changed,
    complained,
    signal: given,
  }: {
    changed: () => void
    complained: (line: string) => void
    /** Ends the attempt, until an agent answers. */
    signal?: AbortSignal
  },
) {
  const open = new Map<number, Call>()
  let next = 0
  let errors = ''
  let isOver = false
  const { stdin, stdout, stderr } = child
  const ended = once(child, 'close')
    .catch(() => [null])
    .then(([code]) => {
      isOver = true
      clearInterval(beating)
      for (const call of open.values()) call.reject(new Error('The connection to the machine has ended.'))
      open.clear()
      return code as number | null
    })
  const send = (message: object): void => void stdin!.write(messageFrame(message))
  const beating = setInterval(() => send({ type: 'alive' }), signOfLife.everyMs)
  beating.unref()
  stdin!.on('error', () => {})
  stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-kept)
    for (const line of text.split('\n')) if (line.trim() !== '') complained(line)
  })

  const read = openFrameReader({
    message(message) {
      if (message.type === 'changed') return changed()
      const id = Number(message.id)
      const call = open.get(id)
      if (!call) return
      if (message.type === 'at') call.at = Number(message.at)
      else {
        open.delete(id)
        if (message.type === 'failure') call.reject(receivedFailure(message.failure as SentFailure))
        else call.resolve(message.value)
      }
    },
    output(id, bytes) {
      const call = open.get(Number(id))
      if (!call) return
      call.piece?.({ at: call.at, bytes: Uint8Array.from(bytes) })
      call.at += bytes.length
    },
  })

  const greeted = new Promise<{ protocol: number; version: string }>((resolve, reject) => {
    let before: Buffer | undefined = Buffer.alloc(0)
    stdout!.on('data', (piece: Buffer) => {
      try {
        if (before === undefined) return read(piece)
        before = Buffer.concat([before, piece])
        const greeting = greetingIn(before)
        if (!greeting) {
          if (before.length > kept) throw new Error('It prints something else.')
          return
        }
        before = undefined
        resolve(greeting)
        if (greeting.rest.length > 0) read(greeting.rest)
      } catch (thrown) {
        reject(thrown)
        child.kill('SIGKILL')
      }
    })
  })
  const giveUp = () => void child.kill('SIGKILL')
  const timer = setTimeout(giveUp, startMs)
  given?.addEventListener('abort', giveUp)
  const greeting = await Promise.race([greeted, ended]).finally(() => {
    clearTimeout(timer)
    given?.removeEventListener('abort', giveUp)
  })
  if (greeting === null || typeof greeting === 'number') {
    const last = errors.trim().split('\n').at(-1)?.slice(0, 300) || 'it does not answer'
    throw new AgentMissing(last, greeting)
  }
  if (greeting.protocol !== agentProtocol) {
    child.kill('SIGKILL')
    throw new Error(`infer ${greeting.version} answers there, which does not work with this version`)
  }

  function call(
    name: CallName,
    more: object,
    signal: AbortSignal | undefined,
    piece?: Call['piece'],
  ): Promise<unknown> {
    const id = ++next
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (isOver) reject(new Error('The connection to the machine has ended.'))
    else {
      open.set(id, { resolve, reject, at: 0, ...(piece && { piece }) })
      send({ type: 'call', id, name, ...more })
    }
    const abort = () => {
      if (!open.delete(id)) return
      if (name === 'logs') send({ type: 'cancel', id })
      reject(signal!.reason as Error)
    }
    signal?.addEventListener('abort', abort, { once: true })
    return promise.finally(() => signal?.removeEventListener('abort', abort))
  }

  return {
    /** Resolves when it is gone. */
    ended,
    call,
    note: (launchId: string, note: object): void => send({ type: 'note', launchId, note }),
    /** Ends the process that leads to the agent, which then ends too and leaves its engines. */
    end: (): void => void child.kill('SIGKILL'),
  }
}

export type AgentClient = Awaited<ReturnType<typeof openAgentClient>>
