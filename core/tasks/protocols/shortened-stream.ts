import type { Failure } from '../../failure.ts'
import type { EngineCall, EngineListener, Exchange, Lease } from '../../models/fleet.ts'
import { type Droppable, shortener } from '../chat/truncation.ts'

/**
 * Opens a request. If the engine refuses its prompt as too long, sends it again without what may be left out, a bounded
 * number of times.
 */
export function openShortened(
  lease: Pick<Lease, 'open'>,
  call: EngineCall,
  listener: EngineListener,
  droppable: Droppable | undefined,
): Exchange {
  // The closures below must not keep the body: it is not needed for long streams.
  const { body, ...facts } = call
  const isText = typeof body === 'string' || body instanceof Uint8Array
  if (!droppable || droppable.units.length === 0 || !isText) return lease.open(call, listener)
  // Released with the first byte of the answer.
  let shorter: ((failure: Failure) => string | undefined) | undefined = shortener(body, droppable)
  let paused = false
  const send = (sent: string | Uint8Array) =>
    lease.open(
      { ...facts, body: sent },
      {
        accepted(type) {
          shorter = undefined
          listener.accepted(type)
        },
        chunk: bytes => listener.chunk(bytes),
        finished: () => listener.finished(),
        failed(failure) {
          const rest = shorter?.(failure)
          if (rest === undefined) return listener.failed(failure)
          exchange = send(rest)
          if (paused) exchange.pause()
        },
      },
    )
  let exchange = send(body)
  return {
    pause() {
      paused = true
      exchange.pause()
    },
    resume() {
      paused = false
      exchange.resume()
    },
    abort: () => exchange.abort(),
  }
}
