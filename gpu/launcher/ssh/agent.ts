import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { messageFrame, openFrameReader, outputFrame } from '../keeper-frames.ts'
import type { Launcher, LaunchOptions } from '../launcher.ts'
import { type CallName, greetingOf, sentFailure, signOfLife } from './agent-frames.ts'

/**
 * Answers the calls of a server that come as frames, with a launcher of this machine. Resolves when the server has gone, is
 * silent, or has let go of the engines, which run on.
 */
export function serveAgent({
  launcher,
  version,
  input,
  output,
}: {
  launcher: Launcher
  /** Of this program, for the server. */
  version: string
  input: Readable
  output: Writable
}): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const closing = new AbortController()
  /** Readers of outputs, by the number of their call. */
  const readers = new Map<number, AbortController>()
  let silence = setTimeout(finish, signOfLife.limitMs)

  function finish(): void {
    clearTimeout(silence)
    unwatch()
    closing.abort()
    for (const reader of readers.values()) reader.abort()
    resolve()
  }

  const send = (message: object): boolean => output.write(messageFrame(message))

  /** Sends what an engine prints, as fast as it is read. */
  async function sendLogs(id: number, launchId: string, from: number): Promise<void> {
    const reader = new AbortController()
    readers.set(id, reader)
    try {
      for await (const { at, bytes } of launcher.logs(launchId, from, reader.signal)) {
        if (closing.signal.aborted) return
        send({ type: 'at', id, at })
        if (!output.write(outputFrame(String(id), bytes)))
          await once(output, 'drain', { signal: closing.signal }).catch(() => {})
      }
    } finally {
      readers.delete(id)
    }
  }

  const functions: Record<CallName, (message: Record<string, unknown>, id: number) => Promise<unknown>> = {
    start: ({ options }) => launcher.start(options as LaunchOptions, closing.signal),
    list: () => launcher.list(closing.signal),
    stop: ({ launchId, graceMs }) => launcher.stop(String(launchId), Number(graceMs), closing.signal),
    capacity: () => launcher.capacity(closing.signal),
    logs: ({ launchId, from }, id) => sendLogs(id, String(launchId), Number(from)),
    leave: () => launcher.leave(),
    close: () => launcher.close(),
  }

  async function answer(name: CallName, id: number, message: Record<string, unknown>): Promise<void> {
    try {
      const value = await functions[name](message, id)
      send({ type: 'answer', id, value })
    } catch (thrown) {
      send({ type: 'failure', id, failure: sentFailure(thrown) })
    }
    if (name === 'leave' || name === 'close') finish()
  }

  const read = openFrameReader({
    message(message) {
      clearTimeout(silence)
      silence = setTimeout(finish, signOfLife.limitMs)
      const id = Number(message.id)
      if (message.type === 'note') launcher.note(String(message.launchId), message.note as object)
      else if (message.type === 'cancel') readers.get(id)?.abort()
      else if (message.type === 'call') void answer(message.name as CallName, id, message)
    },
  })
  const unwatch = launcher.watch(() => void send({ type: 'changed' }))
  input.on('data', (piece: Buffer) => {
    try {
      read(piece)
    } catch {
      finish()
    }
  })
  input.on('close', finish).on('end', finish).on('error', finish)
  output.on('error', finish)
  output.write(greetingOf(version))
  return over
}
