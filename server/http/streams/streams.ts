import type { ServerResponse } from 'node:http'
import { SwapSet, type SwapSetMember } from '../../../core/swap-set.ts'
import { openPacer } from './pacer.ts'

/** A streamed response that is watched: pinged when it is silent, cut when its reader stops reading. */
export interface WatchedStream extends SwapSetMember {
  /** Monotonic milliseconds since when the reader has read nothing; undefined while it keeps up. */
  blockedSince: number | undefined
  /** Monotonic milliseconds of the last byte written. */
  wroteAt: number
  /** Milliseconds of silence before a ping, if not the default. */
  readonly pingMs?: number | undefined
  /** Sends a comment, so that proxies do not close a silent connection. */
  ping(): void
  /** The reader is too slow: ends the connection and the engine's request. */
  cut(): void
  /** The server is stopping: ends the stream with an error frame. */
  interrupt(): void
  /** The server begins to stop: ends a stream that would not end by itself. */
  dismiss?(): void
}

/** Bytes that are written at once; longer bodies are written as they are read. */
export const streamPieceBytes = 64 << 10

/** How many streams are pinged or cut in one iteration of the event loop. */
const maxPerIteration = 32
/** Opening a stream takes a few tenths of a millisecond; this pace leaves most of the event loop to other requests. */
const openings = { size: 1, everyMs: 1 }
/** Above this number of waiting openings there are many readers. */
const manyOpenings = 16
/** Writing an event takes a few hundredths of a millisecond; 2,000 streams get it within 250 ms. */
const writes = { size: 16, everyMs: 2 }

/**
 * Watches all streams with one timer: pings silent ones and cuts those whose reader has read nothing for
 * `writeDeadlineMs`. A timer for each stream would be reset with every token.
 */
export function openStreams({ pingMs, writeDeadlineMs }: { pingMs: number; writeDeadlineMs: number }) {
  const open = new SwapSet<WatchedStream>()
  let timer: NodeJS.Timeout | undefined
  const every = Math.max(20, Math.min(1_000, pingMs / 4, writeDeadlineMs / 4))

  /** Position of the check. Streams that were opened together are due together, so they are pinged a few at a time. */
  let remaining: Iterator<WatchedStream> | undefined
  function check() {
    remaining ??= open[Symbol.iterator]()
    const now = performance.now()
    let written = 0
    for (let next = remaining.next(); !next.done; next = remaining.next()) {
      const stream = next.value
      // It has ended since the check began.
      if (stream.setIndex < 0) continue
      if (stream.blockedSince !== undefined) {
        if (now - stream.blockedSince < writeDeadlineMs) continue
        stream.cut()
      } else if (now - stream.wroteAt >= (stream.pingMs ?? pingMs)) stream.ping()
      else continue
      if (++written === maxPerIteration) return void setImmediate(check)
    }
    remaining = undefined
  }

  /** Whole answers of this turn of the event loop. */
  let answers: { res: ServerResponse; body: string | Uint8Array; encoding: BufferEncoding }[] = []

  function sendAnswers() {
    const due = answers
    answers = []
    for (const { res, body, encoding } of due) if (!res.destroyed && !res.writableEnded) res.end(body, encoding)
  }

  const opening = openPacer(openings)
  const writing = openPacer(writes)

  /** The server stops: streams that wait to be opened need not wait, and opened ones end at once. */
  let stopping = false

  function add(stream: WatchedStream) {
    open.add(stream)
    // Not before the constructor of the stream has ended.
    if (stopping) queueMicrotask(() => stream.dismiss?.())
    timer ??= setInterval(check, every).unref()
  }

  function remove(stream: WatchedStream) {
    open.delete(stream)
    if (open.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    add,
    remove,
    /**
     * Writes a whole body after its head, together with the other answers of this turn of the event loop: one system call
     * after another takes a third less time than each between two other requests. Node's `end` writes at once whatever
     * `writeTogether` holds, so it is called at the end of the turn.
     */
    send(res: ServerResponse, body: string | Uint8Array, encoding: BufferEncoding): void {
      if (answers.push({ res, body, encoding }) === 1) setImmediate(sendAnswers)
    },
    /**
     * Writes a whole body after its head, piece by piece as the client reads it. Each piece that is read resets the
     * write deadline.
     */
    sendLarge(res: ServerResponse, body: Uint8Array): void {
      const watched: WatchedStream = {
        setIndex: -1,
        blockedSince: performance.now(),
        wroteAt: performance.now(),
        ping() {},
        cut: () => void res.destroy(),
        interrupt() {},
      }
      let at = 0
      const next = () => {
        watched.blockedSince = performance.now()
        while (at < body.length)
          if (!res.write(body.subarray(at, (at += streamPieceBytes)))) return void res.once('drain', next)
        res.end()
      }
      add(watched)
      res.once('close', () => remove(watched))
      next()
    },
    /**
     * Resolves when a stream may open: thousands that are opened at once must not stop others. `isGone`: whether its
     * client has disconnected.
     */
    beforeOpening: (isGone: () => boolean = () => false): Promise<void> => opening.wait(() => stopping || isGone()),
    /** Whether the server stops, so that no further stream should open. */
    get stopping(): boolean {
      return stopping
    },
    /** Whether many streams wait to be opened. */
    get manyReaders(): boolean {
      return opening.waiting > manyOpenings
    },
    /**
     * Resolves when a stream may read and write new events. Paced, because one event can concern thousands of streams.
     */
    beforeWrite: writing.wait,
    get count(): number {
      return open.size
    },
    dismissAll(): void {
      stopping = true
      for (const stream of open) stream.dismiss?.()
    },
    interruptAll(): void {
      for (const stream of open) stream.interrupt()
    },
  }
}
export type Streams = ReturnType<typeof openStreams>
