import type { Writable } from 'node:stream'

/** After so many sockets their writes wait for no others: the first of them is held for a millisecond or two. */
const mostSockets = 16
let corked: Writable[] = []
let isDue = false

/**
 * Holds what is written to a socket until this turn of the event loop ends, and writes it then together with what is held for
 * others: one system call after another takes a third less time than each between two other requests, the process on the other
 * side is woken once for all, and what is written to one socket is one call.
 */
export function writeTogether(socket: Writable): void {
  if (socket.writableCorked > 0) return
  socket.cork()
  corked.push(socket)
  if (corked.length >= mostSockets) return uncork()
  if (isDue) return
  isDue = true
  setImmediate(() => {
    isDue = false
    uncork()
  })
}

function uncork(): void {
  const held = corked
  corked = []
  for (const socket of held) socket.uncork()
}
