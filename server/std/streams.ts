import type { ServerResponse } from 'node:http'
import { SwapSet, type SwapSetMember } from '../../core/swap-set.ts'
import { openPacer } from './pacer.ts'

/** A response that is being streamed, as the watch over all of them sees it. */
export interface WatchedStream extends SwapSetMember {
  /** Monotonic milliseconds: since when the reader has taken nothing, or undefined while it keeps up. */
  blockedSince: number | undefined
  /** Monotonic milliseconds of the last byte written. */
  wroteAt: number
  /** How long it may be silent, where that is not what all others may. */
  readonly pingMs?: number | undefined
  /** Sends a comment, so that proxies between do not take silence for death. */
  ping(): void
  /** The reader is too slow: ends the connection and the engine's request. */
  cut(): void
  /** The server is stopping: ends the stream with an error frame. */
  interrupt(): void
  /** The server begins to stop: a stream without an end of its own ends now, so that nobody waits for it. */
  dismiss?(): void
}

/** What a response takes in one go; more is written as it is read. */
export const pieceBytes = 64 << 10

/** How many streams are pinged or cut in one iteration of the event loop. */
const together = 32
/** Opening a stream takes a few tenths of a millisecond, so they leave most of the event loop to others. */
const openings = { size: 1, everyMs: 1 }
/** More openings than this that wait are many. */
const manyOpenings = 16
/** Passing an event on takes a few hundredths of a millisecond; 2,000 streams have it within 250 ms. */
const writes = { size: 16, everyMs: 2 }

/**
 * One timer for all streams, however many: it pings the silent ones and cuts those whose reader has taken nothing for
 * `writeDeadlineMs`. A timer for each stream would be armed again with every token.
 */
export function openStreams({ pingMs, writeDeadlineMs }: { pingMs: number; writeDeadlineMs: number }) {
  const open = new SwapSet<WatchedStream>()
  let timer: NodeJS.Timeout | undefined
  const every = Math.max(20, Math.min(1_000, pingMs / 4, writeDeadlineMs / 4))

  /** Those that were opened together fall silent together: they are pinged a few at a time. */
  let looking: Iterator<WatchedStream> | undefined
  function look() {
    looking ??= open[Symbol.iterator]()
    const now = performance.now()
    let written = 0
    for (let next = looking.next(); !next.done; next = looking.next()) {
      const stream = next.value
      // It has ended since the look began.
      if (stream.setIndex < 0) continue
      if (stream.blockedSince !== undefined) {
        if (now - stream.blockedSince < writeDeadlineMs) continue
        stream.cut()
      } else if (now - stream.wroteAt >= (stream.pingMs ?? pingMs)) stream.ping()
      else continue
      if (++written === together) return void setImmediate(look)
    }
    looking = undefined
  }

  const opening = openPacer(openings)
  const writing = openPacer(writes)

  function add(stream: WatchedStream): void {
    open.add(stream)
    timer ??= setInterval(look, every).unref()
  }

  function remove(stream: WatchedStream): void {
    open.delete(stream)
    if (open.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    add,
    remove,
    /**
     * Writes a whole answer after its head. A large one goes piece by piece as the reader takes it, and each piece that
     * is taken gives the reader the deadline anew.
     */
    sendLarge(res: ServerResponse, body: Uint8Array): void {
      const rest: WatchedStream = {
        setIndex: -1,
        blockedSince: performance.now(),
        wroteAt: performance.now(),
        ping() {},
        cut: () => void res.destroy(),
        interrupt() {},
      }
      let at = 0
      const next = () => {
        rest.blockedSince = performance.now()
        while (at < body.length)
          if (!res.write(body.subarray(at, (at += pieceBytes)))) return void res.once('drain', next)
        res.end()
      }
      add(rest)
      res.once('close', () => remove(rest))
      next()
    },
    /**
     * Resolves when a stream may do the work of its opening: thousands that are opened at once must not stop others.
     */
    beforeOpening: opening.wait,
    /** Whether many streams wait to be opened. */
    get manyReaders(): boolean {
      return opening.waiting > manyOpenings
    },
    /** Resolves when a stream may read and write what is new: one event can concern thousands of streams. */
    beforeWrite: writing.wait,
    get count(): number {
      return open.size
    },
    dismissAll(): void {
      for (const stream of open) stream.dismiss?.()
    },
    interruptAll(): void {
      for (const stream of open) stream.interrupt()
    },
  }
}
export type Streams = ReturnType<typeof openStreams>
