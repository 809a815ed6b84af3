import type { Command } from '@commander-js/extra-typings'
import { type Channel, runFront } from '../../server/fronts/front.ts'
import { frontParts } from '../server/front-parts.ts'
import { tuneMemory } from '../server/tune-memory.ts'

/** Milliseconds between two looks whether control still runs. */
const parentCheckMs = 200

/**
 * `infer __front`: a gateway process. `infer serve` starts it with a channel. Signals end it through the server, so that
 * Ctrl-C in a terminal lets its requests end.
 */
export function define(command: Command): void {
  command.helpOption(false).action(async () => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
    if (!process.send) return
    const channel: Channel = {
      send: (message, socket) => void process.send?.(message, socket, undefined, () => {}),
      onMessage: listener => void process.on('message', listener),
      onClosed(listener) {
        process.on('disconnect', listener)
        // Control may have been killed while this program was loaded, and then there is no event any more.
        const parent = process.ppid
        const isAlone = () => !process.connected || process.ppid !== parent
        setInterval(() => isAlone() && listener(), parentCheckMs).unref()
      },
    }
    tuneMemory()
    await runFront(channel, frontParts)
  })
}
